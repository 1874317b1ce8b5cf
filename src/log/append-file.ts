import { constants, fstatSync } from 'node:fs';
import { type FileHandle, mkdir, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { closeOnFailure, errorCode } from '../core/errors.js';
import { wholeLinesLength } from '../core/lines.js';

export const LOG_FILE = 'telemetry.jsonl';
export const RESOURCES_FILE = 'resources.jsonl';
export const PENDING_FILE = 'pending.jsonl';

/** Pieces that are written in one call; Linux takes 1,024. */
const MAX_PIECES = 1024;

/**
 * An append-only file: bytes are appended, then synced. What a failed append has written is cut off at once, as it must not
 * be taken for durable later: a sync that failed need not fail again for the same bytes. Where even that fails, `settle` of the
 * next one who opens the file decides.
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

  /** Appends and syncs. When it throws, nothing counts as appended, and the file is to be opened again. */
  async append(pieces: readonly Uint8Array[], isSynced: boolean): Promise<void> {
    try {
      await this.write(pieces, isSynced);
    } catch (error) {
      await this.handle.truncate(this.length).catch(() => undefined);
      throw error;
    }
    this.length += total(pieces);
  }

  private async write(pieces: readonly Uint8Array[], isSynced: boolean): Promise<void> {
    let written = 0;
    for (let rest = pieces; rest.length > 0; rest = behind(rest, written)) {
      const part = rest.slice(0, MAX_PIECES);
      ({ bytesWritten: written } = await this.handle.writev(part, this.length + total(pieces) - total(rest)));
    }
    if (isSynced) await this.handle.datasync();
    this.checkName();
  }

  /**
   * A file without a name is lost with the process, even if it is synced.
   * @throws Error if the file was removed.
   */
  checkName(): void {
    // At once: asking the pool of threads costs more than the answer, which the system has in memory.
    if (fstatSync(this.handle.fd).nlink === 0) throw new Error(`${this.path} was removed while it was open`);
  }

  /** Truncates the file to its first `length` bytes. */
  async rewind(length: number): Promise<void> {
    await this.handle.truncate(length);
    this.length = length;
  }

  /**
   * Makes what others have written durable, so that it may count as known. Cuts off a last line that has no line break: the
   * append that wrote it was never answered.
   */
  async settle(isSynced: boolean): Promise<void> {
    const whole = await wholeLinesLength(this.handle, this.length);
    if (whole < this.length) await this.rewind(whole);
    if (isSynced) await this.handle.datasync();
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

/** Length of a file in bytes; 0 if there is none. */
export async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return 0;
    throw error;
  }
}

/** A running sync, and the next one for callers that were too late for it. */
interface Syncing {
  readonly current: Promise<void>;
  next?: Promise<void>;
}

/**
 * Syncs entries of folders. Callers that arrive during a sync of the same folder share the next one, so a
 * thousand new traces do not cost a thousand syncs of their parent.
 */
export class FolderSync {
  private readonly running = new Map<string, Syncing>();

  /** @param syncFolder does it */
  constructor(private readonly syncFolder: (path: string) => Promise<void>) {}

  /** Resolves when every entry that the folder has now is durable. */
  sync(path: string): Promise<void> {
    const syncing = this.running.get(path);
    if (syncing === undefined) return this.begin(path);
    syncing.next ??= syncing.current.then(
      () => this.begin(path),
      () => this.begin(path),
    );
    return syncing.next;
  }

  private begin(path: string): Promise<void> {
    const syncing: Syncing = {
      current: this.syncFolder(path).finally(() => {
        if (this.running.get(path) === syncing && syncing.next === undefined) this.running.delete(path);
      }),
    };
    this.running.set(path, syncing);
    return syncing.current;
  }
}
