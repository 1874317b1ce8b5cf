import { closeSync, openSync, readFileSync, readSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { errorCode } from '../core/errors.js';
import { LineWindow } from '../core/lines.js';
import { LOG_FILE, RESOURCES_FILE } from '../log/append-file.js';
import { ResourceIndex } from '../log/resource-index.js';
import type { Resource } from '../record/attributes.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { LoggedLines } from './run-mapper.js';

/** Reads record logs as they stand, line by line, without making records of them. */
export interface LineSource {
  /**
   * Lends the whole lines from one offset up to another: about 1 MiB, but one line at least; none where there is none.
   * @param use is called once with them; they are not to be read any more when it has returned
   * @returns what it returned
   */
  read<T>(
    traceId: TraceId,
    fromOffset: number,
    toOffset: number,
    use: (lines: readonly LoggedLines[]) => T,
  ): Promise<T>;
}

/**
 * The lines of record logs on disk. They are read while the thread waits: what was just appended comes from the operating
 * system's memory, and to have another thread fetch it takes longer than to read it. A disk that is slow holds up what is
 * exported, and nothing that is accepted.
 */
export class RecordLogLines implements LineSource {
  private readonly indexes = new ResourceIndexes();
  /** Lines of all reads: a megabyte of memory for each would have the collector at work all the time. */
  private readonly window = new LineWindow();

  /** @param intern gives one object for equal resources, so that what is made of a resource is made once. */
  constructor(
    private readonly dataFolder: string,
    private readonly intern: (resource: Resource) => Resource,
  ) {}

  async read<T>(
    traceId: TraceId,
    fromOffset: number,
    toOffset: number,
    use: (lines: readonly LoggedLines[]) => T,
  ): Promise<T> {
    // Answers of destinations come in between.
    await setImmediate();
    const folder = join(this.dataFolder, 'runs', traceId);
    const lines = this.readWholeLines(join(folder, LOG_FILE), fromOffset, toOffset);
    return use(lines.length === 0 ? [] : this.withResources(folder, fromOffset, lines));
  }

  private readWholeLines(path: string, fromOffset: number, toOffset: number): Buffer {
    const { window } = this;
    window.moveTo(fromOffset);
    const file = openIfThere(path);
    if (file === undefined) return window.wholeLines();
    try {
      // Where no line ends in what was read, more is.
      for (let position = fromOffset; window.wholeLines().length === 0; ) {
        const from = position;
        const bytesRead = window.fill((room) => readSync(file, room, 0, Math.min(room.length, toOffset - from), from));
        if (bytesRead === 0) break;
        position += bytesRead;
      }
      return window.wholeLines();
    } finally {
      closeSync(file);
    }
  }

  private withResources(folder: string, fromOffset: number, lines: Buffer): readonly LoggedLines[] {
    // Looked up after the lines, so that it knows the resource of each.
    const index = this.indexes.of(folder);
    const endOffset = fromOffset + lines.length;
    const starts = index.between(fromOffset, endOffset);
    return starts.map(({ offset, resource }, number) => ({
      resource: this.intern(resource),
      offset,
      lines: lines.subarray(offset - fromOffset, (starts[number + 1]?.offset ?? endOffset) - fromOffset),
    }));
  }
}

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** As many runs as are being sent at a time, and some. */
const MAX_KNOWN = 64;

interface Known {
  readonly state: string;
  readonly index: ResourceIndex;
}

/** Whose the records of traces are, as their folders say: each is read again only where its file has changed. */
export class ResourceIndexes {
  private readonly known = new Map<string, Known>();

  /** @param folder of a trace. @returns an empty index if the folder has none. */
  of(folder: string): ResourceIndex {
    const path = join(folder, RESOURCES_FILE);
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return new ResourceIndex();
    const state = stateOf(stats);
    const known = this.known.get(folder);
    if (known?.state === state) return known.index;
    // What is written meanwhile changes the state, so that it is read again.
    const index = ResourceIndex.parse(readFileSync(path, 'utf8'));
    this.known.delete(folder);
    this.known.set(folder, { state, index });
    const [oldest] = this.known.keys();
    if (this.known.size > MAX_KNOWN && oldest !== undefined) this.known.delete(oldest);
    return index;
  }
}

function stateOf({ ino, size, mtimeMs }: Stats): string {
  return `${ino} ${size} ${mtimeMs}`;
}
