import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from './error-code.js';

/**
 * Creates a folder for its owner alone in an existing one. The parent is never created: where a
 * data folder has vanished, a new one would be mistaken for it.
 * @returns its path. @throws errors of the file system: `ENOENT` if the parent is gone.
 */
export async function makeFolderIn(parent: string, name: string): Promise<string> {
  const path = join(parent, name);
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
  return path;
}
