import { type FSWatcher, watch } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Clock, pause } from '../core/clock.js';
import { type Line, MAX_LINE_BYTES, textOf } from '../core/lines.js';
import { unreadable } from './jsonl-file.js';
import { rejectLine, rejectLongLine } from './read-record.js';
import type { Reject } from './record-source.js';
import { HEAD_BYTES, type TailPosition } from './tail-position.js';
import { TailedFile, type TailedLines } from './tailed-file.js';

/** How a file is followed. */
export interface JsonlTailOptions {
  /** The position at which an earlier reading stopped. Default: the file's beginning. */
  readonly from?: TailPosition | undefined;
  /** How often the file is checked without a notification of the system, in milliseconds. Default 80. */
  readonly pollMs?: number;
  /** Whether to use the system's notifications of changes, which cost some time for each write. Default true; always true for a named pipe. */
  readonly isWatched?: boolean;
  /**
   * How long to wait for more after the file has grown, so that not each line is read alone, in milliseconds. Default 10; always 10 for a named pipe, whose writer waits when its small buffer is
   * full.
   */
  readonly gatherMs?: number;
  /** The longest line that is accepted, in bytes. Default 64 MiB. */
  readonly maxLineBytes?: number;
  /** How long a file that was renamed is still read after it last grew, in milliseconds. Default 10 minutes. */
  readonly retiredMs?: number;
}

/** Lines of a file that is being written. */
export interface TailChunk {
  /** Complete lines that are not blank, in order. */
  readonly lines: readonly Line[];
  /** Lines that cannot be used: too long, cut off, or incomplete at the end. */
  readonly rejects: readonly Reject[];
  /** The position after these lines; a tail `from` there continues with the next ones. `undefined` for a file that was renamed: the last position remains valid. */
  readonly position: TailPosition | undefined;
}

const DEFAULT_POLL_MS = 80;
const DEFAULT_GATHER_MS = 10;
const DEFAULT_RETIRED_MS = 600_000;
/** The most renamed files that are still read; the oldest one is dropped. */
const MAX_RETIRED = 4;

/** A file whose name now belongs to another file, for example after a log rotation; a program that had it open may still write to it. */
interface Retired {
  readonly file: TailedFile;
  grownAtMs: number;
}

/**
 * Reads the lines of a file or named pipe while it is written: from a position on, through growth, rotation (its name is given to a new file) and truncation. The file need not exist yet. An
 * incomplete last line is buffered until it is complete. Buffers one read of 1 MiB and the incomplete line, and reads on only on demand. Lines are returned within about 100 ms after they were
 * written.
 */
export class JsonlTail {
  private readonly maxLineBytes: number;
  private readonly gatherMs: number;
  private readonly retiredMs: number;
  private readonly watch: FileWatch;
  private current: TailedFile | undefined;
  private retired: Retired[] = [];
  private from: TailPosition | undefined;
  private isFinishing = false;
  private readonly rest = new AbortController();

  constructor(
    readonly path: string,
    options: JsonlTailOptions,
    private readonly clock: Clock,
  ) {
    this.from = options.from;
    this.maxLineBytes = options.maxLineBytes ?? MAX_LINE_BYTES;
    this.gatherMs = options.gatherMs ?? DEFAULT_GATHER_MS;
    this.retiredMs = options.retiredMs ?? DEFAULT_RETIRED_MS;
    this.watch = new FileWatch(path, clock, options.pollMs ?? DEFAULT_POLL_MS, options.isWatched);
  }

  /** Ends the chunks after everything that is in the file now, including an incomplete last line if it is JSON (else as a reject). To be called when nothing more will be written. */
  finish(): void {
    this.isFinishing = true;
    this.rest.abort();
    this.watch.notify();
  }

