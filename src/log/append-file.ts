import { constants } from 'node:fs';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { closeOnFailure } from '../core/close-on-failure.js';
import { errorCode } from '../core/error-code.js';

/** How many bytes at the end of a file are read at a time to find its last line break. */
const TAIL_BYTES = 64 * 1024;

/** Pieces that are written in one call; Linux takes 1,024. */
const MAX_PIECES = 1024;

/**
 * An append-only file: bytes are appended, then synced. A failed append leaves garbage behind the known length, which
 * `rewind` cuts off.
 */
export class AppendFile {
  /**
   * Opens or creates the file.
   * @param sync makes the entries of the file's folder durable, where the file may be new
   */
  static async open(path: string, sync: (folder: string) => Promise<void> = syncFolder): Promise<AppendFile> {
    const handle = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    return closeOnFailure(handle, async () => {
      const { size } = await handle.stat();
      if (size === 0) await sync(dirname(path));
      return new AppendFile(path, handle, size);
    });
  }

  private constructor(
    readonly path: string,
    private readonly handle: FileHandle,
    private length: number,
  ) {}

  /** Bytes that were appended successfully. */
  get lengthBytes(): number {
    return this.length;
  }

  /** Appends and syncs. When it throws, nothing counts as appended; call `rewind` before the next try. */
  async append(pieces: readonly Uint8Array[], isSynced: boolean): Promise<void> {
    let written = 0;
    for (let rest = pieces; rest.length > 0; rest = behind(rest, written)) {
      const part = rest.slice(0, MAX_PIECES);
      ({ bytesWritten: written } = await this.handle.writev(part, this.length + total(pieces) - total(rest)));
    }
    if (isSynced) await this.handle.datasync();
    await this.checkName();
    this.length += total(pieces);
  }

  /**
   * A file without a name is lost with the process, even if it is synced.
   * @throws Error if the file was removed.
   */
  async checkName(): Promise<void> {
    if ((await this.handle.stat()).nlink === 0) throw new Error(`${this.path} was removed while it was open`);
  }

  /** Truncates the file to `length` (default: its known length). */
  async rewind(length: number = this.length): Promise<void> {
    await this.handle.truncate(length);
    await this.handle.datasync();
    this.length = length;
  }

  /** Cuts off a last line that has no line break: the append that wrote it was never answered. */
  async cutTornLine(): Promise<void> {
    for (let end = this.length; end > 0; end = Math.max(0, end - TAIL_BYTES)) {
      const start = Math.max(0, end - TAIL_BYTES);
      const lineBreak = (await this.read(start, end)).lastIndexOf(0x0a);
      if (lineBreak === -1 && start > 0) continue;
      const whole = lineBreak === -1 ? 0 : start + lineBreak + 1;
      if (whole < this.length) await this.rewind(whole);
      return;
    }
  }

  private async read(from: number, to: number): Promise<Buffer> {
    const buffer = Buffer.allocUnsafe(to - from);
    const { bytesRead } = await this.handle.read(buffer, 0, buffer.length, from);
    return buffer.subarray(0, bytesRead);
  }

  close(): Promise<void> {
    return this.handle.close();
  }
}

/** What is left of the pieces when so many bytes are written: a system may take less than it is given. */
function behind(pieces: readonly Uint8Array[], byteCount: number): readonly Uint8Array[] {
  let left = byteCount;
  let index = 0;
  while (left >= (pieces[index]?.length ?? Number.POSITIVE_INFINITY)) left -= pieces[index++]?.length ?? 0;
  const [first, ...others] = pieces.slice(index);
  return first === undefined ? [] : [first.subarray(left), ...others];
}

function total(pieces: readonly Uint8Array[]): number {
  let bytes = 0;
  for (const piece of pieces) bytes += piece.length;
  return bytes;
}

/** Makes a folder's entries durable. */
export async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Creates a folder, and its parent with `withParent`; never more: a data folder that has vanished (an
 * unmounted disk) must not be created again. Node's own recursive `mkdir` does that, and reports
 * ENOENT if the file system is read-only.
 * @returns whether it was created
 */
export async function makeFolder(folder: string, withParent: boolean): Promise<boolean> {
  try {
    await mkdir(folder);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    if (errorCode(error) !== 'ENOENT' || !withParent) throw error;
  }
  await makeFolder(dirname(folder), false);
  return makeFolder(folder, false);
}
