import { statfs } from 'node:fs/promises';

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