  /**
   * Yields the chunks as they arrive; may be called once. They end after `finish()`, and at once when the signal aborts; an incomplete line is then left for the process that continues from the last
   * position.
   * @throws SourceError if the file cannot be read
   */
  async *chunks(signal: AbortSignal): AsyncGenerator<TailChunk> {
    const ended = AbortSignal.any([signal, this.rest.signal]);
    try {
      yield* this.resumeRenamed(signal);
      while (!signal.aborted) {
        // Read before the file, so that everything written before `finish()` is read after it.
        const { isFinishing } = this;
        yield* this.readAll(signal);
        if (isFinishing) {
          yield* this.takeRests();
          return;
        }
        const { current } = this;
        await this.watch.wait(signal, current?.isPipe === true);
        if (current !== undefined) await pause(this.clock, current.isPipe ? DEFAULT_GATHER_MS : this.gatherMs, ended);
      }
    } catch (cause) {
      throw unreadable(this.path, cause);
    } finally {
      this.watch.close();
      await this.current?.close();
      await Promise.all(this.retired.map(({ file }) => file.close()));
    }
  }

  /** Reads a file to its end first that was renamed while nobody was reading. */
  private async *resumeRenamed(signal: AbortSignal): AsyncGenerator<TailChunk> {
    const { from } = this;
    if (from === undefined) return;
    const path = await findRenamed(this.path, from);
    const file = path === undefined ? undefined : await TailedFile.open(path, this.maxLineBytes, from);
    if (file === undefined) return;
    if (file.position.offset !== from.offset) {
      // Another file got its inode number.
      await file.close();
      return;
    }
    this.from = undefined;
    this.retired.push({ file, grownAtMs: this.clock.monotonicMs() });
    yield* this.readRetired(signal);
  }

  private async *readAll(signal: AbortSignal): AsyncGenerator<TailChunk> {
    yield* this.readRetired(signal);
    if (this.current === undefined) await this.openCurrent();
    for (;;) {
      const { current } = this;
      if (current === undefined) return;
      yield* this.linesOf(current, signal, true);
      if (signal.aborted || !(await this.hasLostName(current))) return;
      // It may have grown before it was renamed.
      this.retired.push({ file: current, grownAtMs: this.clock.monotonicMs() });
      this.current = undefined;
      yield* this.readRetired(signal);
      await this.openCurrent();
    }
  }

  private async openCurrent(): Promise<void> {
    const file = await TailedFile.open(this.path, this.maxLineBytes, this.from);
    if (file === undefined) return;
    this.current = file;
    this.from = undefined;
  }

  private async *readRetired(signal: AbortSignal): AsyncGenerator<TailChunk> {
    for (const one of this.retired) {
      for await (const chunk of this.linesOf(one.file, signal, false)) {
        one.grownAtMs = this.clock.monotonicMs();
        yield chunk;
      }
    }
    const nowMs = this.clock.monotonicMs();
    const kept = this.retired.filter(({ grownAtMs }) => nowMs - grownAtMs < this.retiredMs).slice(-MAX_RETIRED);
    for (const { file } of this.retired.filter((one) => !kept.includes(one))) {
      this.retired = this.retired.filter((one) => one.file !== file);
      const rest = file.end();
      await file.close();
      if (rest !== undefined) yield this.toLastChunk(rest, false);
    }
  }

  /** Yields what is in the file now. Lines written meanwhile wait for the next call, unless the tail is finishing. */
  private async *linesOf(file: TailedFile, signal: AbortSignal, isCurrent: boolean): AsyncGenerator<TailChunk> {
    for (let read = await file.read(); read !== undefined; read = await file.read()) {
      const chunk = this.toChunk(read, isCurrent);
      if (chunk.lines.length > 0 || chunk.rejects.length > 0) yield chunk;
      if (signal.aborted || !(file.mayHaveMore || this.isFinishing)) return;
    }
  }

  private async *takeRests(): AsyncGenerator<TailChunk> {
    for (const { file } of this.retired) {
      const rest = file.end();
      if (rest !== undefined) yield this.toLastChunk(rest, false);
    }
    const rest = this.current?.end();
    if (rest !== undefined) yield this.toLastChunk(rest, true);
  }

