import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a folder and its missing parents. Node's own recursive mkdir never returns if a parent refuses
 * with ENOENT, as in `/proc`.
 * @param mode of the created folders; default: by the process's mask.
 * @throws errors of the file system.
 */
export function createFolder(folder: string, mode?: number): void {
  if (existsSync(folder)) return;
  if (dirname(folder) !== folder) createFolder(dirname(folder), mode);
  mkdirSync(folder, mode);
}
