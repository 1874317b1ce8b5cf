import { type Clock, type RetryPolicy, retry } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Logger } from '../core/logger.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { CursorStore, ExportCursor } from '../storage/cursor-store.js';

/**
 * Saves cursors until the state accepts them. The caller sends nothing meanwhile, so that a state that cannot
 * be written makes exports wait, rather than be sent twice after the next start. One write is under way at a time, and what
 * comes meanwhile shares the next: a database with several connections might do two writes in the wrong order.
 */
export class CursorSaver {
  private waiting = new Map<TraceId, ExportCursor>();
  private next: Promise<void> | undefined;
  private running: Promise<void> = Promise.resolve();
  private isFailing = false;

  constructor(
    private readonly destination: string,
    private readonly deps: {
      readonly cursors: Pick<CursorStore, 'save'>;
      readonly clock: Clock;
      readonly logger: Logger;
      readonly retryPolicy: RetryPolicy;
    },
    private readonly stop: AbortSignal,
  ) {}

  /** Resolves when they are saved, or when the worker stops. */
  save(cursors: readonly ExportCursor[]): Promise<void> {
    if (cursors.length === 0) return Promise.resolve();
    for (const cursor of cursors) this.waiting.set(cursor.traceId, cursor);
    this.next ??= this.running.then(() => this.saveWaiting());
    return this.next;
  }

  private saveWaiting(): Promise<void> {
    const cursors = [...this.waiting.values()];
    this.waiting = new Map();
    this.next = undefined;
    this.running = this.saveUntilTaken(cursors);
    return this.running;
  }

  private async saveUntilTaken(cursors: readonly ExportCursor[]): Promise<void> {
    const { cursors: store, clock, retryPolicy } = this.deps;
    const delayMs = (error: unknown, failedAttempts: number) => {
      this.report(error);
      return retryPolicy.delayMs(failedAttempts, null);
    };
    try {
      await retry(() => store.save(cursors), { clock, signal: this.stop, delayMs });
      this.isFailing = false;
    } catch (error) {
      if (!this.stop.aborted) throw error;
    }
  }

  private report(error: unknown): void {
    if (this.isFailing) return;
    this.isFailing = true;
    this.deps.logger.error(
      { destination: this.destination, error: reasonOf(error) },
      'failed to save export cursors; exports wait until it succeeds',
    );
  }
}
