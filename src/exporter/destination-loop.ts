import { isIP } from 'node:net';
import type { DestinationConfig } from './destination-config.js';

/** Where the program itself listens. */
export interface OwnAddress {
  /** As it listens: an address, a name, or `0.0.0.0` and `::` for all. */
  readonly host: string;
  readonly port: number;
}

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '::1']);
const ANY: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/**
 * Finds destinations that are the program itself, which would send every record round in a circle.
 * @param ownHosts addresses and names of this machine; they count where it listens on all of them.
 * @returns a sentence for each.
 */
export function findLoops(
  destinations: readonly DestinationConfig[],
  own: readonly OwnAddress[],
  ownHosts: readonly string[],
): readonly string[] {
  return destinations.flatMap((destination) =>
    Object.values(destination.endpoints)
      .map((endpoint) => new URL(endpoint.url))
      .filter((url) => own.some((address) => isSame(url, address, ownHosts)))
      .slice(0, 1)
      .map(
        (url) =>
          `the destination ${destination.name} (${url.host}) is run-bridge itself, so every span would come back; export to another address, or listen on another port with --http`,
      ),
  );
}

function isSame(url: URL, own: OwnAddress, ownHosts: readonly string[]): boolean {
  if (portOf(url) !== own.port) return false;
  const target = canonicalHost(url.hostname);
  const host = canonicalHost(own.host);
  if (target === host) return true;
  // Connecting to "all addresses" reaches this machine.
  const isTargetLocal = LOOPBACK.has(target) || ANY.has(target);
  if (ANY.has(host)) {
    return isTargetLocal || target.startsWith('127.') || ownHosts.some((name) => canonicalHost(name) === target);
  }
  return isTargetLocal && LOOPBACK.has(host);
}

function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

/** One spelling for a host: lower case, no brackets, no final dot, IPv4 out of its IPv6 clothes. */
function canonicalHost(host: string): string {
  const bare = host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .replace(/%.*$/, '');
  if (bare.endsWith('.localhost')) return 'localhost';
  if (isIP(bare) !== 6) return bare;
  const { hostname } = new URL(`http://[${bare}]`);
  const mapped = /^\[::ffff:([0-9a-f]+):([0-9a-f]+)\]$/.exec(hostname);
  if (mapped === null) return hostname.slice(1, -1);
  const [high, low] = [Number.parseInt(mapped[1] ?? '', 16), Number.parseInt(mapped[2] ?? '', 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}
