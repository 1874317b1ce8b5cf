import type { RetentionLimits } from '../config/retention-settings.js';
import type { EndedSegment, PassthroughSegments } from '../log/passthrough-segments.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { ArtifactStore } from '../storage/artifacts.js';
import type { CursorStore, PassthroughCursor } from '../storage/cursor-store.js';
import type {
  EndedRun,
  Removal,
  RetainedSize,
  RetentionStore,
  RunGroup,
  TelemetryStorage,
} from '../storage/retention-store.js';
import type { Removals } from './removals.js';
import type { Removable, RetainedKind } from './sweep.js';

/** Locks traces while their files are moved away. */
export interface TraceLock {
  /**
   * Runs an action while none of the traces is open or written; records that arrive for them wait.
   * @returns false if one of them is active; nothing was done then
   */
  whileLocked(traceIds: readonly TraceId[], action: () => Promise<boolean>): Promise<boolean>;
}

/** Locks nothing: no other process writes to the data folder, or the database removes only rows without an owner. */
export const NO_LOCK: TraceLock = { whileLocked: (_traceIds, action) => action() };

/** Dependencies of `RetainedTelemetry`. */
export interface RetainedTelemetryDeps {
  readonly store: RetentionStore;
  readonly removals: Removals;
  readonly storage: Pick<TelemetryStorage, 'totalBytes' | 'usageOf'>;
  /** The names of the configured destinations; runs that one of them has not received yet are kept. */
  readonly destinations: readonly string[];
  readonly lock: TraceLock;
  readonly openArtifacts: () => Promise<Pick<ArtifactStore, 'usage'>>;
  /** Wall-clock time in milliseconds. */
  readonly nowUnixMs: () => number;
}

/** Runs with all their data: record logs, Parquet, rows, and artifacts. */
export class RetainedTelemetry implements RetainedKind {
  readonly name = 'telemetry';
  readonly noun = 'runs';

  constructor(
    readonly limits: RetentionLimits,
    private readonly deps: RetainedTelemetryDeps,
  ) {}

  totalBytes(signal: AbortSignal): Promise<number> {
    return this.deps.storage.totalBytes(signal);
  }

  async *removables(endedUntilUnixMs: number): AsyncGenerator<Removable> {
    const { store, destinations } = this.deps;
    const seen = new Set<number>();
    for await (const { runId } of endedRuns(store, 'telemetry', endedUntilUnixMs)) {
      if (seen.has(runId)) continue;
      const group = await store.groupOf(runId, destinations);
      for (const one of group?.runIds ?? []) if (one !== runId) seen.add(one);
      if (group === undefined || group.isLive || group.isPending || group.endedUnixMs > endedUntilUnixMs) continue;
      yield {
        count: group.runIds.length,
        endedUnixMs: group.endedUnixMs,
        measure: () => this.measure(group),
        remove: () => this.remove(group),
      };
    }
  }

  /** Returns the size of a group's record logs, Parquet files and artifacts. */
  async measure({ traceIds, runIds }: RunGroup): Promise<RetainedSize> {
    let { fileCount, sizeBytes } = await this.deps.storage.usageOf(traceIds);
    const artifacts = await this.deps.openArtifacts();
    for (const runId of runIds) {
      const used = await artifacts.usage(runId);
      fileCount += used.count;
      sizeBytes += used.sizeBytes;
    }
    return { fileCount, sizeBytes };
  }

  private async remove(group: RunGroup): Promise<boolean> {
    const removals = await this.hide(group);
    for (const removal of removals) await this.deps.removals.end(removal);
    return removals.length > 0;
  }

  /**
   * Removes the rows of a group and moves its files away, so that nobody finds it.
   * @returns removals to be passed to `end`; none if the group turned out not to have ended, and nothing was done
   */
  async hide(group: RunGroup): Promise<readonly Removal[]> {
    const { store, removals, destinations, lock, nowUnixMs } = this.deps;
    let noted: readonly Removal[] = [];
    await lock.whileLocked(group.traceIds, async () => {
      noted = (await store.removeRuns(group, destinations, nowUnixMs())) ?? [];
      noted = await removals.hide(noted);
      return noted.length > 0;
    });
    return noted;
  }
}

/** Dependencies of `RetainedArtifacts`. */
export interface RetainedArtifactsDeps {
  readonly store: RetentionStore;
  readonly removals: Removals;
  readonly openArtifacts: () => Promise<Pick<ArtifactStore, 'usage'>>;
  /** Wall-clock time in milliseconds. */
  readonly nowUnixMs: () => number;
}

