import type { Clock } from '../component/clock.js';
import type { Logger } from '../component/logger.js';
import { pause } from '../component/pause.js';
import type { StandingRule, WebhookEventStore } from '../store/webhook/event-store.js';
import type { ArchivedSubscription, AttemptResult } from '../store/webhook/webhook-event.js';

/** What a writer works with. */
export interface ResultWriterDeps {
  readonly store: Pick<WebhookEventStore, 'finish'>;
  readonly rule: StandingRule;
  readonly onArchived: (subscription: ArchivedSubscription) => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Results written by one transaction. */
const MAX_BATCH = 256;
/** Between two tries while the state cannot be written, in milliseconds. */
const RETRY_MS = 1_000;

/** Writes down what attempts came to. Those that come while a write is under way share the next one. */
export class ResultWriter {
  private waiting: { readonly result: AttemptResult; readonly done: () => void }[] = [];
  private isWriting = false;

  /** @param holder who has claimed what is written down */
  constructor(
    private readonly holder: string,
    private readonly deps: ResultWriterDeps,
  ) {}

  /** Resolves when it is written; tries until then, or until the signal aborts. */
  write(result: AttemptResult, stop: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push({ result, done: resolve });
      if (!this.isWriting) void this.drain(stop);
    });
  }

  private async drain(stop: AbortSignal): Promise<void> {
    this.isWriting = true;
    while (this.waiting.length > 0) {
      // What ends at the same time shares a transaction.
      await new Promise(setImmediate);
      const batch = this.waiting.splice(0, MAX_BATCH);
      await this.save(
        batch.map(({ result }) => result),
        stop,
      );
      for (const { done } of batch) done();
    }
    this.isWriting = false;
  }

  private async save(results: readonly AttemptResult[], stop: AbortSignal): Promise<void> {
    const { store, rule, onArchived, clock, logger } = this.deps;
    for (;;) {
      try {
        for (const one of await store.finish(results, this.holder, rule)) onArchived(one);
        return;
      } catch (error) {
        const fields = { error: String(error), count: results.length };
        // What is not written down is delivered again after its lease.
        logger.error(fields, 'what came of deliveries could not be written down; it is tried again');
        if (stop.aborted) return;
        await pause(clock, RETRY_MS, stop);
      }
    }
  }
}
