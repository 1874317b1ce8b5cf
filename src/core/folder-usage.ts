import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** What the files of a folder and below take. */
export interface FolderUsage {
  readonly fileCount: number;
  readonly sizeBytes: number;
}

/**
 * Counts all files in a folder and below. Goes through it one file at a time, so that it disturbs nobody. What comes or goes
 * meanwhile may be counted or not; what cannot be read counts nothing.
 * @param signal ends it early, with what was counted until then.
 */
export async function readFolderUsage(folder: string, signal?: AbortSignal): Promise<FolderUsage> {
  let fileCount = 0;
  let sizeBytes = 0;
  const folders = [folder];
  for (let next = folders.pop(); next !== undefined && !signal?.aborted; next = folders.pop()) {
    for (const entry of await readdir(next, { withFileTypes: true }).catch(() => [])) {
      const path = join(next, entry.name);
      if (entry.isDirectory()) folders.push(path);
      const found = entry.isFile() ? await stat(path).catch(() => undefined) : undefined;
      if (found !== undefined) fileCount += 1;
      sizeBytes += found?.size ?? 0;
      if (signal?.aborted) break;
    }
  }
  return { fileCount, sizeBytes };
}
