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
  /** Where an earlier reading stopped. Default: the file's beginning. */
  readonly from?: TailPosition | undefined;
  /** How often the file is looked at when the system says nothing, in milliseconds. Default 80. */
  readonly pollMs?: number;
  /** Whether the system is to say when the file grows, which takes a moment for each write. Default: it is; of a named pipe it always is. */
  readonly isWatched?: boolean;
  /** How long to let more come when the file has grown, so that not each line is taken alone, in milliseconds. Default 10, and always that of a named pipe, which holds little: who writes into it would wait. */
  readonly gatherMs?: number;
  /** The longest line that is taken, in bytes. Default 64 MiB. */
  readonly maxLineBytes?: number;
  /** How long a file that lost its name to a new one is still read after it last grew, in milliseconds. Default 10 minutes. */
  readonly retiredMs?: number;
}

/** Lines of a file that is being written. */
export interface TailChunk {
  /** Whole lines with something on them, in the file's order. */
  readonly lines: readonly Line[];
  /** What is no line that can be taken: too long, cut off, or half at the end. */
  readonly rejects: readonly Reject[];
  /**
   * Behind all this; a tail `from` here gives what comes next. Of a file that lost its name to a new one there is none:
   * the last one given stays.
   */
  readonly position: TailPosition | undefined;
}

const DEFAULT_POLL_MS = 80;
const DEFAULT_GATHER_MS = 10;
const DEFAULT_RETIRED_MS = 600_000;
/** Files that lost their name and are still read; of more, the oldest is let go. */
const MAX_RETIRED = 4;

/** A file that lost its name to a new one, by a log rotation say; who had it open may write to it still. */
interface Retired {
  readonly file: TailedFile;
  grownAtMs: number;
}

/**
 * The lines of one file, or named pipe, while somebody writes it: from a position on, through growth, rotation (the name
 * goes to a new file) and truncation. It need not exist yet. A half line at the end is held until it is complete. Holds
 * one read of 1 MiB and the line that is not complete yet, and reads on only when it is asked for more. What is written
 * is given within about 100 ms.
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

  /**
   * Nothing more will be written: what is there is given, a half line too if it is JSON (else as a reject), and the chunks
   * end.
   */
  finish(): void {
    this.isFinishing = true;
    this.rest.abort();
    this.watch.notify();
  }

  /**
   * The chunks, as they come; to be read once. They end after `finish()`, and at once when the signal aborts: a half line is
   * left then for the process that continues from the last position.
   * @throws SourceError when the file cannot be read.
   */
  async *chunks(signal: AbortSignal): AsyncGenerator<TailChunk> {
    const ended = AbortSignal.any([signal, this.rest.signal]);
    try {
      yield* this.resumeRenamed(signal);
      while (!signal.aborted) {
        // Asked before reading: what is written before `finish()` is read after it.
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

  /** What was rotated away while nobody looked is read to its end first. */
  private async *resumeRenamed(signal: AbortSignal): AsyncGenerator<TailChunk> {
    const { from } = this;
    if (from === undefined) return;
    const path = await findRenamed(this.path, from);
    const file = path === undefined ? undefined : await TailedFile.open(path, this.maxLineBytes, from);
    if (file === undefined) return;
    if (file.position.offset !== from.offset) {
      // Its number was given to another file, which is none of ours.
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
      // It may have grown before it lost its name.
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

  /** All that is there now: what is written while that is taken waits for more to come, but for the end. */
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
    // Without a successor it is read on: who writes it does not care for its name.
    return found !== undefined && `${found.dev}:${found.ino}` !== file.identity;
  }

  private toChunk({ lines, tooLong, rejects, position }: TailedLines, isCurrent: boolean): TailChunk {
    const long = tooLong.map((line) => rejectLongLine(line, this.maxLineBytes));
    return { lines, rejects: [...rejects, ...long], position: isCurrent ? position : undefined };
  }

  /** A last line without a line break counts if it is JSON. */
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

/**
 * Notices that a file may have changed: by the system's word where there is one, and by the time in any case, since
 * network file systems and some containers say nothing.
 */
export class FileWatch {
  private folder: FSWatcher | undefined;
  private file: FSWatcher | undefined;
  private isWoken = false;
  private wake: (() => void) | undefined;

  constructor(
    private readonly path: string,
    private readonly clock: Clock,
    /** How long to wait at most, in milliseconds. */
    private readonly pollMs: number,
    private readonly isWatched = true,
  ) {}

  /**
   * Resolves when the file may have changed since the last call, the time is over, or the signal aborts; keeps the process
   * alive meanwhile.
   * @param isPipe whether the file is a named pipe: its folder's watcher does not notice what is written into it.
   */
  async wait(signal: AbortSignal, isPipe: boolean): Promise<void> {
    if (this.isWatched)
      this.folder ??= this.begin(dirname(this.path), (name) => name === null || name === basename(this.path));
    if (isPipe) this.file ??= this.begin(this.path, () => true);
    if (!this.isWoken && !signal.aborted) {
      // The clock's timers let a process end, and so do watchers where there are none.
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

  /** Ends a wait that is under way, or the next one. */
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
      // A folder that goes away, or one watch too many: the time is left to go by.
      watcher.on('error', () => watcher.close());
      return watcher;
    } catch {
      return undefined;
    }
  }
}

/** Files of a folder that are looked at. */
const MAX_FILES = 10_000;

/**
 * Where the file of a position is by now, if its name went to another one: looked for by its number in its own folder,
 * where log rotations leave it.
 */
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
