import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../component/error-code.js';
import { makeFolderIn } from '../component/make-folder-in.js';
import { ROWS_FOLDER } from '../run/row-keeper.js';
import type { ArtifactStore } from '../store/artifact/artifact-store.js';
import type { Removal, RetentionStore } from '../store/retention-store.js';

/** Where folders of traces are while they are removed, in the data folder: out of the way of whoever lists runs. */
const REMOVED_FOLDER = 'removed';

/** What removals are ended with. */
export interface RemovalsDeps {
  readonly store: Pick<RetentionStore, 'listRemovals' | 'endRemoval'>;
  readonly dataFolder: string;
  readonly openArtifacts: () => Promise<Pick<ArtifactStore, 'removeRun'>>;
}

/** Removes files whose rows are gone, and then the note of it. Everything may be done again. */
export class Removals {
  constructor(private readonly deps: RemovalsDeps) {}

  /**
   * Takes what an earlier process has left half out of the folder of runs, so that nobody finds it there. To be called
   * before anybody looks. @returns what is left to do; to be given to `end`
   */
  async takeUp(): Promise<readonly Removal[]> {
    const removals = await this.deps.store.listRemovals();
    for (const removal of removals) await this.hide(removal);
    return removals;
  }

  /** Takes a trace's folder out of the folder of runs, and a run's rows away. Nothing may have the folder open for writing. */
  async hide({ kind, id }: Removal): Promise<void> {
    const { dataFolder } = this.deps;
    if (kind === 'run') await rm(join(dataFolder, ROWS_FOLDER, `${id}.json`), { force: true });
    if (kind !== 'trace') return;
    await makeFolderIn(dataFolder, REMOVED_FOLDER);
    // One of the same name is what a removal of before has left.
    await rm(this.hidden(id), { recursive: true, force: true });
    await rename(join(dataFolder, 'runs', id), this.hidden(id)).catch((error: unknown) => {
      if (errorCode(error) !== 'ENOENT') throw error;
    });
  }

  /** Removes the files, which are hidden, and the note. @throws ArtifactError, StoreError; what the file system throws */
  async end(removal: Removal): Promise<void> {
    const { kind, id } = removal;
    switch (kind) {
      case 'trace':
        await rm(this.hidden(id), { recursive: true, force: true });
        break;
      case 'run':
      case 'artifacts':
        await (await this.deps.openArtifacts()).removeRun(Number(id));
        break;
    }
    await this.deps.store.endRemoval(removal);
  }

  private hidden(id: string): string {
    return join(this.deps.dataFolder, REMOVED_FOLDER, id);
  }
}
