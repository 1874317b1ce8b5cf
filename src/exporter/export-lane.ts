import type { Clock, Timer } from '../component/clock.js';
import type { Logger } from '../component/logger.js';
import type { RetryPolicy } from '../delivery/retry-policy.js';
import type { SendResult } from '../delivery/transport.js';
import type { Signal } from '../record/record-batch.js';
import type { SignalStatus } from './destination-status.js';

/** Statuses by which a receiver says that it has no place for logs at all. */
const NO_LOGS: ReadonlySet<number> = new Set([404, 415, 501]);
/** Different statuses of refusal that are logged, each once. */
const MAX_LOGGED_STATUSES = 20;

/** One signal on its way to one destination: whether it may send now, and what became of what it sent. */
export class ExportLane {
  private isOff: boolean;
  /** The wait after a failed attempt; `undefined` when there is none. */
  private waiting: Timer | undefined;
  private failedInRow = 0;
  private counts = { sent: 0, refused: 0, rejected: 0, forwarded: 0, failedAttempts: 0 };
  private readonly loggedStatuses = new Set<number>();
  private hasLoggedPartial = false;
  /** The last failure in words; `null` after a success. */
  lastError: string | null = null;

  /** @param onReady called when a wait is over. */
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
    return this.waiting === undefined ? 'ready' : 'waiting';
  }

  get status(): SignalStatus {
    return {
      state: this.state,
      sentCount: this.counts.sent,
      refusedCount: this.counts.refused,
      rejectedCount: this.counts.rejected,
      forwardedCount: this.counts.forwarded,
      failedAttemptCount: this.counts.failedAttempts,
    };
  }

  /**
   * Takes down what became of an attempt. `true`: the items are done with (taken, or refused for good); `false`: they are
   * to be sent again once the lane is ready.
   */
  settle(result: SendResult, itemCount: number, kind: 'sent' | 'forwarded' = 'sent'): boolean {
    if (result.kind !== 'accepted' && this.signal === 'logs' && NO_LOGS.has(result.status ?? 0)) {
      this.turnOff(result.status, result.message);
      return true;
    }
    switch (result.kind) {
      case 'accepted':
        this.accept(result.rejectedCount, result.message, itemCount, kind);
        return true;
      case 'refused':
        this.refuse(result.status, result.message, itemCount);
        return true;
      case 'retryable':
        this.wait(result.status, result.retryAfterMs, result.message);
        return false;
    }
  }

  private accept(rejectedCount: number, message: string, itemCount: number, kind: 'sent' | 'forwarded'): void {
    if (this.failedInRow > 0) this.log('info', {}, 'the destination takes exports again');
    this.failedInRow = 0;
    this.lastError = null;
    this.counts[kind] += Math.max(0, itemCount - rejectedCount);
    this.counts.rejected += rejectedCount;
    if (rejectedCount > 0 && !this.hasLoggedPartial) {
      this.hasLoggedPartial = true;
      this.log(
        'warn',
        { rejectedCount, answer: message },
        'the destination rejected a part of an export; further ones are counted only',
      );
    }
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

  private wait(status: number | null, retryAfterMs: number | null, message: string): void {
    this.failedInRow += 1;
    this.counts.failedAttempts += 1;
    this.lastError = status === null ? message : `status ${status}: ${message}`;
    const delayMs = this.deps.policy.delayMs(this.failedInRow, retryAfterMs);
    if (this.failedInRow === 1) {
      this.log(
        'warn',
        { status, answer: message, delayMs },
        'the destination does not take exports now; they wait on disk and are tried again',
      );
    }
    // Several requests may have failed at once: only the latest wait counts.
    this.waiting?.cancel();
    this.waiting = this.deps.clock.after(delayMs, () => this.endWait());
  }

  private endWait(): void {
    this.waiting = undefined;
    this.onReady();
  }

  private turnOff(status: number | null, message: string): void {
    if (this.isOff) return;
    this.isOff = true;
    this.log(
      'warn',
      { status, answer: message },
      'the destination takes no logs; they go as span events alone until the next start',
    );
  }

  private log(level: 'info' | 'warn' | 'error', fields: Record<string, string | number | null>, message: string): void {
    this.deps.logger[level]({ destination: this.destination, signal: this.signal, ...fields }, message);
  }
}
