import { closeSync, openSync, readFileSync, readSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { errorCode } from '../core/errors.js';
import { LineWindow, openIfThere } from '../core/lines.js';
import { setLatest } from '../core/lists.js';
import { LOG_FILE, RESOURCES_FILE } from '../log/append-file.js';
import { ResourceIndex } from '../log/resource-index.js';
import { type Resource, resourceKey } from '../record/attributes.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { LoggedLines } from './run-mapper.js';

/** A stretch of a record log. */
export interface LogStretch {
  readonly fromOffset: number;
  readonly toOffset: number;
  /** About so many bytes of it are read at a time. */
  readonly maxBytes: number;
  /** Whether it was appended a moment ago, so that the system has it in its memory. */
  readonly isLive: boolean;
}

/** Reads record logs as they stand, line by line, without making records of them. */
export interface LineSource {
  /**
   * Lends the whole lines of a stretch from its beginning on: up to `maxBytes`, but one line at least; none where there is none.
   * @param use is called once with them; they are not to be read any more when it has returned
   * @returns what it returned
   */
  read<T>(traceId: TraceId, stretch: LogStretch, use: (lines: readonly LoggedLines[]) => T): Promise<T>;
}

/** What is fetched at a time, at most, in bytes. */
const MAX_FETCHED_BYTES = 256 * 1024;

/**
 * The lines of record logs on disk. They are read while the thread waits: to have another thread fetch what the system has in its memory
 * takes longer than to read it. What is not live is fetched first, so that a disk that is slow holds up what is exported, and nothing
 * that is accepted.
 */
export class RecordLogLines implements LineSource {
  private readonly indexes = new ResourceIndexes();
  private readonly resources = new InternedResources();
  /** Lines of all reads: memory of its own for each would have the collector at work all the time. */
  private readonly window = new LineWindow();
  /** What was fetched, which nobody looks at: it is read again where the system has it then. */
  private readonly fetched = Buffer.allocUnsafeSlow(MAX_FETCHED_BYTES);

  constructor(private readonly dataFolder: string) {}

  async read<T>(traceId: TraceId, stretch: LogStretch, use: (lines: readonly LoggedLines[]) => T): Promise<T> {
    const folder = join(this.dataFolder, 'runs', traceId);
    const path = join(folder, LOG_FILE);
    if (!stretch.isLive) await this.fetch(path, stretch);
    const lines = this.readWholeLines(path, stretch);
    return use(lines.length === 0 ? [] : this.withResources(folder, stretch.fromOffset, lines));
  }

  /** Has the system take the next piece into its memory, while others go on. */
  private async fetch(path: string, { fromOffset, toOffset, maxBytes }: LogStretch): Promise<void> {
    const handle = await openIfThere(path);
    if (handle === undefined) return;
    try {
      const wanted = Math.min(this.fetched.length, maxBytes, toOffset - fromOffset);
      await handle.read(this.fetched, 0, wanted, fromOffset);
    } finally {
      await handle.close();
    }
  }

  private readWholeLines(path: string, { fromOffset, toOffset, maxBytes }: LogStretch): Buffer {
    const { window } = this;
    window.moveTo(fromOffset);
    const file = openNowIfThere(path);
    if (file === undefined) return window.wholeLines();
    try {
      // Where no line ends in what was read, more is.
      for (let position = fromOffset; window.wholeLines().length === 0; ) {
        const from = position;
        const wanted = Math.min(maxBytes, toOffset - from);
        const bytesRead = window.fill((room) => readSync(file, room, 0, Math.min(room.length, wanted), from));
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
      resource: this.resources.intern(resource),
      offset,
      lines: lines.subarray(offset - fromOffset, (starts[number + 1]?.offset ?? endOffset) - fromOffset),
    }));
  }
}

function openNowIfThere(path: string): number | undefined {
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
    setLatest(this.known, folder, { state, index }, MAX_KNOWN);
    return index;
  }
}

function stateOf({ ino, size, mtimeMs }: Stats): string {
  return `${ino} ${size} ${mtimeMs}`;
}

/** Different resources that are remembered; the one used longest ago goes first. */
const MAX_RESOURCES = 1_000;

/** One object for each resource, however many logs have it: what is made of a resource is made once. */
class InternedResources {
  private readonly byKey = new Map<string, Resource>();

  intern(resource: Resource): Resource {
    const key = resourceKey(resource);
    const known = this.byKey.get(key) ?? resource;
    setLatest(this.byKey, key, known, MAX_RESOURCES);
    return known;
  }
}
