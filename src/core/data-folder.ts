import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from './errors.js';
import { type DiskSpace, readDiskSpace, readFolderSize } from './folders.js';

/** The data folder as the disk guard sees it. */
export interface DataFolder {
  /** Returns the file system's size and free space. @throws Error with a short message if the folder is gone, was replaced, or does not answer */
  readSpace(): Promise<DiskSpace>;
  /** Returns the total size of all files in the folder and below, in bytes. */
  readSize(signal: AbortSignal): Promise<number>;
}

/** A data folder on a file system, identified by a file in it that stays open as long as the process lives. */
export class DataFolderOnDisk implements DataFolder {
  private known: string | undefined;

  /** @param anchor name of the identifying file; a folder without it, or with another one of that name, is not the folder that was opened */
  constructor(
    private readonly path: string,
    private readonly anchor: string,
  ) {}

  async readSpace(): Promise<DiskSpace> {
    const space = await readDiskSpace(this.path).catch((error: unknown) => {
      const code = errorCode(error) ?? String(error);
      throw new Error(GONE[code] ?? code, { cause: error });
    });
    const found = await this.identify();
    if (found === undefined || (this.known ?? found) !== found) {
      throw new Error(`its ${this.anchor} was removed or replaced while run-bridge was running`);
    }
    this.known = found;
    return space;
  }

  readSize(signal: AbortSignal): Promise<number> {
    return readFolderSize(this.path, signal);
  }

  private async identify(): Promise<string | undefined> {
    const found = await stat(join(this.path, this.anchor)).catch(() => undefined);
    return found && `${found.dev}:${found.ino}`;
  }
}

const GONE: Readonly<Record<string, string>> = {
  ENOENT: 'it is gone: removed, renamed, or its volume is not mounted',
  ENOTDIR: 'a file is in the place of a folder',
  EACCES: 'this user may not enter it',
  EIO: 'its disk reports errors',
};
