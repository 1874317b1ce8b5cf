import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';

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

/** The position of an offset in a file that was never read; `undefined` for its beginning, or when it is not there. */
export async function startPosition(path: string, offset: number): Promise<TailPosition | undefined> {
  if (offset === 0) return undefined;
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  if (found === undefined) return undefined;
  return { inode: String(found.ino), offset, line: 1, headBytes: 0, headHash: hashOfHead(new Uint8Array(0)) };
}
