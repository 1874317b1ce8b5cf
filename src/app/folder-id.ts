import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FOLDER_ID_FILE } from '../storage/data-folder.js';

/** Returns the id of a data folder in a database, generated on first use. @param random returns a number in [0, 1) */
export function folderIdOf(dataFolder: string, random: () => number): string {
  const path = join(dataFolder, FOLDER_ID_FILE);
  try {
    const id = readFileSync(path, 'utf8').trim();
    if (id !== '') return id;
  } catch {
    // The file does not exist yet.
  }
  const id = Array.from({ length: 4 }, () => Math.floor(random() * 2 ** 32).toString(16)).join('-');
  // Renamed when it is complete, so that a kill cannot leave half of it.
  writeFileSync(`${path}.partial`, `${id}\n`, { flush: true });
  renameSync(`${path}.partial`, path);
  return id;
}
