import { readdir } from 'node:fs/promises';
import { errorCode } from './error-code.js';

/** The names in a folder, sorted; none where the folder is not there, or is no folder. @throws what else the system says. */
export async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return (await readdir(folder)).sort();
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return [];
    throw error;
  }
}
