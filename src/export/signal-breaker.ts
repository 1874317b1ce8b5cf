import type { Clock, Timer } from '../core/clock.js';
import type { Logger } from '../core/logger.js';
import type { RetryPolicy } from '../core/retry-policy.js';
import type { Signal } from '../record/record-batch.js';
import type { SignalStatus } from './destination.js';
import type { SendResult } from './transport.js';

/** Statuses by which a receiver says that it has no place for logs at all. */
const NO_LOGS: ReadonlySet<number> = new Set([404, 415, 501]);
/** The circuit breaker opens after this many failures in a row, over all requests: nothing is sent to the destination for a while. */
const MAX_CHANCE_FAILURES = 4;
/** Different statuses of refusal that are logged, each once. */
const MAX_LOGGED_STATUSES = 20;

/**
 * What comes after an attempt. `done`: the items were taken, or refused for good. `retry`: this request failed, others may
 * go on. `paused`: the destination takes nothing now.
 */
export type AfterAttempt = 'done' | 'retry' | 'paused';

/** The circuit breaker of one signal to one destination: whether requests may be sent now, and what became of those before. */
export class SignalBreaker {
  private isOff: boolean;
  /** The pause in which nothing is sent; `undefined` when there is none. */
  private pause: Timer | undefined;
  private pausedUntilMs = 0;
  private failedInRow = 0;
  private readonly counts = { sent: 0, refused: 0, rejected: 0, forwarded: 0, failedAttempts: 0 };
  private readonly loggedStatuses = new Set<number>();
  private hasLoggedPartial = false;
  private hasLoggedFailure = false;
  private hasLoggedPause = false;
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

  /** Whether the destination failed so often that it gets one request at a time, until it takes one. */
  get isProbing(): boolean {
    return this.failedInRow > MAX_CHANCE_FAILURES;
  }

  get status(): SignalStatus {
    const { sent, refused, rejected, forwarded, failedAttempts } = this.counts;
    return {
      state: this.state,
      sentCount: sent,
      refusedCount: refused,
      rejectedCount: rejected,
      forwardedCount: forwarded,
      failedAttemptCount: failedAttempts,
    };
  }

  /** Takes down what became of an attempt. */
  settle(result: SendResult, itemCount: number, kind: 'sent' | 'forwarded' = 'sent'): AfterAttempt {
    if (this.isOff) return 'done';
    if (result.kind !== 'accepted' && this.signal === 'logs' && NO_LOGS.has(result.status ?? 0)) {
      this.isOff = true;
      const fields = { status: result.status, answer: result.message };
      this.log('warn', fields, 'the destination takes no logs; they go as span events alone until the next start');
      this.onReady();
      return 'done';
    }
    switch (result.kind) {
      case 'accepted':
        this.accept(result.rejectedCount, result.message, itemCount, kind);
        return 'done';
      case 'refused':
        this.refuse(result.status, result.message, itemCount);
        return 'done';
      case 'retryable':
        return this.fail(result);
    }
  }

  private accept(rejectedCount: number, message: string, itemCount: number, kind: 'sent' | 'forwarded'): void {
    if (this.hasLoggedPause) this.log('info', {}, 'the destination accepts exports again');
    this.hasLoggedPause = false;
    this.failedInRow = 0;
    this.lastError = null;
    this.counts[kind] += Math.max(0, itemCount - rejectedCount);
    this.counts.rejected += rejectedCount;
    if (rejectedCount === 0 || this.hasLoggedPartial) return;
    this.hasLoggedPartial = true;
    this.log(
      'warn',
      { rejectedCount, answer: message },
      'the destination rejected a part of an export; further ones are counted only',
    );
  }

  private refuse(status: number, message: string, itemCount: number): void {
    this.failedInRow = 0;
    this.lastError = `refused with status ${status}: ${message}`;
    this.counts.refused += itemCount;
    if (this.loggedStatuses.has(status) || this.loggedStatuses.size >= MAX_LOGGED_STATUSES) return;
    this.loggedStatuses.add(status);
    this.log(
      'error',
      { status, answer: message, itemCount },
      'the destination refused an export, which is not sent again; check its endpoint and headers; further refusals are counted only',
    );
  }

  private fail({ status, retryAfterMs, message }: Extract<SendResult, { readonly kind: 'retryable' }>): AfterAttempt {
    this.counts.failedAttempts += 1;
    this.lastError = status === null ? message : `status ${status}: ${message}`;
    const isAskedToWait = status === 429 || (retryAfterMs !== null && retryAfterMs > 0);
    // Requests that were under way when the pause began say nothing new by failing, too.
    if (this.pause !== undefined && !isAskedToWait) return 'paused';
    this.failedInRow += 1;
    if (isAskedToWait) this.failedInRow = Math.max(this.failedInRow, MAX_CHANCE_FAILURES + 1);
    if (!this.isProbing) {
      if (this.hasLoggedFailure) return 'retry';
      this.hasLoggedFailure = true;
      const text = 'a request to the destination failed; retrying, further failures are only counted';
      this.log('warn', { status, answer: message }, text);
      return 'retry';
    }
    const delayMs = this.deps.policy.delayMs(this.failedInRow - MAX_CHANCE_FAILURES, retryAfterMs);
    if (!this.hasLoggedPause) {
      this.hasLoggedPause = true;
      const text = 'the destination does not accept exports; they wait on disk, retrying';
      this.log('warn', { status, answer: message, delayMs }, text);
    }
    this.pauseFor(delayMs);
    return 'paused';
  }

  /** Of several pauses the one that ends last counts. */
  private pauseFor(delayMs: number): void {
    const untilMs = this.deps.clock.monotonicMs() + delayMs;
    if (this.pause !== undefined && untilMs <= this.pausedUntilMs) return;
    this.pause?.cancel();
    this.pausedUntilMs = untilMs;
    this.pause = this.deps.clock.after(delayMs, () => {
      this.pause = undefined;
      this.onReady();
    });
  }

  private log(level: 'info' | 'warn' | 'error', fields: Record<string, string | number | null>, message: string): void {
    this.deps.logger[level]({ destination: this.destination, signal: this.signal, ...fields }, message);
  }
}
