import { isIP } from 'node:net';
import type { Logger } from './logger.js';

/** The names by which containers reach their host. */
const DOCKER_HOST = 'host.docker.internal';
/** Names that were refused are logged once each, so many at most. */
const MAX_LOGGED = 20;

/**
 * The names a listener accepts at a loopback address. A page of any web site may have its name resolve to 127.0.0.1 and
 * then reads responses as its own origin (DNS rebinding); its requests still have the name in `Host`. Other addresses are
 * not checked: they are meant to be reached by names that cannot be known here.
 */
export class HostCheck {
  private readonly exact: ReadonlySet<string>;
  private readonly suffixes: readonly string[];
  private readonly logged = new Set<string>();

  /** @param names allowed beside `localhost`, addresses and `host.docker.internal`; a leading dot matches all subdomains */
  constructor(
    names: readonly string[] = [],
    private readonly logger?: Logger,
  ) {
    const known = names.map((name) => name.toLowerCase());
    this.exact = new Set(['localhost', DOCKER_HOST, ...known.filter((name) => !name.startsWith('.'))]);
    this.suffixes = known.filter((name) => name.startsWith('.'));
  }

  /**
   * Whether a request may be answered.
   * @param host the `Host` or `:authority` header; HTTP/1.0 may omit it
   * @param localAddress of the socket
   * @returns `undefined` if it may; else a sentence for its sender
   */
  findProblem(host: string | undefined, localAddress: string | undefined): string | undefined {
    if (host === undefined || localAddress === undefined || !isLoopback(localAddress.replace(/^::ffff:/i, ''))) {
      return undefined;
    }
    const name = nameIn(host);
    if (this.isKnown(name)) return undefined;
    const shown = /^[\w.-]{1,253}$/.test(name) ? name : 'this Host';
    if (!this.logged.has(shown) && this.logged.size < MAX_LOGGED) {
      this.logged.add(shown);
      this.logger?.warn({ host: shown }, 'a request was refused for its Host; allowed-hosts adds names');
    }
    return `${shown} is no name of this address: say localhost or the address itself, or add the name to allowed-hosts.`;
  }

  private isKnown(name: string): boolean {
    return this.exact.has(name) || isIP(name) !== 0 || this.suffixes.some((suffix) => name.endsWith(suffix));
  }
}

/** Names of the machine: its own, short and with its domains, and those of its hosts file. */
export function machineNames(hostname: string, hostsFile: string, resolverFile: string): readonly string[] {
  const own = hostname.toLowerCase();
  const [short = ''] = own.split('.');
  const lines = hostsFile.split('\n').map((line) => line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/).slice(1));
  const aliases = lines.filter((names) => names.includes(own) || names.includes(short)).flat();
  const domains = resolverFile
    .split('\n')
    .flatMap((line) => /^(?:search|domain)\s+(.*)/.exec(line)?.[1]?.split(/\s+/) ?? []);
  const qualified = domains.filter((domain) => domain !== '' && domain !== '.').map((domain) => `${short}.${domain}`);
  return [...new Set([own, short, ...aliases, ...qualified])].filter((name) => name !== '');
}

/** Without a port, the brackets of IPv6 and the dot at the end. */
function nameIn(host: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d*)?$/.exec(host)?.[1];
  return (bracketed ?? host.replace(/:\d*$/, '').replace(/\.$/, '')).toLowerCase();
}

/** Whether a host of an address, or of a URL, can be reached from this machine alone. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || /^\[?::1\]?$/.test(host) || /^127\.\d+\.\d+\.\d+$/.test(host);
}
