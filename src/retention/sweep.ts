import type { RetentionLimits } from '../config/retention-settings.js';
import type { Clock, Timer } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import type { RetainedSize } from '../storage/retention-store.js';
import type { Removals } from './removals.js';

/** Data that is removed together. */
export interface Removable {
  /** The number of the kind's items in it. */
  readonly count: number;
  readonly endedUnixMs: number;
  /** Returns its size. */
  measure(): Promise<RetainedSize>;
  /** Removes it. @returns false if it turned out not to have ended, and nothing was done */
  remove(): Promise<boolean>;
}

/** A kind of data with its own limits. */
export interface RetainedKind {
  /** The name in settings and log messages, for example `telemetry`. */
  readonly name: string;
  /** What is counted; for artifacts, the runs that they belong to. */
  readonly noun: 'runs' | 'deliveries' | 'files';
  readonly limits: RetentionLimits;
  /** Returns the total size, in bytes; called only if there is a limit. */
  totalBytes(signal: AbortSignal): Promise<number>;
  /** Yields items that ended before a time, roughly oldest first; none that is running or that a destination has not received yet. */
  removables(endedUntilUnixMs: number): AsyncIterable<Removable>;
}

/** What was removed of a kind, or would be. */
export interface SweepResult {
  readonly kind: string;
  /** The number of the kind's items. */
  readonly count: number;
  readonly fileCount: number;
  readonly sizeBytes: number;
  /** Size above the limit that could not be removed, in bytes: the remaining items are running, too new, or not received by a destination yet. */
  readonly excessBytes: number;
}

/** Options of a sweep. */
export interface SweepOptions {
  readonly nowUnixMs: number;
  /** Whether to count only. */
  readonly isDry: boolean;
  /** Ends the sweep between two items. */
  readonly signal: AbortSignal;
}

/**
 * Items that ended less than this long ago stay whatever their size, in milliseconds: late records may arrive, and a
 * client that waited for the run should find it.
 */
export const KEPT_MS = 600_000;

/** Removes the items of a kind that are too old, and the oldest while there is too much. */
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

/** Dependencies of retention. */
export interface RetentionDeps {
  readonly kinds: readonly RetainedKind[];
  /** Finishes interrupted removals; `null` if another object does. */
  readonly removals: Removals | null;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The interval between two sweeps, in milliseconds. */
const INTERVAL_MS = 3_600_000;

/**
 * Removes expired data at the start and every hour, and first finishes removals that a crash interrupted. To be started before anything reads the data folder. May be started again after a shutdown.
 */
export class Retention implements Component {
  readonly name = 'retention';
  private stopping = new AbortController();
  private timer: Timer | undefined;
  private working: Promise<void> = Promise.resolve();

  constructor(private readonly deps: RetentionDeps) {}

  /** Hides leftovers of interrupted removals, and begins the first sweep. @throws StoreError; errors of the file system */
  async start(): Promise<void> {
    this.stopping = new AbortController();
    await this.deps.removals?.hideLeftovers();
    this.working = this.look();
  }

  async shutdown(): Promise<void> {
    this.stopping.abort();
    this.timer?.cancel();
    await this.working;
  }

  /** Finishes removals that a crash interrupted, or for which a bucket could not be reached. */
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
        log(await sweepKind(kind, { nowUnixMs: clock.nowUnixMs(), isDry: false, signal }), kind, logger);
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

function log({ kind, excessBytes, ...removed }: SweepResult, { noun, limits }: RetainedKind, logger: Logger): void {
  if (removed.count > 0) logger.info({ kind, what: noun, ...removed }, 'removed expired data');
  if (excessBytes === 0) return;
  logger.warn(
    { kind, excessBytes, maxBytes: limits.maxBytes },
    'retention limits are exceeded: the remaining runs are in progress, minutes old, or not exported yet',
  );
}
