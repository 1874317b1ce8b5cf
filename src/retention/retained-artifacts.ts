import type { ArtifactStore } from '../store/artifact/artifact-store.js';
import type { RetentionStore } from '../store/retention-store.js';
import { endedRuns } from './ended-runs.js';
import type { Removals } from './removals.js';
import type { Removable, RetainedKind, RetentionLimits } from './retained-kind.js';

/** What it works with. */
export interface RetainedArtifactsDeps {
  readonly store: RetentionStore;
  readonly removals: Removals;
  readonly openArtifacts: () => Promise<Pick<ArtifactStore, 'usage'>>;
  /** Wall-clock time in milliseconds. */
  readonly nowUnixMs: () => number;
}

/** What commands left beside their telemetry. A run stays a run without it. */
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
