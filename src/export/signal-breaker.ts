import type { Clock, RetryPolicy, Timer } from '../core/clock.js';
import type { Logger } from '../core/logger.js';
import type { Signal } from '../record/record-batch.js';
import type { Destination, SendResult, SignalStatus } from './destination.js';

/**
 * What an answer says of the request that it answers.
 * - `taken`: all of it, or all but what a partial success rejects, which is the receiver's last word on it.
 * - `later`: the receiver takes nothing now, or nobody heard it; the same request is sent until it is answered otherwise.
 * - `closed`: the receiver, or the configuration, is not ready for anything (no right, no such place, elsewhere). That says
 *   nothing of the data, which waits as with `later`.
 * - `tooLarge`: less of it may be taken. One record alone is refused for good.
 * - `refused`: there is something in it that is never taken. Halves of it are tried until the record is alone, which is given up.
 * - `failed`: nobody knows whether the data or the receiver is at fault. It is tried a few times, then by halves; a record
 *   alone is given up once the receiver has taken others meanwhile.
 */
export type AnswerMeaning = 'taken' | 'later' | 'closed' | 'tooLarge' | 'refused' | 'failed';

/** Attempts of a request that fails, before halves of it are tried. */
export const ATTEMPTS_BEFORE_HALVING = 4;
/** Attempts of a record that fails alone, those of the request it came in included, before it is given up. */
export const ATTEMPTS_OF_ONE = 7;
/** Records that are refused alone, in a row without anything that is taken: what follows is refused as it comes, for it is not about single records. */
export const MAX_REFUSED_ALONE = 16;
/** Requests that are halved for failing, in a row without anything that is taken: it is not about the records. */
export const MAX_FRUITLESS_HALVINGS = 16;

/** OTLP names 429, 502, 503 and 504 (https://opentelemetry.io/docs/specs/otlp/#failures-1); 408 says the same of itself. */
const LATER: ReadonlySet<number> = new Set([408, 425, 429, 502, 503, 504]);
/** Credentials, their rights, addresses, methods and encodings: what has to be put right somewhere else than in the data. */
const CLOSED: ReadonlySet<number> = new Set([401, 402, 403, 404, 405, 406, 407, 415, 421, 426, 511]);
/** What OTLP has a receiver answer to data that it cannot read, and what others answer to it. */
const REFUSED: ReadonlySet<number> = new Set([0, 400, 422]);
const TOO_LARGE = 413;

/** How receivers say that a request is too large, where the status does not: the Collector's HTTP server answers 400, what forwards to gRPC passes on its words. */
const SIZE_WORDS =
  /too large|larger than|too big|exceed\w* .{0,40}(size|limit|length|bytes)|(size|length|bytes) .{0,40}exceed|max\w* (\w+ ){0,3}(size|length)\b.{0,40}(reached|exceeded)/i;
/** Said by gRPC alone, with whatever status. */
const GRPC_SIZE_WORDS = /received message (after decompression )?larger than max|message larger than max/i;

/** Returns what the answer to a request means. */
export function meaningOf(result: SendResult): AnswerMeaning {
  if (result.kind === 'accepted') return 'taken';
  const { status, message } = result;
  if (status === null) return 'later';
  if (status === TOO_LARGE || GRPC_SIZE_WORDS.test(message)) return 'tooLarge';
  if (LATER.has(status) || (status > 0 && status < 200)) return 'later';
  if (CLOSED.has(status) || (status >= 300 && status < 400)) return 'closed';
  if ((status === 400 || status >= 500) && SIZE_WORDS.test(message)) return 'tooLarge';
  return REFUSED.has(status) ? 'refused' : 'failed';
}

/** What is known of a request when it is answered. */
export interface AnsweredRequest {
  /** Records that the answer speaks of. */
  readonly itemCount: number;
  /** Attempts that failed, this one included. */
  readonly failedAttempts: number;
  /** Whether the receiver has taken something else since this request failed first. */
  readonly isReceiverWell: boolean;
}

/** What is to be done with a request that was answered, beside what the circuit breaker makes of it. */
export type NextStep = 'settle' | 'halve' | 'giveUp';

/** @param fruitless what was done in a row without anything that was taken */
export function nextStep(
  result: SendResult,
  { itemCount, failedAttempts, isReceiverWell }: AnsweredRequest,
  fruitless: { readonly refusedAlone: number; readonly halvings: number },
): NextStep {
  const isAlone = itemCount === 1;
  switch (meaningOf(result)) {
    case 'taken':
    case 'later':
    case 'closed':
      return 'settle';
    case 'tooLarge':
      return isAlone ? 'giveUp' : 'halve';
    case 'refused':
      // Status 0 is our own: a record that cannot be sent at all, or a signal that is not asked for.
      return isAlone || result.status === 0 || fruitless.refusedAlone >= MAX_REFUSED_ALONE ? 'giveUp' : 'halve';
    case 'failed':
      if (isAlone) return isReceiverWell && failedAttempts >= ATTEMPTS_OF_ONE ? 'giveUp' : 'settle';
      return failedAttempts >= ATTEMPTS_BEFORE_HALVING && fruitless.halvings < MAX_FRUITLESS_HALVINGS
        ? 'halve'
        : 'settle';
  }
}

