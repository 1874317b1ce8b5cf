import type { ArtifactStore } from '../storage/artifacts.js';
import type { Removal, RetentionStore, TelemetryStorage } from '../storage/retention-store.js';

/** Dependencies of removals. */
export interface RemovalsDeps {
  readonly store: Pick<RetentionStore, 'listRemovals' | 'noteMoved' | 'endRemoval'>;
  readonly storage: Pick<TelemetryStorage, 'hide' | 'remove'>;
  readonly openArtifacts: () => Promise<Pick<ArtifactStore, 'removeRun'>>;
}

/** Removes files whose rows are gone, and then the record of the removal. Can be repeated. */
export class Removals {
  constructor(private readonly deps: RemovalsDeps) {}

  /** Hides what an earlier process has partly removed. Must be called before runs are listed. */
  async hideLeftovers(): Promise<void> {
    await this.hide(await this.deps.store.listRemovals());
  }

  /** Returns the hidden leftovers, to be passed to `end`. */
  async left(): Promise<readonly Removal[]> {
    // A folder that is not hidden may belong to a new trace by now.
    return (await this.deps.store.listRemovals()).filter(({ kind }) => kind !== 'trace');
  }

  /** Moves files away so that nobody finds them. Nothing may have them open for writing. @returns removals to be passed to `end` */
  async hide(removals: readonly Removal[]): Promise<readonly Removal[]> {
    await this.deps.storage.hide(removals);
    return await this.deps.store.noteMoved(removals);
  }

  /**
   * Removes the files and the record of the removal.
   * @returns false if the files cannot be reached from here; they stay recorded
   * @throws ArtifactError, StoreError; errors of the file system
   */
  async end(removal: Removal): Promise<boolean> {
    const isDone = await this.remove(removal);
    if (isDone) await this.deps.store.endRemoval(removal);
    return isDone;
  }

  private async remove(removal: Removal): Promise<boolean> {
    const { storage, openArtifacts } = this.deps;
    switch (removal.kind) {
      case 'trace':
      case 'moved':
      case 'object':
        return await storage.remove(removal);
      case 'run':
      case 'artifacts':
        await (await openArtifacts()).removeRun(Number(removal.id));
        return true;
    }
  }
}
