import http from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { Clock } from '../component/clock.js';
import { errorCode } from '../component/error-code.js';
import type { AddressRules } from './address-rules.js';
import { ForbiddenAddressError } from './forbidden-address-error.js';
import { guardedLookup, type ResolveAll } from './guarded-lookup.js';

/** What came of one request. */
export interface HttpOutcome {
  /** `null` where nothing was answered. */
  readonly status: number | null;
  readonly headers: Readonly<Record<string, string>>;
  /** The first 4 KiB. */
  readonly body: string;
  /** Why nothing was answered, in words; `null` where something was. */
  readonly error: string | null;
}

/** How requests are made. */
export interface WebhookHttpConfig {
  readonly rules: AddressRules;
  /** Until the head of the answer is there, in milliseconds. */
  readonly timeoutMs: number;
  readonly resolve: ResolveAll;
  /** Authorities in PEM, in place of the usual ones; for tests. */
  readonly ca?: string;
}

/** Of an answer's body no more is kept; the rest is not waited for. */
const MAX_BODY_BYTES = 4 * 1024;
/** Connections are kept for so long after an answer, in milliseconds: shorter than servers usually do. */
const KEPT_MS = 4_000;

/** Posts bodies to endpoints whose addresses are allowed. Redirects are answers like others, and no proxy is used. */
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

  /** One attempt; never throws for what the other side does. @param signal ends it early */
  async post(
    url: URL,
    headers: Readonly<Record<string, string>>,
    body: Uint8Array,
    signal: AbortSignal,
  ): Promise<HttpOutcome> {
    try {
      return await this.request(url, headers, body, signal).catch((error: unknown) => {
        // The other side has just closed the connection that was kept: nothing of this request was looked at.
        if (!(error instanceof StaleConnectionError) || signal.aborted) throw error;
        return this.request(url, headers, body, signal, false);
      });
    } catch (error) {
      return { status: null, headers: {}, body: '', error: wordsOf(error) };
    }
  }

  /** Closes the connections. */
  close(): void {
    this.agents.http.destroy();
    this.agents.https.destroy();
  }

  private request(
    url: URL,
    headers: Readonly<Record<string, string>>,
    body: Uint8Array,
    signal: AbortSignal,
    isKept = true,
  ): Promise<HttpOutcome> {
    const { rules, timeoutMs, ca } = this.config;
    const isSecure = url.protocol === 'https:';
    // Sockets look up names only: an address that stands in the URL is looked at here.
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const rule = isIP(host) === 0 ? undefined : rules.ruleAgainst(host);
    if (rule !== undefined) return Promise.reject(new ForbiddenAddressError(url.hostname, rule));
    return new Promise((resolve, reject) => {
      const options = {
        method: 'POST',
        agent: isKept && (isSecure ? this.agents.https : this.agents.http),
        lookup: this.lookup,
        ...(ca !== undefined && { ca }),
        signal,
        headers: { ...headers, 'content-length': String(body.byteLength) },
      };
      const request = isSecure ? https.request(url, options) : http.request(url, options);
      const timer = this.clock.after(timeoutMs, () =>
        request.destroy(new Error(`no answer within ${timeoutMs / 1_000} s`)),
      );
      request.once('close', () => timer.cancel());
      request.once('error', (error) => {
        const isStale = request.reusedSocket && STALE.has(errorCode(error) ?? '');
        reject(isStale ? new StaleConnectionError(error.message, { cause: error }) : error);
      });
      request.once('socket', (socket) => {
        // Whatever way the socket came to its address: what it is connected to is looked at once more.
        const check = () => {
          const found = rules.ruleAgainst(socket.remoteAddress ?? '');
          if (found !== undefined) request.destroy(new ForbiddenAddressError(url.hostname, found));
        };
        if (socket.connecting) socket.once('connect', check);
        else check();
      });
      request.once('response', (response) => {
        const answer = { status: response.statusCode ?? 0, headers: flat(response.headers), error: null };
        readStart(response).then(
          (text) => resolve({ ...answer, body: text }),
          // The status was answered in time; what its body would have said is not missed.
          () => resolve({ ...answer, body: '' }),
        );
      });
      request.end(body);
    });
  }
}

/** A kept connection was closed before it was used again. */
class StaleConnectionError extends Error {}
const STALE: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

async function readStart(response: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAX_BODY_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, MAX_BODY_BYTES).toString('utf8');
}

function flat(headers: http.IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
}

function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // A host with several addresses that all fail gives an AggregateError without a message of its own.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : undefined;
  return (first instanceof Error ? first.message : error.message).slice(0, 500);
}
