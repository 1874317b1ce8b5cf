import { readFolderUsage } from './folder-usage.js';

/** The sizes of all files in a folder and below, in bytes; see `readFolderUsage`. */
export async function readFolderSize(folder: string, signal: AbortSignal): Promise<number> {
  return (await readFolderUsage(folder, signal)).sizeBytes;
}
