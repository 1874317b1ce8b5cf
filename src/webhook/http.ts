import type { LookupAddress } from 'node:dns';
import http from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { Duplex } from 'node:stream';
import tls from 'node:tls';
import ipaddr, { type IPv4, type IPv6 } from 'ipaddr.js';
import type { Clock } from '../core/clock.js';
import {
  exchange,
  exchangeErrorText,
  type HttpAnswer,
  type HttpRequest,
  type StaleConnectionError,
} from '../core/http-client.js';

/** The outcome of one request. */
export interface HttpOutcome {
  /** `null` where nothing was answered. */
  readonly status: number | null;
  readonly headers: Readonly<Record<string, string>>;
  /** The first 4 KiB. */
  readonly body: string;
  /** Why nothing was answered, in words; `null` where something was. */
  readonly error: string | null;
  /** Why the reused connection of the first try ended, if the request was repeated on a new one; else `null`. */
  readonly resentAfter: string | null;
}

/** How requests are made. */
export interface WebhookHttpConfig {
  readonly rules: AddressRules;
  /** Timeout until the head of the response, in milliseconds; the part of the body received by then is kept. */
  readonly timeoutMs: number;
  readonly resolve: ResolveAll;
  /** The proxy that connects to endpoints; left out for none. */
  readonly proxy?: URL;
  /** Authorities in PEM, in place of the usual ones; for tests. */
  readonly ca?: string;
}

/** Maximum number of bytes of a response body that are read. */
const MAX_BODY_BYTES = 4 * 1024;
/** Error messages are truncated to this many characters. */
const MAX_ERROR_LENGTH = 500;
/** How long an idle connection is kept open, in milliseconds: shorter than servers usually do. */
const KEPT_MS = 4_000;

/**
 * Posts bodies to endpoints whose addresses are allowed. Redirects are answers like others. A proxy is given the address that
 * was resolved and checked here, never the name; a connection through it is for one delivery.
 */
export class WebhookHttp {
  private readonly agents: { readonly http: http.Agent; readonly https: https.Agent };
  private readonly lookup: LookupFunction;

  constructor(
    private readonly config: WebhookHttpConfig,
    private readonly clock: Clock,
  ) {
    const { ca, rules, resolve } = config;
    const kept = { keepAlive: true, maxFreeSockets: 64, timeout: KEPT_MS };
    this.agents = { http: new http.Agent(kept), https: new https.Agent({ ...kept, ...(ca !== undefined && { ca }) }) };
    this.lookup = guardedLookup(rules, resolve);
  }

  /**
   * Makes one attempt; never throws for a fault of the other side. If a reused connection ends before the first byte of the
   * response, the request is sent once more on a new one: the other side may have closed the connection before it read the request.
   * @param signal ends it early
   */
  async post(
    url: URL,
    headers: Readonly<Record<string, string>>,
    body: Uint8Array,
    signal: AbortSignal,
  ): Promise<HttpOutcome> {
    let resentAfter: string | null = null;
    const onStale = (error: StaleConnectionError) => {
      resentAfter = exchangeErrorText(error, MAX_ERROR_LENGTH);
    };
    try {
      const answer = await this.request({ url, headers, body, onStale }, signal);
      const text = Buffer.from(answer.body).toString('utf8');
      return { status: answer.status, headers: flat(answer.headers), body: text, error: null, resentAfter };
    } catch (error) {
      return { status: null, headers: {}, body: '', error: exchangeErrorText(error, MAX_ERROR_LENGTH), resentAfter };
    }
  }

  /** Closes the connections. */
  close(): void {
    this.agents.http.destroy();
    this.agents.https.destroy();
  }

  private async request(
    given: Pick<HttpRequest, 'url' | 'headers' | 'body' | 'onStale'>,
    signal: AbortSignal,
  ): Promise<HttpAnswer> {
    const { rules, timeoutMs, ca } = this.config;
    const { url } = given;
    const request = { ...given, method: 'POST' } as const;
    const endMs = this.clock.monotonicMs() + timeoutMs;
    // Sockets resolve names only: an address in the URL is checked here.
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const rule = isIP(host) === 0 ? undefined : rules.ruleAgainst(host);
    if (rule !== undefined) throw new ForbiddenAddressError(url.hostname, rule);
    const refuse = (remoteAddress: string) => {
      // Checks the address of the open connection once more, however the socket resolved it.
      const found = rules.ruleAgainst(remoteAddress);
      return found === undefined ? undefined : new ForbiddenAddressError(url.hostname, found);
    };
    const message = `no answer within ${timeoutMs / 1_000} s`;
    const leftMs = () => Math.max(0, endMs - this.clock.monotonicMs());
    const limits = () => {
      return { signal, maxBodyBytes: MAX_BODY_BYTES, timeout: { clock: this.clock, ms: leftMs(), message } };
    };
    if (this.config.proxy !== undefined) {
      const end = new AbortController();
      const cut = () => end.abort(new Error(message));
      signal.addEventListener('abort', cut);
      const timer = this.clock.after(leftMs(), cut);
      try {
        const socket = await openTunnel(url, host, { ...this.config, proxy: this.config.proxy }, end.signal);
        return await exchange({ ...request, socket }, limits());
      } finally {
        timer.cancel();
        signal.removeEventListener('abort', cut);
      }
    }
    const agent = url.protocol === 'https:' ? this.agents.https : this.agents.http;
    return exchange({ ...request, agent, lookup: this.lookup, refuse, ...(ca !== undefined && { ca }) }, limits());
  }
}

