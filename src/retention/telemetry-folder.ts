import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../component/error-code.js';
import { readFolderSize } from '../component/folder-size.js';
import { readFolderUsage } from '../component/folder-usage.js';
import { makeFolderIn } from '../component/make-folder-in.js';
import type { TraceId } from '../record/ids.js';
import { ROWS_FOLDER } from '../run/row-keeper.js';
import type { Removal } from '../store/retention-store.js';
import type { RetainedSize } from './retained-kind.js';
import type { TelemetryPlace } from './telemetry-place.js';

/** Where folders of traces are while they are removed, in the data folder: out of the way of whoever lists runs. */
const REMOVED_FOLDER = 'removed';

/** Files of traces in the data folder of one process. */
export class TelemetryFolder implements TelemetryPlace {
  constructor(private readonly dataFolder: string) {}

  totalBytes(signal: AbortSignal): Promise<number> {
    return readFolderSize(join(this.dataFolder, 'runs'), signal);
  }

  async usageOf(traceIds: readonly TraceId[]): Promise<RetainedSize> {
    let fileCount = 0;
    let sizeBytes = 0;
    for (const traceId of traceIds) {
      const found = await readFolderUsage(join(this.dataFolder, 'runs', traceId));
      fileCount += found.fileCount;
      sizeBytes += found.sizeBytes;
    }
    return { fileCount, sizeBytes };
  }

  /** Nothing may have the folders open for writing. */
  async hide(removals: readonly Removal[]): Promise<void> {
    const { dataFolder } = this;
    for (const { kind, id } of removals) {
      if (kind === 'run') await rm(join(dataFolder, ROWS_FOLDER, `${id}.json`), { force: true });
      if (kind !== 'trace') continue;
      await makeFolderIn(dataFolder, REMOVED_FOLDER);
      // One of the same name is what a removal of before has left.
      await rm(this.hidden(id), { recursive: true, force: true });
      await rename(join(dataFolder, 'runs', id), this.hidden(id)).catch((error: unknown) => {
        if (errorCode(error) !== 'ENOENT') throw error;
      });
    }
  }

  async remove({ kind, id }: Removal): Promise<boolean> {
    if (kind !== 'moved') return false;
    await rm(this.hidden(id), { recursive: true, force: true });
    return true;
  }

  private hidden(id: string): string {
    return join(this.dataFolder, REMOVED_FOLDER, id);
  }
}