/** Statuses of a receiver that has no endpoint for logs. */
const NO_LOGS: ReadonlySet<number> = new Set([404, 415, 501]);
/** The circuit breaker opens after this many failures in a row, over all requests: nothing is sent to the destination for a while. */
const MAX_CHANCE_FAILURES = 4;
/** A pause for failures that may be about one record is not doubled more often: it is up to four seconds. */
const MAX_DOUBLINGS_OF_ONE = 3;
/** Different statuses of refusal that are logged, each once. */
const MAX_LOGGED_STATUSES = 20;

/**
 * What comes after an attempt. `done`: the items were taken, or refused for good. `retry`: this request failed, others may
 * go on. `paused`: the destination takes nothing now.
 */
export type AfterAttempt = 'done' | 'retry' | 'paused';

type LoggedOnce = 'partial' | 'failure' | 'pause' | 'halving';

/** The circuit breaker of one signal to one destination: whether requests may be sent now, and what became of those before. */
export class SignalBreaker {
  private isOff: boolean;
  /** The pause in which nothing is sent; `undefined` when there is none. */
  private pause: Timer | undefined;
  private pausedUntilMs = 0;
  private failedInRow = 0;
  private readonly counts = {
    sentCount: 0,
    refusedCount: 0,
    rejectedCount: 0,
    forwardedCount: 0,
    failedAttemptCount: 0,
  };
  private readonly loggedStatuses = new Set<number>();
  /** What is logged once: its first times since the start, or since the destination took something. */
  private readonly logged = new Set<LoggedOnce>();
  /** Requests that were taken since the start. */
  private takenCount = 0;
  /** The last failure in words; `null` after a success. */
  lastError: string | null = null;

  /** @param isAsked whether the destination is to get the signal. @param onReady called when there is nothing to wait for any more: a pause is over, or the signal is off. */
  constructor(
    readonly signal: Signal,
    isAsked: boolean,
    private readonly destination: string,
    private readonly deps: { readonly clock: Clock; readonly logger: Logger; readonly policy: RetryPolicy },
    private readonly onReady: () => void,
  ) {
    this.isOff = !isAsked;
  }

  get state(): SignalStatus['state'] {
    if (this.isOff) return 'off';
    return this.pause === undefined ? 'ready' : 'waiting';
  }

  /** Returns whether the destination failed so often that it gets one request at a time, until it takes one. */
  get isProbing(): boolean {
    return this.failedInRow > MAX_CHANCE_FAILURES;
  }

  get status(): SignalStatus {
    return { state: this.state, ...this.counts };
  }

  /** Returns how many requests were taken since the start: whether it grows says whether the receiver is well. */
  get takenRequestCount(): number {
    return this.takenCount;
  }

  /**
   * Returns whether an answer may say that the receiver takes no logs at all: it may as well be ill, so it is asked for something else before it counts. One that
   * has taken some does take them.
   */
  isDenial(result: SendResult): boolean {
    const isUnproven = this.signal === 'logs' && this.takenCount === 0;
    return result.kind !== 'accepted' && isUnproven && NO_LOGS.has(result.status ?? 0);
  }

  /** A request is tried again by halves. */
  halve(result: SendResult, itemCount: number): void {
    this.countFailure(result);
    this.logOnce(
      'halving',
      { status: result.status, answer: result.message, itemCount },
      'the destination did not take a request; trying its halves, further ones are only counted',
    );
  }

  /** A request is given up, whatever its answer was. */
  giveUp({ status, message }: SendResult, itemCount: number): 'done' {
    if (this.isOff) return 'done';
    this.failedInRow = 0;
    this.lastError = `refused with status ${status ?? 0}: ${message}`;
    this.counts.refusedCount += itemCount;
    if (this.loggedStatuses.has(status ?? 0) || this.loggedStatuses.size >= MAX_LOGGED_STATUSES) return 'done';
    this.loggedStatuses.add(status ?? 0);
    this.log(
      'error',
      { status: status ?? 0, answer: message, itemCount },
      'the destination refused an export, which is not sent again; check its endpoint and headers; further refusals are counted only',
    );
    return 'done';
  }

  /** Takes down that the destination takes nothing now, and for what reason. */
  close(result: SendResult): 'done' | 'paused' {
    if (this.isOff) return 'done';
    this.countFailure(result);
    if (this.pause !== undefined) return 'paused';
    this.failedInRow = Math.max(this.failedInRow + 1, MAX_CHANCE_FAILURES + 1);
    this.openFor(result, null, CLOSED_TEXT);
    return 'paused';
  }

