import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Name of the file with the id, in the data folder; it is there where the state is, or was, in PostgreSQL. */
export const FOLDER_ID_FILE = 'folder-id';

/** An id of a data folder, made up when it is first asked for: by it the folder is known in a database. @param random uniform in [0, 1) */
export function folderIdOf(dataFolder: string, random: () => number): string {
  const path = join(dataFolder, FOLDER_ID_FILE);
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    const id = Array.from({ length: 4 }, () => Math.floor(random() * 2 ** 32).toString(16)).join('-');
    writeFileSync(path, `${id}\n`);
    return id;
  }
}
