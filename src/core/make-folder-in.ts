import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from './error-code.js';

/**
 * Makes a folder for its owner alone in one that is there, if it is not there yet. The other one is never made: where a
 * data folder has vanished, one in its place would pass for it.
 * @returns its path. @throws what the file system throws: `ENOENT` where the other one is gone.
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
