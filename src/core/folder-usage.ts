import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** What the files of a folder and below take. */
export interface FolderUsage {
  readonly fileCount: number;
  readonly sizeBytes: number;
}

/**
 * Counts all files below a folder, one at a time, so that other work is not disturbed. Files that appear or disappear
 * meanwhile may be counted or not; unreadable ones count as empty.
 * @param signal ends it early, with the count so far.
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
