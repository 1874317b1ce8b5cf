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
 * Creates a folder with mode 0700 in an existing one. The parent is never created: if a data folder has vanished, a new one would be mistaken for it.
 * @returns its path
 * @throws errors of the file system: `ENOENT` if the parent is gone
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

/** Returns the sorted names in a folder; none if it does not exist or is not a folder. @throws other errors of the file system */
export async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return (await readdir(folder)).sort();
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return [];
    throw error;
  }
}

/** The number and size of the files in a folder and below. */
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

/** Returns the size of all files in a folder and below, in bytes; see `readFolderUsage`. */
export async function readFolderSize(folder: string, signal: AbortSignal): Promise<number> {
  return (await readFolderUsage(folder, signal)).sizeBytes;
}

/**
 * Checks that a folder can be written by writing a block into it, syncing and removing it. Creates the folder if it is missing, but not its parent.
 * @throws Error of the file system if it cannot be written
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

/** A whole block: fewer bytes may still fit into blocks that are already allocated. */
const PROBE = Buffer.alloc(4_096);

/** The size of a file system and its free space. */
export interface DiskSpace {
  /** Total bytes; 0 if the file system does not report it, as some network and user-space ones do not. */
  readonly totalBytes: number;
  /** Bytes that a user other than root may still take. */
  readonly freeBytes: number;
}

/** Reads the size and free space of the file system that a folder is on. @throws Error with a system code if the folder is missing or does not answer */
export async function readDiskSpace(folder: string): Promise<DiskSpace> {
  const { bsize, blocks, bavail } = await statfs(folder);
  return { totalBytes: blocks * bsize, freeBytes: bavail * bsize };
}
