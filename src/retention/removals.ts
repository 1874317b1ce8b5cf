import type { ArtifactStore } from '../storage/artifacts.js';
import type { Removal, RetentionStore, TelemetryStorage } from '../storage/retention-store.js';

/** What removals are ended with. */
export interface RemovalsDeps {
  readonly store: Pick<RetentionStore, 'listRemovals' | 'noteMoved' | 'endRemoval'>;
  readonly place: Pick<TelemetryStorage, 'hide' | 'remove'>;
  readonly openArtifacts: () => Promise<Pick<ArtifactStore, 'removeRun'>>;
}

/** Removes files whose rows are gone, and then the removal's record. Can be repeated. */
export class Removals {
  constructor(private readonly deps: RemovalsDeps) {}

  /**
   * Moves what an earlier process has partly removed out of the way, so that nobody finds it. Must be called before runs are listed.
   */
  async takeUp(): Promise<void> {
    await this.hide(await this.deps.store.listRemovals());
  }

  /** What is out of the way and left to be removed. To be given to `end`. */
  async left(): Promise<readonly Removal[]> {
    // A folder that is not out of the way may be another one by now.
    return (await this.deps.store.listRemovals()).filter(({ kind }) => kind !== 'trace');
  }

  /** Takes files out of the way. Nothing may have them open for writing. @returns what is to be given to `end` */
  async hide(removals: readonly Removal[]): Promise<readonly Removal[]> {
    await this.deps.place.hide(removals);
    return await this.deps.store.noteMoved(removals);
  }

  /**
   * Removes the files and the removal's record.
   * @returns false if the files cannot be reached from here, and stay recorded
   * @throws ArtifactError, StoreError; errors of the file system
   */
  async end(removal: Removal): Promise<boolean> {
    const isDone = await this.remove(removal);
    if (isDone) await this.deps.store.endRemoval(removal);
    return isDone;
  }

  private async remove(removal: Removal): Promise<boolean> {
    const { place, openArtifacts } = this.deps;
    switch (removal.kind) {
      case 'trace':
      case 'moved':
      case 'object':
        return await place.remove(removal);
      case 'run':
      case 'artifacts':
        await (await openArtifacts()).removeRun(Number(removal.id));
        return true;
    }
  }
}
