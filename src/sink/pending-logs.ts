import type { Resource } from '../record/resource.js';
import type { LogRecord } from '../record/telemetry-record.js';

/** A log record that waits for its span's name. */
export interface PendingLog {
  readonly record: LogRecord;
  readonly resource: Resource;
  /** Monotonic time of its arrival, in milliseconds. */
  readonly sinceMs: number;
}

/**
 * Log records whose span has not come yet. Over OTLP a log record brings its span's id and not its name, and spans come
 * when they end; the record log wants both, so such records wait a moment (durably, in `pending.jsonl`).
 */
export class PendingLogs {
  private waiting: PendingLog[] = [];

  get size(): number {
    return this.waiting.length;
  }

  add(log: PendingLog): void {
    this.waiting.push(log);
  }

  /** Removes and returns, in order of arrival, those that `isDue` says need wait no longer. */
  take(isDue: (log: PendingLog) => boolean): readonly PendingLog[] {
    if (this.waiting.length === 0) return [];
    const due: PendingLog[] = [];
    const rest: PendingLog[] = [];
    for (const log of this.waiting) (isDue(log) ? due : rest).push(log);
    if (due.length > 0) this.waiting = rest;
    return due;
  }
}
