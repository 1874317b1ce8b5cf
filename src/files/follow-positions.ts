import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TailPosition } from './tail-position.js';

/** Name of the positions' folder in the data folder. */
export const POSITIONS_FOLDER = 'follow';

/** How long the position of a missing file is kept: 30 days, in milliseconds. */
const MAX_AGE_MS = 30 * 86_400_000;

/**
 * Stores how far followed files were read: one small file in the data folder for each path and each bridge that the records go to. If one is lost, the file is read again, and no record is written
 * twice.
 */
export class FollowPositions {
  private readonly unsaved = new Map<string, TailPosition>();

  /** @param target where the records go: a bridge's URL, or empty for the data folder */
  constructor(
    private readonly folder: string,
    private readonly target: string,
  ) {}

  /** Returns the position of a file; `undefined` if it was never followed. */
  async find(path: string): Promise<TailPosition | undefined> {
    const unsaved = this.unsaved.get(path);
    if (unsaved !== undefined) return unsaved;
    try {
      return parsePosition(JSON.parse(await readFile(this.fileOf(path), 'utf8')), path);
    } catch {
      // The position was not saved yet or is damaged, so the file is read from its beginning.
      return undefined;
    }
  }

  /** Sets a position, to be saved by `save`. */
  note(path: string, position: TailPosition): void {
    this.unsaved.set(path, position);
  }

  /**
   * Saves the positions set since the last call.
   * @param settle is called and awaited first; it makes everything before the positions durable
   */
  async save(settle: () => Promise<void>): Promise<void> {
    if (this.unsaved.size === 0) return;
    const noted = [...this.unsaved];
    await settle();
    await mkdir(this.folder, { recursive: true });
    for (const [path, position] of noted) {
      const file = this.fileOf(path);
      // Written by renaming, so that a kill leaves either the old or the new position.
      await writeFile(`${file}.partial`, `${JSON.stringify({ path, target: this.target, ...position })}\n`);
      await rename(`${file}.partial`, file);
      if (this.unsaved.get(path) === position) this.unsaved.delete(path);
    }
  }

  /** Removes the positions of files that have been missing for 30 days. */
  async prune(nowUnixMs: number): Promise<void> {
    for (const name of await readdir(this.folder).catch(() => [])) {
      const file = join(this.folder, name);
      try {
        if (nowUnixMs - (await stat(file)).mtimeMs < MAX_AGE_MS) continue;
        const { path } = JSON.parse(await readFile(file, 'utf8')) as { path: string };
        if ((await stat(path).catch(() => undefined)) === undefined) await rm(file);
      } catch {
        // An unreadable file here does no harm.
      }
    }
  }

  private fileOf(path: string): string {
    const name = createHash('sha256').update(`${path}\0${this.target}`).digest('hex').slice(0, 32);
    return join(this.folder, `${name}.json`);
  }
}

/** Checks a parsed position without zod, since it is one small object. @returns `undefined` if it is not valid, or belongs to another path */
function parsePosition(value: unknown, ofPath: string): TailPosition | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (!('path' in value && 'inode' in value && 'offset' in value && 'line' in value)) return undefined;
  if (!('headBytes' in value && 'headHash' in value) || value.path !== ofPath) return undefined;
  const { inode, offset, line, headBytes, headHash } = value;
  if (typeof inode !== 'string' || typeof headHash !== 'string') return undefined;
  if (typeof offset !== 'number' || typeof line !== 'number' || typeof headBytes !== 'number') return undefined;
  return { inode, offset, line, headBytes, headHash };
}
