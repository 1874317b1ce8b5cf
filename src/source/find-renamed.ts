import { readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { HEAD_BYTES, type TailPosition } from './tail-position.js';

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
