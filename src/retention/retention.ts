import type { Clock, Timer } from '../component/clock.js';
import type { Component } from '../component/component.js';
import type { Logger } from '../component/logger.js';
import { reasonOf } from '../component/reason-of.js';
import type { Removals } from './removals.js';
import type { RetainedKind } from './retained-kind.js';
import { type SweepResult, sweepKind } from './sweep-kind.js';

/** What it works with. */
export interface RetentionDeps {
  readonly kinds: readonly RetainedKind[];
  /** Ends what was left half removed; `null` where another one does. */
  readonly removals: Removals | null;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How often it is looked what may go, in milliseconds; and the first time after a start. */
const INTERVAL_MS = 3_600_000;

/**
 * Removes what is older, or more, than it may be: at the start and each hour. What a crash left half removed is ended by the
 * next start, limits or not; to be started before anything reads the data folder. May be started again after a shutdown.
 */
export class Retention implements Component {
  readonly name = 'retention';
  private stopping = new AbortController();
  private timer: Timer | undefined;
  private working: Promise<void> = Promise.resolve();

  constructor(private readonly deps: RetentionDeps) {}

  /** @throws StoreError; what the file system throws */
  async start(): Promise<void> {
    this.stopping = new AbortController();
    await this.deps.removals?.takeUp();
    this.working = this.look();
  }

  async shutdown(): Promise<void> {
    this.stopping.abort();
    this.timer?.cancel();
    await this.working;
  }

  /** What a crash left, or a bucket that could not be reached. */
  private async endLeft(removals: Removals): Promise<void> {
    const { logger } = this.deps;
    try {
      let count = 0;
      for (const removal of await removals.left()) {
        if (this.stopping.signal.aborted) return;
        if (await removals.end(removal)) count += 1;
      }
      if (count > 0) logger.info({ count }, 'what was left half removed is removed');
    } catch (error) {
      logger.error({ error: reasonOf(error) }, 'what was left half removed could not be removed; it is tried again');
    }
  }

  private async look(): Promise<void> {
    const { kinds, removals, clock, logger } = this.deps;
    const { signal } = this.stopping;
    if (removals !== null) await this.endLeft(removals);
    for (const kind of kinds) {
      if (signal.aborted) return;
      try {
        tell(await sweepKind(kind, { nowUnixMs: clock.nowUnixMs(), isDry: false, signal }), kind, logger);
      } catch (error) {
        logger.error(
          { kind: kind.name, error: reasonOf(error) },
          'what is to be kept no longer could not be removed; it is tried again in an hour',
        );
      }
    }
    const isLimited = kinds.some(({ limits }) => limits.maxAgeMs !== null || limits.maxBytes !== null);
    if (signal.aborted || !isLimited) return;
    this.timer = clock.after(INTERVAL_MS, () => {
      this.working = this.look();
    });
  }
}

function tell({ kind, excessBytes, ...removed }: SweepResult, { noun, limits }: RetainedKind, logger: Logger): void {
  if (removed.count > 0) logger.info({ kind, what: noun, ...removed }, 'what is to be kept no longer was removed');
  if (excessBytes === 0) return;
  logger.warn(
    { kind, excessBytes, maxBytes: limits.maxBytes },
    'more is kept than there should be: the rest is under way, minutes old, or waits for a destination',
  );
}
