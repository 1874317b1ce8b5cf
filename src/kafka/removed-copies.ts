import { type Clock, FixedDelayTask } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { JournalStore } from '../storage/journal-store.js';

/** Copies of what is in the bucket, by traces. */
export interface TraceCopies {
  /** The traces of which there are copies. */
  traceIds(): readonly TraceId[];
  /** Removes copies of a trace; those that are just being read may stay until they are asked for again. */
  forget(traceId: TraceId): Promise<void>;
}

/** What it works with. */
export interface RemovedCopiesDeps {
  readonly copies: readonly TraceCopies[];
  readonly traces: Pick<JournalStore, 'known'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How often it is looked which traces are no more, in milliseconds. */
const LOOK_MS = 60_000;

/** Removes copies on this machine of traces that any process removed. No answer is made from them in any case. */
export class RemovedCopies implements Component {
  readonly name = 'copies of what was removed';
  private readonly repeated: FixedDelayTask;

  constructor(private readonly deps: RemovedCopiesDeps) {
    const { clock, logger } = deps;
    const onError = (error: unknown) =>
      logger.warn({ error: reasonOf(error) }, 'failed to delete copies of removed runs; retrying');
    this.repeated = new FixedDelayTask(LOOK_MS, clock, () => this.look(), onError);
  }

  async start(): Promise<void> {
    this.repeated.start();
  }

  async shutdown(): Promise<void> {
    await this.repeated.stop();
  }

  private async look(): Promise<void> {
    for (const copies of this.deps.copies) {
      const traceIds = copies.traceIds();
      const known = await this.deps.traces.known(traceIds);
      for (const traceId of traceIds) if (!known.has(traceId)) await copies.forget(traceId);
    }
  }
}
