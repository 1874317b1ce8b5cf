import ipaddr, { type IPv4, type IPv6 } from 'ipaddr.js';

/** Addresses that an endpoint must not have. */
type Rule = string;

/** Words of the allow list and the ranges that they stand for. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  private: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
};

/** Services of clouds that answer at addresses which are public by their range. */
const METADATA: ReadonlySet<string> = new Set(['168.63.129.16']);

const RANGE_WORDS: Readonly<Record<string, string>> = {
  unspecified: 'unspecified',
  broadcast: 'broadcast',
  multicast: 'multicast',
  linkLocal: 'link-local, where clouds keep their metadata',
  loopback: 'loopback',
  carrierGradeNat: "of carriers' NAT",
  private: 'private',
  uniqueLocal: 'private (unique local)',
};

/** One entry of the allow list: an address or a range. */
export type AllowedRange = readonly [IPv4 | IPv6, number];

/**
 * Reads one entry of an allow list: an address, a range such as `10.1.0.0/16`, `loopback` or `private`.
 * @returns `undefined` when it is none of these
 */
export function parseAllowed(text: string): readonly AllowedRange[] | undefined {
  const ranges = WORDS[text.toLowerCase()] ?? [text];
  const parsed: AllowedRange[] = [];
  for (const range of ranges) {
    if (ipaddr.isValidCIDR(range)) parsed.push(ipaddr.parseCIDR(range));
    else if (ipaddr.IPv4.isValidFourPartDecimal(range) || ipaddr.IPv6.isValid(range)) {
      const address = ipaddr.parse(range);
      parsed.push([address, address.kind() === 'ipv4' ? 32 : 128]);
    } else return undefined;
  }
  return parsed;
}

/**
 * Decides which addresses webhooks are sent to: public ones, and those that are allowed. Addresses that carry another one
 * (IPv4-mapped, NAT64, 6to4) are judged by that one as well.
 */
export class AddressRules {
  constructor(private readonly allowed: readonly AllowedRange[]) {}

  /**
   * Which rule forbids an address, as the end of a sentence; `undefined` where none does.
   * @param text an IP address as sockets and resolvers have it
   */
  ruleAgainst(text: string): Rule | undefined {
    const [bare = ''] = text.split('%');
    if (!ipaddr.isValid(bare)) return 'which is no IP address';
    const address = ipaddr.parse(bare);
    const rule = this.ruleFor(address);
    return rule === undefined ? undefined : `${bare} is ${rule}`;
  }

  private ruleFor(address: IPv4 | IPv6): Rule | undefined {
    if (this.isAllowed(address)) return undefined;
    const inner = address instanceof ipaddr.IPv6 ? innerAddress(address) : undefined;
    if (inner !== undefined) {
      const rule = this.ruleFor(inner);
      return rule === undefined ? undefined : `${rule} (it carries ${inner.toString()})`;
    }
    if (METADATA.has(address.toString())) return "the address of a cloud's metadata";
    const range = address.range();
    if (range === 'unicast' && !isOutsideOfUnicast(address)) return undefined;
    return RANGE_WORDS[range] ?? 'reserved';
  }

  private isAllowed(address: IPv4 | IPv6): boolean {
    return this.allowed.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits));
  }
}

/** IPv6's global unicast is 2000::/3 so far; the library calls unicast what it has no name for. */
function isOutsideOfUnicast(address: IPv4 | IPv6): boolean {
  return address instanceof ipaddr.IPv6 && !address.match(ipaddr.IPv6.parse('2000::'), 3);
}

/** The IPv4 address that an IPv6 one stands for, where a gateway or the system itself would send to that. */
function innerAddress(address: IPv6): IPv4 | undefined {
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  const bytes = address.toByteArray();
  switch (address.range()) {
    case 'rfc6052':
      // A prefix of one's own network (64:ff9b:1::/48) has the address in places that only the network knows.
      return bytes.slice(4, 12).every((byte) => byte === 0) ? new ipaddr.IPv4(bytes.slice(12)) : undefined;
    case 'rfc6145':
      return new ipaddr.IPv4(bytes.slice(12));
    case '6to4':
      return new ipaddr.IPv4(bytes.slice(2, 6));
    default:
      // IPv4-compatible, ::a.b.c.d; :: and ::1 have names of their own.
      return bytes.slice(0, 12).every((byte) => byte === 0) && (bytes[12] ?? 0) > 0
        ? new ipaddr.IPv4(bytes.slice(12))
        : undefined;
  }
}
