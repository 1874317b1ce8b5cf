import type { TraceId } from '../record/ids.js';
import type { ArtifactStore } from '../store/artifact/artifact-store.js';
import type { Removal, RetentionStore, RunGroup } from '../store/retention-store.js';
import { endedRuns } from './ended-runs.js';
import type { Removals } from './removals.js';
import type { Removable, RetainedKind, RetainedSize, RetentionLimits } from './retained-kind.js';
import type { TelemetryPlace } from './telemetry-place.js';

/** Keeps traces still while their files are moved away. */
export interface TraceHold {
  /**
   * Runs an action while nothing of the traces is open or written; records that come for them meanwhile wait.
   * @returns false where one of them is at work, and nothing was done.
   */
  whileStill(traceIds: readonly TraceId[], action: () => Promise<boolean>): Promise<boolean>;
}

/** What it works with. */
export interface RetainedTelemetryDeps {
  readonly store: RetentionStore;
  readonly removals: Removals;
  readonly place: Pick<TelemetryPlace, 'totalBytes' | 'usageOf'>;
  /** Names of the destinations that there are: what one of them waits for stays. */
  readonly destinations: readonly string[];
  readonly hold: TraceHold;
  readonly openArtifacts: () => Promise<Pick<ArtifactStore, 'usage'>>;
  /** Wall-clock time in milliseconds. */
  readonly nowUnixMs: () => number;
}

/** Runs with all that is kept of them: record logs, Parquet, rows, and artifacts, which are nothing without their run. */
export class RetainedTelemetry implements RetainedKind {
  readonly name = 'telemetry';
  readonly noun = 'runs';

  constructor(
    readonly limits: RetentionLimits,
    private readonly deps: RetainedTelemetryDeps,
  ) {}

  totalBytes(signal: AbortSignal): Promise<number> {
    return this.deps.place.totalBytes(signal);
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

  private async measure({ traceIds, runIds }: RunGroup): Promise<RetainedSize> {
    let { fileCount, sizeBytes } = await this.deps.place.usageOf(traceIds);
    const artifacts = await this.deps.openArtifacts();
    for (const runId of runIds) {
      const used = await artifacts.usage(runId);
      fileCount += used.count;
      sizeBytes += used.sizeBytes;
    }
    return { fileCount, sizeBytes };
  }

  private async remove(group: RunGroup): Promise<boolean> {
    const { store, removals, destinations, hold, nowUnixMs } = this.deps;
    let noted: readonly Removal[] = [];
    const isDone = await hold.whileStill(group.traceIds, async () => {
      noted = (await store.removeRuns(group, destinations, nowUnixMs())) ?? [];
      noted = await removals.hide(noted);
      return noted.length > 0;
    });
    for (const removal of noted) await removals.end(removal);
    return isDone;
  }
}