  private async hasLostName(file: TailedFile): Promise<boolean> {
    const found = await stat(this.path, { bigint: true }).catch(() => undefined);
    // A file without a successor is still read: its writer does not need the name.
    return found !== undefined && `${found.dev}:${found.ino}` !== file.identity;
  }

  private toChunk({ lines, tooLong, rejects, position }: TailedLines, isCurrent: boolean): TailChunk {
    const long = tooLong.map((line) => rejectLongLine(line, this.maxLineBytes));
    return { lines, rejects: [...rejects, ...long], position: isCurrent ? position : undefined };
  }

  /** Converts the rest of a file; a last line without a line break is accepted if it is JSON. */
  private toLastChunk(rest: TailedLines, isCurrent: boolean): TailChunk {
    const chunk = this.toChunk(rest, isCurrent);
    const halves = chunk.lines.filter((line) => !isJson(line)).map((line) => rejectLine(line, 'cut off at the end'));
    return { ...chunk, lines: chunk.lines.filter(isJson), rejects: [...chunk.rejects, ...halves] };
  }
}

function isJson(line: Line): boolean {
  try {
    JSON.parse(textOf(line));
    return true;
  } catch {
    return false;
  }
}

/** Notices that a file may have changed: by notifications of the system if there are any, and by polling, since network file systems and some containers send none. */
export class FileWatch {
  private folder: FSWatcher | undefined;
  private file: FSWatcher | undefined;
  private isWoken = false;
  private wake: (() => void) | undefined;

  constructor(
    private readonly path: string,
    private readonly clock: Clock,
    /** The longest wait, in milliseconds. */
    private readonly pollMs: number,
    private readonly isWatched = true,
  ) {}

  /**
   * Resolves when the file may have changed since the last call, after `pollMs`, or when the signal aborts; keeps the process alive meanwhile.
   * @param isPipe whether the file is a named pipe, whose folder's watcher does not notice writes to it
   */
  async wait(signal: AbortSignal, isPipe: boolean): Promise<void> {
    if (this.isWatched)
      this.folder ??= this.begin(dirname(this.path), (name) => name === null || name === basename(this.path));
    if (isPipe) this.file ??= this.begin(this.path, () => true);
    if (!this.isWoken && !signal.aborted) {
      // Neither the clock's timers nor watchers keep the process alive in every case.
      const alive = setInterval(() => {}, 2 ** 30);
      await new Promise<void>((resolve) => {
        const timer = this.clock.after(this.pollMs, done);
        this.wake = done;
        signal.addEventListener('abort', done, { once: true });
        function done(): void {
          timer.cancel();
          signal.removeEventListener('abort', done);
          resolve();
        }
      });
      clearInterval(alive);
      this.wake = undefined;
    }
    this.isWoken = false;
  }

  /** Ends the current wait, or the next one. */
  notify(): void {
    this.isWoken = true;
    this.wake?.();
  }

  close(): void {
    this.folder?.close();
    this.file?.close();
  }

  private begin(path: string, concerns: (name: string | null) => boolean): FSWatcher | undefined {
    try {
      const watcher = watch(path, (_event, name) => {
        if (concerns(name)) this.notify();
      });
      // If the folder is removed or there are too many watches, polling remains.
      watcher.on('error', () => watcher.close());
      return watcher;
    } catch {
      return undefined;
    }
  }
}

/** The most files of a folder that are examined. */
const MAX_FILES = 10_000;

/** Finds the file of a position if its name now belongs to another file: by its inode number in the same folder, where log rotations leave it. */
export async function findRenamed(path: string, { inode, headBytes }: TailPosition): Promise<string | undefined> {
  if (headBytes === 0 || headBytes > HEAD_BYTES || (await inodeOf(path)) === inode) return undefined;
  const names = await readdir(dirname(path)).catch(() => []);
  for (const name of names.slice(0, MAX_FILES)) {
    const candidate = join(dirname(path), name);
    if ((await inodeOf(candidate)) === inode) return candidate;
  }
  return undefined;
}

async function inodeOf(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found?.isFile() === true ? String(found.ino) : undefined;
}