/** Addresses of a name that are tried through a proxy, which may not reach all kinds. */
const MAX_TRIED = 3;

/**
 * Opens a connection to an endpoint through the proxy. @param host of the URL, an address without brackets
 * @throws ForbiddenAddressError; an Error that says what the proxy answered, or why it cannot be reached
 */
async function openTunnel(
  url: URL,
  host: string,
  { rules, resolve, proxy, ca }: WebhookHttpConfig & { readonly proxy: URL },
  signal: AbortSignal,
): Promise<Duplex> {
  const isSecure = url.protocol === 'https:';
  const port = url.port === '' ? (isSecure ? 443 : 80) : Number(url.port);
  const addresses = isIP(host) === 0 ? allowedAddresses(host, await resolve(host), rules) : [{ address: host }];
  let failure: unknown;
  for (const { address } of addresses.slice(0, MAX_TRIED)) {
    try {
      const socket = await connectThrough(proxy, isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`, {
        signal,
        ...(ca !== undefined && { ca }),
      });
      if (!isSecure) return socket;
      return await secured(
        socket,
        { ...(isIP(host) === 0 && { servername: host }), ...(ca !== undefined && { ca }) },
        signal,
      );
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      failure ??= error;
    }
  }
  throw failure;
}

/** Asks a proxy for a connection. @param authority address and port */
function connectThrough(
  proxy: URL,
  authority: string,
  given: { readonly signal: AbortSignal; readonly ca?: string },
): Promise<Duplex> {
  const { username, password } = proxy;
  const credentials = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64');
  const headers = {
    host: authority,
    ...(username !== '' && { 'proxy-authorization': `Basic ${credentials}` }),
  };
  const target = { host: proxy.hostname.replace(/^\[(.*)\]$/, '$1'), port: proxy.port, path: authority };
  return new Promise((resolve, reject) => {
    const options = { ...target, ...given, method: 'CONNECT', headers, agent: false } as const;
    const request = proxy.protocol === 'https:' ? https.request(options) : http.request(options);
    const refuse = (status: number) =>
      reject(new Error(`the proxy answered ${status} when it was asked to connect to ${authority}`));
    request.once('connect', ({ statusCode = 0 }, socket, head) => {
      if (statusCode !== 200) {
        socket.destroy();
        refuse(statusCode);
        return;
      }
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    request.once('response', (response) => {
      response.destroy();
      refuse(response.statusCode ?? 0);
    });
    request.once('error', (error) =>
      reject(new Error(`the proxy ${proxy.host} cannot be reached: ${error.message}`, { cause: error })),
    );
    request.end();
  });
}

/** Begins TLS on an open connection. @throws what TLS says of the other side's certificate */
function secured(
  socket: Duplex,
  options: { readonly servername?: string; readonly ca?: string },
  signal: AbortSignal,
): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const secure = tls.connect({ ...options, socket });
    const cut = () => secure.destroy(signal.reason);
    signal.addEventListener('abort', cut);
    secure.once('secureConnect', () => {
      signal.removeEventListener('abort', cut);
      secure.off('error', reject);
      resolve(secure);
    });
    secure.once('error', reject);
  });
}

function flat(headers: http.IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
}

/** Resolves a name to all of its addresses. */
export type ResolveAll = (hostname: string) => Promise<readonly LookupAddress[]>;

/**
 * Makes a `lookup` for sockets that returns only allowed addresses. The socket connects to the address that was checked, so
 * a name that resolves to another address later changes nothing.
 */
export function guardedLookup(rules: AddressRules, resolve: ResolveAll): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname)
      .then((addresses) => {
        const wanted = addresses.filter(({ family }) => !options.family || family === options.family);
        const [first, ...others] = allowedAddresses(hostname, wanted, rules);
        if (options.all === true) callback(null, [first, ...others]);
        else callback(null, first.address, first.family);
      })
      .catch((error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), [], 0));
  };
}

/** Returns the addresses of a name that nothing forbids. @throws ForbiddenAddressError where there is none */
function allowedAddresses(
  hostname: string,
  addresses: readonly LookupAddress[],
  rules: AddressRules,
): readonly [LookupAddress, ...LookupAddress[]] {
  const [first, ...others] = addresses.filter(({ address }) => rules.ruleAgainst(address) === undefined);
  if (first !== undefined) return [first, ...others];
  const rule = addresses.map(({ address }) => rules.ruleAgainst(address)).find((one) => one !== undefined);
  throw new ForbiddenAddressError(hostname, rule ?? 'it has no address');
}

/** The endpoint's address is not allowed. The message contains the address, the rule, and the setting that allows it. */
export class ForbiddenAddressError extends Error {
  override readonly name = 'ForbiddenAddressError';
  /** @param rule such as `127.0.0.1 is loopback` */
  constructor(host: string, rule: string) {
    super(`${host} is refused: ${rule}; add it to webhook-allow if deliveries may go there`);
  }
}

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
 * @returns `undefined` for anything else
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
   * Returns which rule forbids an address, as the end of a sentence; `undefined` where none does.
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

/** Returns the IPv4 address embedded in an IPv6 one, if a gateway or the operating system would send to it. */
function innerAddress(address: IPv6): IPv4 | undefined {
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  const bytes = address.toByteArray();
  switch (address.range()) {
    case 'rfc6052':
      // A network's own NAT64 prefix (64:ff9b:1::/48) embeds the address at a position that only the network knows.
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