  /** Takes down what became of an attempt. @param isLogDenialSure whether a receiver that denies logs is known to be well; left out: it counts as well */
  settle(
    result: SendResult,
    itemCount: number,
    kind: 'sent' | 'forwarded' = 'sent',
    isLogDenialSure = true,
  ): AfterAttempt {
    if (this.isOff) return 'done';
    if (this.isDenial(result)) {
      if (!isLogDenialSure) return this.close(result);
      this.isOff = true;
      const fields = { status: result.status, answer: result.message };
      this.log('warn', fields, 'the destination takes no logs; they go as span events alone until the next start');
      this.onReady();
      return 'done';
    }
    if (result.kind === 'accepted') {
      this.accept(result.rejectedCount, result.message, itemCount, kind);
      return 'done';
    }
    switch (meaningOf(result)) {
      case 'taken':
      case 'tooLarge':
      case 'refused':
        return this.giveUp(result, itemCount);
      case 'closed':
        return this.close(result);
      case 'later':
      case 'failed':
        return this.fail(result);
    }
  }

  private accept(rejectedCount: number, message: string, itemCount: number, kind: 'sent' | 'forwarded'): void {
    if (this.logged.delete('pause')) this.log('info', {}, 'the destination accepts exports again');
    this.failedInRow = 0;
    this.takenCount += 1;
    this.lastError = null;
    this.counts[`${kind}Count`] += Math.max(0, itemCount - rejectedCount);
    this.counts.rejectedCount += rejectedCount;
    if (rejectedCount === 0) return;
    this.logOnce(
      'partial',
      { rejectedCount, answer: message },
      'the destination rejected a part of an export; further ones are counted only',
    );
  }

  private fail(result: SendResult): AfterAttempt {
    const retryAfterMs = result.kind === 'retryable' ? result.retryAfterMs : null;
    this.countFailure(result);
    const isAskedToWait = result.status === 429 || (retryAfterMs !== null && retryAfterMs > 0);
    // Requests that were under way when the pause began say nothing new by failing, too.
    if (this.pause !== undefined && !isAskedToWait) return 'paused';
    this.failedInRow += 1;
    if (isAskedToWait) this.failedInRow = Math.max(this.failedInRow, MAX_CHANCE_FAILURES + 1);
    if (!this.isProbing) {
      const text = 'a request to the destination failed; retrying, further failures are only counted';
      this.logOnce('failure', { status: result.status, answer: result.message }, text);
      return 'retry';
    }
    const text = 'the destination does not accept exports; they wait on disk, retrying';
    // It may be about one record: others are not to wait long for it.
    const maxDoublings = meaningOf(result) === 'failed' ? MAX_DOUBLINGS_OF_ONE : undefined;
    this.openFor(result, retryAfterMs, text, maxDoublings);
    return 'paused';
  }

  private countFailure({ status, message }: SendResult): void {
    this.counts.failedAttemptCount += 1;
    this.lastError = status === null ? message : `status ${status}: ${message}`;
  }

  /** Nothing is sent for a while. */
  private openFor(
    { status, message }: SendResult,
    retryAfterMs: number | null,
    text: string,
    maxDoublings = Number.POSITIVE_INFINITY,
  ): void {
    const delayMs = this.deps.policy.delayMs(
      Math.min(this.failedInRow - MAX_CHANCE_FAILURES, maxDoublings),
      retryAfterMs,
    );
    this.logOnce('pause', { status, answer: message, delayMs }, text);
    // Of several pauses the one that ends last counts.
    const untilMs = this.deps.clock.monotonicMs() + delayMs;
    if (this.pause !== undefined && untilMs <= this.pausedUntilMs) return;
    this.pause?.cancel();
    this.pausedUntilMs = untilMs;
    this.pause = this.deps.clock.after(delayMs, () => {
      this.pause = undefined;
      this.onReady();
    });
  }

  private logOnce(key: LoggedOnce, fields: Record<string, string | number | null>, message: string): void {
    if (this.logged.has(key)) return;
    this.logged.add(key);
    this.log('warn', fields, message);
  }

  private log(level: 'info' | 'warn' | 'error', fields: Record<string, string | number | null>, message: string): void {
    this.deps.logger[level]({ destination: this.destination, signal: this.signal, ...fields }, message);
  }
}

const CLOSED_TEXT =
  'the destination lets nothing in; check its endpoint, headers and the rights that they give; exports wait on disk, retrying';

/** Returns whether a destination that has denied logs takes spans and denies logs all the same; for one that cannot be asked its answer counts. */
export async function deniesLogs(
  destination: Destination,
  breaker: SignalBreaker,
  abort: AbortSignal,
): Promise<boolean> {
  if (destination.ask === undefined) return true;
  if (!destination.signals.includes('traces')) return false;
  const meaning = meaningOf(await destination.ask('traces', abort));
  if (meaning !== 'taken' && meaning !== 'refused') return false;
  // It may be well only since it denied them.
  return breaker.isDenial(await destination.ask('logs', abort));
}
