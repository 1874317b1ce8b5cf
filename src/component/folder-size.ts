import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * The sizes of all files in a folder and below, in bytes. Goes through it one file at a time, so that it disturbs nobody.
 * What comes or goes meanwhile may be counted or not; what cannot be read counts nothing.
 * @param signal ends it early, with what was counted until then.
 */
export async function readFolderSize(folder: string, signal: AbortSignal): Promise<number> {
  let sizeBytes = 0;
  const folders = [folder];
  for (let next = folders.pop(); next !== undefined && !signal.aborted; next = folders.pop()) {
    for (const entry of await readdir(next, { withFileTypes: true }).catch(() => [])) {
      const path = join(next, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile()) sizeBytes += (await stat(path).catch(() => undefined))?.size ?? 0;
      if (signal.aborted) break;
    }
  }
  return sizeBytes;
}
