import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { errorCode } from '../component/error-code.js';

/**
 * Makes a folder, and the one above it where `withParent` says so; never more: a data folder that has vanished (an
 * unmounted disk) must not come into being again beside the real one. Node's own recursive `mkdir` does that, and says
 * ENOENT where the file system is read-only.
 * @returns whether it was made
 */
export async function makeFolder(folder: string, withParent: boolean): Promise<boolean> {
  try {
    await mkdir(folder);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    if (errorCode(error) !== 'ENOENT' || !withParent) throw error;
  }
  await makeFolder(dirname(folder), false);
  return makeFolder(folder, false);
}
