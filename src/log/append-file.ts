import { constants, fstatSync, writev } from 'node:fs';
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
 * How a file is opened whose appends are synced. On Linux the flag makes each write return when the disk has it, as a sync behind
 * it would: one round through the pool of threads in place of two. Elsewhere it promises less.
 */
const WRITES_SYNC = process.platform === 'linux' ? constants.O_DSYNC : 0;

/** How appends to a file become durable. */
export interface AppendOptions {
  /** Whether an append counts when the disk has it; else when the operating system has. */
  readonly isSynced: boolean;
  /** Makes the entries of the file's folder durable, where the file may be new. */
  readonly syncFolder: (folder: string) => Promise<void>;
}

/**
 * An append-only file: bytes are appended and synced. What a failed append has written is cut off at once, as it must not
 * be taken for durable later: a sync that failed need not fail again for the same bytes. Where even that fails, `settle` of the
 * next one who opens the file decides.
 */
export class AppendFile {
  /** Opens or creates the file. What it holds already is made durable by `settle`. */
  static async open(path: string, options: AppendOptions): Promise<AppendFile> {
    const flags = constants.O_RDWR | constants.O_CREAT | (options.isSynced ? WRITES_SYNC : 0);
    const handle = await open(path, flags, 0o600);
    return closeOnFailure(handle, async () => {
      const { size } = await handle.stat();
      if (size === 0) await options.syncFolder(dirname(path));
      return new AppendFile(path, handle, size, options.isSynced);
    });
  }

  /** The append that was begun last: resolves with the length after it. */
  private appending: Promise<number> | undefined;

  private constructor(
    readonly path: string,
    private readonly handle: FileHandle,
    private length: number,
    private readonly isSynced: boolean,
  ) {}

  /** Bytes that were appended successfully. */
  get lengthBytes(): number {
    return this.length;
  }

  /** Appends and syncs. When it throws, nothing counts as appended, and the file is to be opened again. One is under way at a time. */
  async append(pieces: readonly Uint8Array[]): Promise<void> {
    this.appending = this.write(pieces);
    try {
      this.length = await this.appending;
    } catch (error) {
      await this.handle.truncate(this.length).catch(() => undefined);
      throw error;
    }
  }

  private async write(pieces: readonly Uint8Array[]): Promise<number> {
    let at = this.length;
    for (let rest = pieces; rest.length > 0; ) {
      const written = await writeAt(this.handle.fd, rest.length > MAX_PIECES ? rest.slice(0, MAX_PIECES) : rest, at);
      rest = behind(rest, written);
      at += written;
    }
    if (this.isSynced && WRITES_SYNC === 0) await this.handle.datasync();
    this.checkName();
    return at;
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
  async settle(): Promise<void> {
    const whole = await wholeLinesLength(this.handle, this.length);
    if (whole < this.length) await this.rewind(whole);
    if (this.isSynced) await this.handle.datasync();
  }

  /** Closes it, once no write is under way: its descriptor may be another file's next. */
  async close(): Promise<void> {
    await this.appending?.catch(() => undefined);
    await this.handle.close();
  }
}

/** Writes pieces one after the other. The method of a handle costs as much again. @returns how many bytes were written, which may be fewer */
function writeAt(descriptor: number, pieces: readonly Uint8Array[], position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    writev(descriptor, pieces, position, (error, written) => {
      if (error === null) resolve(written);
      else reject(error);
    });
  });
}

/** Returns what is left of the pieces when so many bytes are written: a system may take less than it is given. */
function behind(pieces: readonly Uint8Array[], byteCount: number): readonly Uint8Array[] {
  let left = byteCount;
  let index = 0;
  while (left >= (pieces[index]?.length ?? Number.POSITIVE_INFINITY)) left -= pieces[index++]?.length ?? 0;
  const [first, ...others] = pieces.slice(index);
  return first === undefined ? [] : [first.subarray(left), ...others];
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
 * unmounted disk) must not be created again. Node's recursive `mkdir` does that, and reports
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
