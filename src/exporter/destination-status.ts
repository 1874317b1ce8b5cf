import type { Signal } from '../record/record-batch.js';

/** What one destination did with one signal since the start. */
export interface SignalStatus {
  /** `waiting` between attempts, `off` where it is not asked for or the receiver does not take it. */
  readonly state: 'ready' | 'waiting' | 'off';
  readonly sentCount: number;
  /** Items refused for good (4xx), or rejected in a partial success. */
  readonly refusedCount: number;
  readonly rejectedCount: number;
  /** Messages of other services that were forwarded. */
  readonly forwardedCount: number;
  /** Attempts that failed and are tried again. */
  readonly failedAttemptCount: number;
}

/** How far one destination has got, for `/readyz?verbose`. */
export interface DestinationStatus {
  readonly name: string;
  /** `idle` has nothing to send, `waiting` failed and will try again. */
  readonly state: 'idle' | 'sending' | 'waiting' | 'stopped';
  /** Runs that are open or not sent to their end. */
  readonly pendingRuns: number;
  /** Bytes of record logs that were not sent; runs that it has not come to yet are not counted. */
  readonly lagBytes: number;
  readonly signals: Readonly<Record<Signal, SignalStatus>>;
  /** The last failure in words; `null` after a success. */
  readonly lastError: string | null;
}
