import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TailPosition } from './tail-position.js';

/** Name of their folder in the data folder. */
export const POSITIONS_FOLDER = 'follow';

/** A position of a file that is gone is kept so long, in milliseconds: 30 days. */
const MAX_AGE_MS = 30 * 86_400_000;

/**
 * How far files that are followed were taken, in the data folder: one small file for each path and each bridge that the
 * records go to. Losing one costs reading the file again, of which nothing is written twice.
 */
export class FollowPositions {
  private readonly unsaved = new Map<string, TailPosition>();

  /** @param target where the records go: a bridge's URL, or empty for the data folder itself. */
  constructor(
    private readonly folder: string,
    private readonly target: string,
  ) {}

  /** Where to go on; `undefined` for a file that was never followed. */
  async find(path: string): Promise<TailPosition | undefined> {
    const unsaved = this.unsaved.get(path);
    if (unsaved !== undefined) return unsaved;
    try {
      return parsePosition(JSON.parse(await readFile(this.fileOf(path), 'utf8')), path);
    } catch {
      // Not written yet, or damaged: the file is read from its beginning.
      return undefined;
    }
  }

  /** Remembers a position until it is saved. */
  note(path: string, position: TailPosition): void {
    this.unsaved.set(path, position);
  }

  /**
   * Saves what was noted.
   * @param settle is called first and waited for: what must be so before a position counts.
   */
  async save(settle: () => Promise<void>): Promise<void> {
    if (this.unsaved.size === 0) return;
    const noted = [...this.unsaved];
    await settle();
    await mkdir(this.folder, { recursive: true });
    for (const [path, position] of noted) {
      const file = this.fileOf(path);
      // Renamed into place: a kill leaves the old one or the new one.
      await writeFile(`${file}.partial`, `${JSON.stringify({ path, target: this.target, ...position })}\n`);
      await rename(`${file}.partial`, file);
      if (this.unsaved.get(path) === position) this.unsaved.delete(path);
    }
  }

  /** Removes what belongs to files that have been gone for 30 days. */
  async prune(nowUnixMs: number): Promise<void> {
    for (const name of await readdir(this.folder).catch(() => [])) {
      const file = join(this.folder, name);
      try {
        if (nowUnixMs - (await stat(file)).mtimeMs < MAX_AGE_MS) continue;
        const { path } = JSON.parse(await readFile(file, 'utf8')) as { path: string };
        if ((await stat(path).catch(() => undefined)) === undefined) await rm(file);
      } catch {
        // Whatever it is, it does no harm.
      }
    }
  }

  private fileOf(path: string): string {
    const name = createHash('sha256').update(`${path}\0${this.target}`).digest('hex').slice(0, 32);
    return join(this.folder, `${name}.json`);
  }
}

/** By hand: one small object. `undefined` when it is none, or another path's. */
function parsePosition(value: unknown, ofPath: string): TailPosition | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (!('path' in value && 'inode' in value && 'offset' in value && 'line' in value)) return undefined;
  if (!('headBytes' in value && 'headHash' in value) || value.path !== ofPath) return undefined;
  const { inode, offset, line, headBytes, headHash } = value;
  if (typeof inode !== 'string' || typeof headHash !== 'string') return undefined;
  if (typeof offset !== 'number' || typeof line !== 'number' || typeof headBytes !== 'number') return undefined;
  return { inode, offset, line, headBytes, headHash };
}
