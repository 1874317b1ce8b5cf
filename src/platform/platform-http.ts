import { type Clock, isPassingStatus, parseRetryAfterMs, type RetryPolicy, retry, type Timer } from '../core/clock.js';
import { errorCode, reasonOf } from '../core/errors.js';
import { type HttpResponse, openExchange } from '../core/http-client.js';
import type { Logger } from '../core/logger.js';
import { readableBytes } from '../core/text.js';
import { PlatformError } from './platform-error.js';
import { parseEnvelope } from './platform-run.js';

/** Where a hosted platform is, and who asks. */
export interface PlatformHttpOptions {
  /** For example `https://cloud.example.com`; a path in it is kept. */
  readonly baseUrl: URL;
  /** A service account's or a person's token. */
  readonly token: string;
  /** For example `run-bridge/1.0.0`. */
  readonly userAgent: string;
}

/** What asking takes. */
export interface PlatformHttpDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly retryPolicy: RetryPolicy;
}

/** How often one thing is asked for. */
const MAX_ATTEMPTS = 8;
/** No byte for so long, in milliseconds, and an answer is given up. */
const SILENCE_MS = 60_000;
/** So long an answer may take altogether, in milliseconds. */
const MAX_ANSWER_MS = 900_000;
/** Of an answer that refuses no more is read. */
const MAX_ERROR_BYTES = 64 * 1024;

/**
 * Asks a hosted platform's API: one request at a time, the token in its header. No answer, 408, 429 and 5xx are asked
 * again, up to eight times, as long after as the platform asks for (`Retry-After`) or the retry policy says. Redirects are
 * not followed, so the token goes to no other host. An answer may be silent for 60 s and take 15 minutes.
 */
export class PlatformHttp {
  /** Whether anything was ever answered: an address that never worked is not asked again and again. */
  private hasAnswered = false;

  constructor(
    private readonly options: PlatformHttpOptions,
    private readonly deps: PlatformHttpDeps,
  ) {}

  /**
   * @param path below the base URL, for example `/api/v2/accounts/1/runs/`
   * @param read reads the answer; it is called again for an answer that was cut off
   * @throws PlatformError; what `signal` aborts with.
   */
  async get<T>(
    path: string,
    query: Readonly<Record<string, string>>,
    read: (answer: PlatformAnswer) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    const url = this.urlOf(path, query);
    const { clock, logger, retryPolicy } = this.deps;
    signal.throwIfAborted();
    const delayMs = (error: unknown, failedAttempts: number) => {
      if (!(error instanceof PassingError) || (error.isHopeless && !this.hasAnswered)) return null;
      const waitMs = retryPolicy.delayMs(failedAttempts, error.retryAfterMs);
      const fields = { url: where(url), reason: error.message, waitMs };
      logger.info(fields, 'retrying a request to the platform after a delay');
      return waitMs;
    };
    try {
      return await retry(() => this.attempt(url, read, signal), { clock, signal, maxAttempts: MAX_ATTEMPTS, delayMs });
    } catch (cause) {
      if (!(cause instanceof PassingError)) throw cause;
      throw new PlatformError('unavailable', `${where(url)}: ${cause.message}. ${this.advice()}`, { cause });
    }
  }

  private urlOf(path: string, query: Readonly<Record<string, string>>): URL {
    const url = new URL(this.options.baseUrl);
    url.pathname = url.pathname.replace(/\/+$/, '') + path;
    url.search = new URLSearchParams(query).toString();
    return url;
  }

  private advice(): string {
    if (!this.hasAnswered) return 'Check the address (--base-url) and the network';
    return `It was asked ${MAX_ATTEMPTS} times; pull again later`;
  }

  /** @throws PassingError where asking again may help; PlatformError where it would not */
  private async attempt<T>(url: URL, read: (answer: PlatformAnswer) => Promise<T>, signal: AbortSignal): Promise<T> {
    const limit = new SilenceLimit(this.deps.clock, SILENCE_MS, MAX_ANSWER_MS, signal);
    try {
      const response = await this.request(url, limit);
      this.hasAnswered = true;
      const isGiven = response.status >= 200 && response.status < 300;
      if (!isGiven) throw await this.refusal(url, response, limit);
      return await read(answerOf(url, response, limit));
    } finally {
      limit.end();
    }
  }

  private async request(url: URL, limit: SilenceLimit): Promise<HttpResponse> {
    const headers = {
      authorization: `Token ${this.options.token}`,
      'user-agent': this.options.userAgent,
      // Parquet is compressed already, and lengths stay what they are.
      'accept-encoding': 'identity',
    };
    try {
      return await openExchange({ method: 'GET', url, headers, onStale() {} }, limit.signal);
    } catch (error) {
      throw PassingError.from(error, limit);
    }
  }

  private async refusal(url: URL, response: HttpResponse, limit: SilenceLimit): Promise<PassingError | PlatformError> {
    const { status, headers } = response;
    const message = await messageOf(answerOf(url, response, limit));
    const problem = `it answered ${status}${message === null ? '' : ` (${message})`}`;
    if (isPassingStatus(status)) {
      const retryAfterMs = parseRetryAfterMs(headers['retry-after'], this.deps.clock.nowUnixMs());
      return new PassingError(problem, { retryAfterMs });
    }
    return statusError(url, status, problem, headers.location ?? null);
  }
}

/** What a wrong name, port or scheme gives. */
const HOPELESS = /^(ENOTFOUND|ECONNREFUSED|CERT_|ERR_TLS|ERR_SSL|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|EPROTO|HPE_)/;

