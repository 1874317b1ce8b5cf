import type { Clock } from '../component/clock.js';
import type { Logger } from '../component/logger.js';
import { pause } from '../component/pause.js';
import { reasonOf } from '../component/reason-of.js';
import type { RetryPolicy } from '../delivery/retry-policy.js';
import type { CursorStore, ExportCursor } from '../store/cursor-store.js';

/**
 * Saves cursors until the state takes them. Whoever waits for it sends nothing more meanwhile, so that a state that cannot
 * be written makes exports wait, rather than be sent twice after the next start.
 */
export class CursorSaver {
  private isFailing = false;

  constructor(
    private readonly destination: string,
    private readonly deps: {
      readonly cursors: CursorStore;
      readonly clock: Clock;
      readonly logger: Logger;
      readonly retryPolicy: RetryPolicy;
    },
    private readonly stop: AbortSignal,
  ) {}

  /** Resolves when they are saved, or when the worker stops. */
  async save(cursors: readonly ExportCursor[]): Promise<void> {
    for (let attempt = 1; cursors.length > 0; attempt += 1) {
      try {
        await this.deps.cursors.save(cursors);
        this.isFailing = false;
        return;
      } catch (error) {
        this.report(error);
        await pause(this.deps.clock, this.deps.retryPolicy.delayMs(attempt, null), this.stop);
        if (this.stop.aborted) return;
      }
    }
  }

  private report(error: unknown): void {
    if (this.isFailing) return;
    this.isFailing = true;
    this.deps.logger.error(
      { destination: this.destination, error: reasonOf(error) },
      'how far exports are could not be saved; they wait until it can',
    );
  }
}
