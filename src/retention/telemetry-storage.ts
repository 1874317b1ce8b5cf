import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../core/errors.js';
import { makeFolderIn, readFolderSize, readFolderUsage } from '../core/folders.js';
import type { TraceId } from '../record/telemetry-record.js';
import { rowsFileOf } from '../run/run-row-backup.js';
import type { Removal, RetainedSize, TelemetryStorage } from '../storage/retention-store.js';

/** The folder in the data folder for folders of traces while they are removed, which listings do not read. */
const REMOVED_FOLDER = 'removed';

/** The files of traces in the data folder of one process. */
export class TelemetryFolder implements TelemetryStorage {
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

  /** Moves folders of traces away. Nothing may have them open for writing. */
  async hide(removals: readonly Removal[]): Promise<void> {
    const { dataFolder } = this;
    for (const { kind, id } of removals) {
      if (kind === 'run') await rm(rowsFileOf(dataFolder, Number(id)), { force: true });
      if (kind !== 'trace') continue;
      await makeFolderIn(dataFolder, REMOVED_FOLDER);
      // A folder of that name is left from an earlier removal.
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
