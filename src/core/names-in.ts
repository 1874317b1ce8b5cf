import { readdir } from 'node:fs/promises';
import { errorCode } from './error-code.js';

/** The sorted names in a folder; none if it does not exist or is not a folder. @throws other errors of the file system. */
export async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return (await readdir(folder)).sort();
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return [];
    throw error;
  }
}