/** Artifacts of commands; their runs stay. */
export class RetainedArtifacts implements RetainedKind {
  readonly name = 'artifacts';
  readonly noun = 'runs';

  constructor(
    readonly limits: RetentionLimits,
    private readonly deps: RetainedArtifactsDeps,
  ) {}

  async totalBytes(): Promise<number> {
    return (await (await this.deps.openArtifacts()).usage()).sizeBytes;
  }

  async *removables(endedUntilUnixMs: number): AsyncGenerator<Removable> {
    for await (const { runId, finishedUnixMs } of endedRuns(this.deps.store, 'artifacts', endedUntilUnixMs)) {
      yield {
        count: 1,
        endedUnixMs: finishedUnixMs,
        measure: async () => {
          const { count, sizeBytes } = await (await this.deps.openArtifacts()).usage(runId);
          return { fileCount: count, sizeBytes };
        },
        remove: () => this.remove(runId),
      };
    }
  }

  private async remove(runId: number): Promise<boolean> {
    const { store, removals, nowUnixMs } = this.deps;
    const removal = await store.removeArtifacts(runId, nowUnixMs());
    if (removal === undefined) return false;
    await removals.end(removal);
    return true;
  }
}

/** Dependencies of `RetainedPassthrough`. */
export interface RetainedPassthroughDeps {
  readonly segments: Pick<PassthroughSegments, 'ended' | 'turn' | 'remove'>;
  readonly cursors: Pick<CursorStore, 'findPassthrough'>;
  /** The names of the configured destinations. */
  readonly destinations: readonly string[];
  /** Age after which data that a destination has not accepted is discarded, in milliseconds; `null` for never. */
  readonly maxBacklogMs: number | null;
  /** Wall-clock time in milliseconds. */
  readonly nowUnixMs: () => number;
}

/** The longest time that a file covers, in milliseconds: otherwise one that is rarely written to would be kept for years. */
const SEGMENT_MS = 86_400_000;

/** Telemetry of other services, in its files. */
export class RetainedPassthrough implements RetainedKind {
  readonly name = 'foreign';
  readonly noun = 'files';

  constructor(
    readonly limits: RetentionLimits,
    private readonly deps: RetainedPassthroughDeps,
  ) {}

  async totalBytes(): Promise<number> {
    return (await this.deps.segments.ended()).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  }

  async *removables(endedUntilUnixMs: number): AsyncGenerator<Removable> {
    const { segments, nowUnixMs } = this.deps;
    await segments.turn(nowUnixMs() - SEGMENT_MS);
    const cursors = await this.cursors();
    for (const segment of await segments.ended()) {
      if (segment.writtenUnixMs > endedUntilUnixMs || this.isWaitedFor(segment, cursors)) continue;
      yield {
        count: 1,
        endedUnixMs: segment.writtenUnixMs,
        measure: async () => ({ fileCount: 1, sizeBytes: segment.sizeBytes }),
        remove: async () => {
          await segments.remove(segment);
          return true;
        },
      };
    }
  }

  /** Returns the cursor of each destination, read once per sweep; cursors only advance. */
  private cursors(): Promise<readonly (PassthroughCursor | undefined)[]> {
    const { cursors, destinations } = this.deps;
    return Promise.all(destinations.map((destination) => cursors.findPassthrough(destination)));
  }

  /** Whether a destination has not received all of a file. */
  private isWaitedFor(
    { segment, sizeBytes, writtenUnixMs }: EndedSegment,
    cursors: readonly (PassthroughCursor | undefined)[],
  ): boolean {
    const { maxBacklogMs, nowUnixMs } = this.deps;
    if (maxBacklogMs !== null && writtenUnixMs <= nowUnixMs() - maxBacklogMs) return false;
    return cursors.some((cursor) => {
      // A destination without a cursor has not started.
      const isBehind = cursor === undefined || cursor.segment < segment;
      return isBehind || (cursor.segment === segment && cursor.offset < sizeBytes);
    });
  }
}

/** The number of runs read at a time. */
const PAGE = 100;

/** Yields runs that ended before a time, oldest first, page by page. Runs may be removed in between. */
async function* endedRuns(
  store: Pick<RetentionStore, 'listEnded'>,
  what: 'telemetry' | 'artifacts',
  untilUnixMs: number,
): AsyncGenerator<EndedRun> {
  let after: EndedRun | null = null;
  for (;;) {
    const page: readonly EndedRun[] = await store.listEnded(what, untilUnixMs, after, PAGE);
    yield* page;
    after = page.at(-1) ?? null;
    if (page.length < PAGE) return;
  }
}
