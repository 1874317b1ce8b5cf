import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import type { OtlpEncoding } from '../otlp/otlp-codec.js';
import type { ResourceValue } from '../record/attributes.js';
import type { Signal } from '../record/record-batch.js';
import type { RedactionLevel } from '../redaction/known-names.js';
import type { SetSwitches } from './mapping-options.js';

/** PEM files of a TLS connection; relative paths start from the working directory. */
export interface TlsFiles {
  /** Authorities that vouch for the receiver, in place of the usual ones. */
  readonly caFile?: string;
  /** The sender's own certificate and its key. */
  readonly certFile?: string;
  readonly keyFile?: string;
}

/** The same as PEM texts. The receiver's certificate is always verified, against `ca` in place of the usual authorities where given. */
export interface TlsTexts {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** Where and how one signal is sent. */
export interface SignalEndpoint {
  /** Used as it is: it has its `/v1/traces` or `/v1/logs`. */
  readonly url: string;
  /** Header names in lower case; values are secrets. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly compression: 'none' | 'gzip';
  readonly encoding: OtlpEncoding;
  readonly tls: TlsFiles;
}

/** A place that runs are exported to by OTLP over HTTP. */
export interface DestinationConfig {
  readonly name: string;
  /** What it gets; a signal that is left out is not sent. */
  readonly endpoints: Readonly<Partial<Record<Signal, SignalEndpoint>>>;
  /** Whether OpenTelemetry's own exporter sends its spans; left out: no. */
  readonly usesSdk?: boolean;
  /** What was not taken for this long, in milliseconds, is given up; `off`: nothing is; left out: as everywhere. */
  readonly maxBacklogAgeMs?: number | 'off';
  /** `null`: as everywhere. */
  readonly redaction: RedactionLevel | null;
  /** Mapping switches that differ from those set for every destination, by name. */
  readonly mapping: SetSwitches;
  /** Resource attributes of its own, above all others. */
  readonly resource?: Readonly<Record<string, ResourceValue>>;
}

/** Reads an address that can be posted to. @returns `undefined` for what is none, and where user or password are not percent-encoded */
export function parseHttpUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return undefined;
  try {
    decodeURIComponent(`${url.username}${url.password}`);
    return url;
  } catch {
    return undefined;
  }
}

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** What the connection and the body decide: set to something else, requests fail or are refused. */
const OWN_HEADERS =
  /^(connection|content-encoding|content-length|expect|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade)$/i;

/** Whether a destination can be sent a header. */
export function isSendableHeader(name: string, value: string): boolean {
  return HEADER_NAME.test(name) && HEADER_VALUE.test(value) && !OWN_HEADERS.test(name);
}

/** Reads the files of a TLS connection. @throws Error naming the file that cannot be read, or holds something else. */
export async function loadTls(files: TlsFiles): Promise<TlsTexts> {
  return {
    ...(files.caFile === undefined ? {} : { ca: await readPem(files.caFile) }),
    ...(files.certFile === undefined ? {} : { cert: await readPem(files.certFile) }),
    ...(files.keyFile === undefined ? {} : { key: await readPem(files.keyFile) }),
  };
}

async function readPem(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new Error(`the certificate or key file ${path} cannot be read; check the path and its permissions`, {
      cause,
    });
  });
  if (/-----BEGIN [A-Z0-9 ]+-----/.test(text)) return text;
  throw new Error(`the certificate or key file ${path} holds none in PEM; check the path, or convert it`);
}

/** Where the program itself listens. */
export interface OwnAddress {
  /** As it listens: an address, a name, or `0.0.0.0` and `::` for all. */
  readonly host: string;
  readonly port: number;
}

/** This machine's names for itself. */
export const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '::1']);
const ANY: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/**
 * Finds destinations that are the program itself, which would send every record round in a circle.
 * @param ownHosts addresses and names of this machine; they count where it listens on all of them. `null`: it listens nowhere.
 * @returns a sentence for each.
 */
export function findLoops(
  destinations: readonly DestinationConfig[],
  own: readonly OwnAddress[],
  ownHosts: readonly string[] | null,
): readonly string[] {
  if (ownHosts === null) return [];
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
export function canonicalHost(host: string): string {
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