/** The connection failed, was cut off or silent for too long, or the answer says that it is a bad moment. */
class PassingError extends Error {
  static from(error: unknown, limit: SilenceLimit): PassingError {
    if (limit.reason !== undefined) return new PassingError(limit.reason, { cause: error });
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    // A host with several addresses that all fail gives an AggregateError without a message.
    const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause;
    return new PassingError(reasonOf(first), { isHopeless: HOPELESS.test(errorCode(first) ?? ''), cause: error });
  }

  /** As the platform asks for, in milliseconds. */
  readonly retryAfterMs: number | null;
  /** Whether it looks like a wrong address rather than a bad moment. */
  readonly isHopeless: boolean;

  constructor(message: string, options: ErrorOptions & Partial<Pick<PassingError, 'retryAfterMs' | 'isHopeless'>>) {
    super(message, options);
    this.retryAfterMs = options.retryAfterMs ?? null;
    this.isHopeless = options.isHopeless ?? false;
  }
}

function answerOf(url: URL, response: HttpResponse, limit: SilenceLimit): PlatformAnswer {
  const { 'content-length': length, 'content-type': contentType } = response.headers;
  return {
    url: where(url),
    contentType: contentType ?? '',
    lengthBytes: length === undefined ? null : Number(length),
    body: bodyOf(response, limit),
  };
}

async function* bodyOf({ body }: HttpResponse, limit: SilenceLimit): AsyncGenerator<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await chunks.next().catch((error: unknown) => {
        throw PassingError.from(error, limit);
      });
      if (done === true) return;
      limit.note();
      yield value;
    }
  } finally {
    await chunks.return?.();
  }
}

/** What the platform says to people; `null` where it says nothing that can be understood. */
async function messageOf(answer: PlatformAnswer): Promise<string | null> {
  try {
    return parseEnvelope(await readJson(answer, MAX_ERROR_BYTES))?.message ?? null;
  } catch (error) {
    if (error instanceof PlatformError || error instanceof PassingError) return null;
    throw error;
  }
}

function statusError(url: URL, status: number, problem: string, location: string | null): PlatformError {
  const message = `${where(url)}: ${problem}`;
  if (status === 401 || status === 403) {
    const advice =
      'Set RUN_BRIDGE_PLATFORM_TOKEN to a token of the platform (of a service account or a person) that may read the account';
    return new PlatformError('unauthorized', `${message}. ${advice}`);
  }
  if (status === 404) return new PlatformError('notFound', message);
  if (status >= 300 && status < 400) {
    const advice = `It points to ${location ?? 'nowhere'}; the token is not sent there: put the right address into --base-url`;
    return new PlatformError('refused', `${message}. ${advice}`);
  }
  return new PlatformError('refused', `${message}. Check the address (--base-url) and what was asked for`);
}

/** An address without its query, which is long and tells little. */
function where(url: URL): string {
  return url.origin + url.pathname;
}

/** Gives up a request that is silent for too long, or takes too long altogether; also when somebody else stops it. */
export class SilenceLimit {
  /** Why it was given up, in words; `undefined` while it was not, or when somebody else stopped it. */
  reason: string | undefined;
  private readonly controller = new AbortController();
  private silence: Timer | undefined;
  private readonly whole: Timer;
  private readonly onStop = () => this.controller.abort(this.stop.reason);

  constructor(
    private readonly clock: Clock,
    private readonly silenceMs: number,
    wholeMs: number,
    private readonly stop: AbortSignal,
  ) {
    this.whole = clock.after(wholeMs, () => this.giveUp(`not done within ${wholeMs / 1_000} s`));
    // Not AbortSignal.any: it would stay with a signal that lives as long as the program.
    stop.addEventListener('abort', this.onStop, { once: true });
    if (stop.aborted) this.onStop();
    this.note();
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Something came. */
  note(): void {
    this.silence?.cancel();
    this.silence = this.clock.after(this.silenceMs, () => this.giveUp(`silent for ${this.silenceMs / 1_000} s`));
  }

  /** The request is over. */
  end(): void {
    this.silence?.cancel();
    this.whole.cancel();
    this.stop.removeEventListener('abort', this.onStop);
  }

  private giveUp(reason: string): void {
    this.reason = reason;
    this.controller.abort(new Error(reason));
  }
}

/**
 * Reads an answer as JSON.
 * @throws PlatformError `tooLarge`, or `malformed` when it is no JSON.
 */
export async function readJson({ url, contentType, body }: PlatformAnswer, maxBytes: number): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let byteCount = 0;
  for await (const chunk of body) {
    byteCount += chunk.byteLength;
    if (byteCount > maxBytes) {
      throw new PlatformError('tooLarge', `${url}: the answer is larger than ${readableBytes(maxBytes)}`);
    }
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch (cause) {
    const what = contentType === '' ? 'something' : contentType;
    throw new PlatformError(
      'malformed',
      `${url}: answered with ${what} that is not JSON. Check that --base-url is the platform's address for the API`,
      { cause },
    );
  }
}

/** An answer of the platform, its body not yet read. */
export interface PlatformAnswer {
  /** As asked for, without query and token; for messages. */
  readonly url: string;
  readonly contentType: string;
  /** As announced; `null` where it is not. */
  readonly lengthBytes: number | null;
  /** Throws when it is cut off; `PlatformHttp` then asks again. */
  readonly body: AsyncIterable<Uint8Array>;
}
