import { constants } from 'node:fs';
import { copyFile, type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * A file that appears under its name only when it is complete and on disk, in place of an earlier one. Until then it is
 * `<path>.partial`, which a later attempt overwrites; two writers of one path at a time are the caller's mistake.
 */
export class ReplacingFile {
  private written = 0;
  private isOpen = true;

  /** @throws when `<path>.partial` cannot be created. */
  static async create(path: string): Promise<ReplacingFile> {
    return new ReplacingFile(path, await open(partialPath(path), 'w'));
  }

  /** Begins with the first bytes of the file that has the name now. @throws when that cannot be read, or as `create`. */
  static async startingWith(path: string, keptBytes: number): Promise<ReplacingFile> {
    const partial = partialPath(path);
    // Where the file system can, both share their blocks until one is written.
    await copyFile(path, partial, constants.COPYFILE_FICLONE);
    const file = new ReplacingFile(path, await open(partial, 'a'));
    file.written = keptBytes;
    try {
      await file.handle.truncate(keptBytes);
    } catch (error) {
      await file.abort();
      throw error;
    }
    return file;
  }

  private constructor(
    private readonly path: string,
    private readonly handle: FileHandle,
  ) {}

  /** Bytes written so far. */
  get length(): number {
    return this.written;
  }

  async write(...parts: readonly Uint8Array[]): Promise<void> {
    const [first] = parts;
    const bytes = parts.length === 1 && first !== undefined ? first : Buffer.concat(parts);
    await this.handle.writeFile(bytes);
    this.written += bytes.length;
  }

  /** Syncs the file, gives it its name and makes the name durable. */
  async commit(): Promise<void> {
    await this.handle.sync();
    await this.close();
    await rename(partialPath(this.path), this.path);
    const folder = await open(dirname(this.path), 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }

  /** Removes what was written; an earlier file of that name stays. */
  async abort(): Promise<void> {
    await this.close();
    await rm(partialPath(this.path), { force: true });
  }

  private async close(): Promise<void> {
    if (!this.isOpen) return;
    this.isOpen = false;
    await this.handle.close();
  }
}

function partialPath(path: string): string {
  return `${path}.partial`;
}
