import type { LookupAddress } from 'node:dns';
import http from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { Clock } from '../component/clock.js';
import { exchange, exchangeErrorText, type HttpAnswer, StaleConnectionError } from '../delivery/http-exchange.js';
import type { AddressRules } from './address-rules.js';

/** What came of one request. */
export interface HttpOutcome {
  /** `null` where nothing was answered. */
  readonly status: number | null;
  readonly headers: Readonly<Record<string, string>>;
  /** The first 4 KiB. */
  readonly body: string;
  /** Why nothing was answered, in words; `null` where something was. */
  readonly error: string | null;
  /** What ended the kept connection on which it was sent first, where it was sent once more, on a new one; else `null`. */
  readonly resentAfter: string | null;
}

/** How requests are made. */
export interface WebhookHttpConfig {
  readonly rules: AddressRules;
  /** Until the head of the answer is there, in milliseconds; what has come of its body by then is kept. */
  readonly timeoutMs: number;
  readonly resolve: ResolveAll;
  /** Authorities in PEM, in place of the usual ones; for tests. */
  readonly ca?: string;
}

/** Of an answer's body no more is kept; the rest is not waited for. */
const MAX_BODY_BYTES = 4 * 1024;
/** What is said of an error is cut here, in characters. */
const MAX_ERROR_LENGTH = 500;
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

  /**
   * One attempt; never throws for what the other side does. What is sent on a kept connection that ends before a byte of the
   * answer is sent once more on a new one: the other side may have closed it before it saw the request.
   * @param signal ends it early
   */
  async post(
    url: URL,
    headers: Readonly<Record<string, string>>,
    body: Uint8Array,
    signal: AbortSignal,
  ): Promise<HttpOutcome> {
    const endMs = this.clock.monotonicMs() + this.config.timeoutMs;
    let resentAfter: string | null = null;
    try {
      const answer = await this.request(url, headers, body, signal, { isKept: true, endMs }).catch((error: unknown) => {
        if (!(error instanceof StaleConnectionError) || signal.aborted) throw error;
        resentAfter = exchangeErrorText(error, MAX_ERROR_LENGTH);
        return this.request(url, headers, body, signal, { isKept: false, endMs });
      });
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

  private request(
    url: URL,
    headers: Readonly<Record<string, string>>,
    body: Uint8Array,
    signal: AbortSignal,
    { isKept, endMs }: { readonly isKept: boolean; readonly endMs: number },
  ): Promise<HttpAnswer> {
    const { rules, timeoutMs, ca } = this.config;
    // Sockets look up names only: an address that stands in the URL is looked at here.
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const rule = isIP(host) === 0 ? undefined : rules.ruleAgainst(host);
    if (rule !== undefined) return Promise.reject(new ForbiddenAddressError(url.hostname, rule));
    const refuse = (remoteAddress: string) => {
      // Whatever way the socket came to its address: what it is connected to is looked at once more.
      const found = rules.ruleAgainst(remoteAddress);
      return found === undefined ? undefined : new ForbiddenAddressError(url.hostname, found);
    };
    const agent = isKept && (url.protocol === 'https:' ? this.agents.https : this.agents.http);
    const timeoutMessage = `no answer within ${timeoutMs / 1_000} s`;
    return exchange(
      { url, agent, headers, body, lookup: this.lookup, refuse, ...(ca !== undefined && { ca }) },
      {
        ...{ clock: this.clock, signal, timeoutMessage, maxBodyBytes: MAX_BODY_BYTES },
        timeoutMs: Math.max(0, endMs - this.clock.monotonicMs()),
      },
    );
  }
}

function flat(headers: http.IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
}

/** Resolves a name to all of its addresses. */
export type ResolveAll = (hostname: string) => Promise<readonly LookupAddress[]>;

/**
 * A `lookup` for sockets that gives them allowed addresses only. The socket connects to what was looked at: a name that
 * resolves to another address a moment later changes nothing.
 */
export function guardedLookup(rules: AddressRules, resolve: ResolveAll): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (addresses) => {
        const allowed = addresses.filter(({ address }) => rules.ruleAgainst(address) === undefined);
        const wanted = allowed.filter(({ family }) => !options.family || family === options.family);
        const [first] = wanted;
        if (first === undefined) {
          const rule = addresses.map(({ address }) => rules.ruleAgainst(address)).find((one) => one !== undefined);
          callback(new ForbiddenAddressError(hostname, rule ?? 'it has no address'), [], 0);
        } else if (options.all === true) callback(null, [...wanted]);
        else callback(null, first.address, first.family);
      },
      (error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), [], 0),
    );
  };
}

/** An endpoint's address is one that nothing is sent to. The message says which, by which rule, and what allows it. */
export class ForbiddenAddressError extends Error {
  override readonly name = 'ForbiddenAddressError';
  /** @param rule such as `127.0.0.1 is loopback` */
  constructor(host: string, rule: string) {
    super(`${host} is refused: ${rule}; add it to webhook-allow if deliveries may go there`);
  }
}
