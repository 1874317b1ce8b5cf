import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a folder and those above it that are missing. Node's own recursive mkdir never returns where a parent refuses
 * with ENOENT, as in `/proc`.
 * @param mode of the folders that are made; default as the process's mask has it.
 * @throws what the file system throws.
 */
export function createFolder(folder: string, mode?: number): void {
  if (existsSync(folder)) return;
  if (dirname(folder) !== folder) createFolder(dirname(folder), mode);
  mkdirSync(folder, mode);
}
