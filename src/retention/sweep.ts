import type { Clock, Timer } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import type { RetainedSize } from '../storage/retention-store.js';
import type { Removals } from './removals.js';

/** Maximum age and size of a kind. */
export interface RetentionLimits {
  /** What ended longer ago goes; `null` for no such limit. In milliseconds. */
  readonly maxAgeMs: number | null;
  /** While there is more, the oldest goes; `null` for no such limit. */
  readonly maxBytes: number | null;
}

/** Something that may be removed as one. */
export interface Removable {
  /** How many of the kind's things. */
  readonly count: number;
  readonly endedUnixMs: number;
  /** What is removed with it. */
  measure(): Promise<RetainedSize>;
  /** Removes it. False where it has turned out not to be over, and nothing was done. */
  remove(): Promise<boolean>;
}

/** A kind of data with its own limits. A new kind is a new object of this type. */
export interface RetainedKind {
  /** As settings and log lines name it, for example `telemetry`. */
  readonly name: string;
  /** What is counted, of artifacts the runs that they are of. */
  readonly noun: 'runs' | 'deliveries' | 'files';
  readonly limits: RetentionLimits;
  /** What all of it takes, in bytes; asked for where there is a limit. */
  totalBytes(signal: AbortSignal): Promise<number>;
  /** Expired items that ended before a time, roughly oldest first: none that is running or that somebody waits for. */
  removables(endedUntilUnixMs: number): AsyncIterable<Removable>;
}

/** What was removed of a kind, or would be. */
export interface SweepResult {
  readonly kind: string;
  /** How many of the kind's things. */
  readonly count: number;
  readonly fileCount: number;
  readonly sizeBytes: number;
  /** Size above the limit that could not be removed, in bytes: the remaining items are running, too new or waited for. */
  readonly excessBytes: number;
}

/** Sizes and limits of a sweep. */
export interface SweepOptions {
  readonly nowUnixMs: number;
  /** Only counts. */
  readonly isDry: boolean;
  /** Ends it between two things. */
  readonly signal: AbortSignal;
}

/**
 * Items that ended less than this long ago stay whatever their size, in milliseconds: late records may arrive, and a
 * client that waited for the run should find it.
 */
export const KEPT_MS = 600_000;

/** Removes of a kind what is too old, and of what is too much the oldest. */
export async function sweepKind(kind: RetainedKind, options: SweepOptions): Promise<SweepResult> {
  const { nowUnixMs, isDry, signal } = options;
  const { maxAgeMs, maxBytes } = kind.limits;
  const oldUnixMs = maxAgeMs === null ? Number.NEGATIVE_INFINITY : nowUnixMs - maxAgeMs;
  let excessBytes = maxBytes === null ? 0 : (await kind.totalBytes(signal)) - maxBytes;
  const total = { count: 0, fileCount: 0, sizeBytes: 0 };
  const untilUnixMs = excessBytes > 0 ? Math.max(oldUnixMs, nowUnixMs - KEPT_MS) : oldUnixMs;
  if (untilUnixMs === Number.NEGATIVE_INFINITY) return { kind: kind.name, ...total, excessBytes: 0 };
  for await (const removable of kind.removables(untilUnixMs)) {
    if (signal.aborted) break;
    if (removable.endedUnixMs > oldUnixMs && excessBytes <= 0) continue;
    const { fileCount, sizeBytes } = await removable.measure();
    if (!isDry && !(await removable.remove())) continue;
    excessBytes -= sizeBytes;
    total.count += removable.count;
    total.fileCount += fileCount;
    total.sizeBytes += sizeBytes;
  }
  return { kind: kind.name, ...total, excessBytes: Math.max(0, excessBytes) };
}

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
      if (count > 0) logger.info({ count }, 'finished interrupted removals');
    } catch (error) {
      logger.error({ error: reasonOf(error) }, 'failed to finish an interrupted removal; retrying');
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
        logger.error({ kind: kind.name, error: reasonOf(error) }, 'failed to remove expired data; retrying in an hour');
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
  if (removed.count > 0) logger.info({ kind, what: noun, ...removed }, 'removed expired data');
  if (excessBytes === 0) return;
  logger.warn(
    { kind, excessBytes, maxBytes: limits.maxBytes },
    'retention limits are exceeded: the remaining runs are in progress, minutes old, or not exported yet',
  );
}
