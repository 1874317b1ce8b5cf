import { existsSync, mkdirSync } from 'node:fs';
import { mkdir, open, readdir, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorCode } from './errors.js';

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

/**
 * Creates a folder for its owner alone in an existing one. The parent is never created: where a
 * data folder has vanished, a new one would be mistaken for it.
 * @returns its path. @throws errors of the file system: `ENOENT` if the parent is gone.
 */
export async function makeFolderIn(parent: string, name: string): Promise<string> {
  const path = join(parent, name);
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
  return path;
}

/** The sorted names in a folder; none if it does not exist or is not a folder. @throws other errors of the file system. */
export async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return (await readdir(folder)).sort();
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return [];
    throw error;
  }
}

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

/** The sizes of all files in a folder and below, in bytes; see `readFolderUsage`. */
export async function readFolderSize(folder: string, signal: AbortSignal): Promise<number> {
  return (await readFolderUsage(folder, signal)).sizeBytes;
}

/**
 * Finds out whether a folder can be written: writes a block into it, syncs and removes it. Creates the folder where it is
 * missing, but not the one above it.
 * @throws Error of the file system when it cannot.
 */
export async function probeFolder(folder: string): Promise<void> {
  await mkdir(folder).catch(() => undefined);
  const path = join(folder, '.probe');
  try {
    const file = await open(path, 'w');
    try {
      await file.write(PROBE);
      await file.sync();
    } finally {
      await file.close();
    }
  } finally {
    await rm(path, { force: true });
  }
}

/** A whole block: less may still find room in what is taken already. */
const PROBE = Buffer.alloc(4_096);

/** The room on a file system. */
export interface DiskSpace {
  /** Total bytes; 0 if the file system does not report it, as some network and user-space ones do not. */
  readonly totalBytes: number;
  /** Bytes that a user other than root may still take. */
  readonly freeBytes: number;
}

/** The room on the file system that a folder is on. @throws Error with a system code where the folder is not there or does not answer. */
export async function readDiskSpace(folder: string): Promise<DiskSpace> {
  const { bsize, blocks, bavail } = await statfs(folder);
  return { totalBytes: blocks * bsize, freeBytes: bavail * bsize };
}
