import { readFileSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { ResourceIndex } from '../sink/resource-index.js';
import { RESOURCES_FILE } from '../sink/trace-log.js';

/** As many runs as are being sent at a time, and some. */
const MAX_KNOWN = 64;

interface Known {
  readonly state: string;
  readonly index: ResourceIndex;
}

/** Whose the records of traces are, as their folders say: each is read again only where its file has changed. */
export class ResourceIndexes {
  private readonly known = new Map<string, Known>();

  /** @param folder of a trace. @returns an index that knows nobody where the folder has none. */
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
