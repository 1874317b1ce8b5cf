import { createHash } from 'node:crypto';

/** How far a file that is still written was read: enough to go on there, also in another process. */
export interface TailPosition {
  /** The file's number in its file system: a file that was renamed keeps it. */
  readonly inode: string;
  /** Behind the last whole line that was taken, in bytes. */
  readonly offset: number;
  /** Number of the line that begins there; lines count from 1. */
  readonly line: number;
  /** How many of the file's first bytes `headHash` covers: at most 1 KiB, and none behind `offset`. */
  readonly headBytes: number;
  /** SHA-256 of them: another file with the same number begins with other bytes, such as another trace id. */
  readonly headHash: string;
}

/** How much of a file's beginning tells it from others, in bytes. */
export const HEAD_BYTES = 1024;

/** The hash of a file's beginning. */
export function hashOfHead(head: Uint8Array): string {
  return createHash('sha256').update(head).digest('hex');
}
