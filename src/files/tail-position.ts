import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
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

/** The end of a file as it is now, to read what is appended to it; `undefined` where there is no file, or nothing in it. */
export function endPosition(path: string): TailPosition | undefined {
  let descriptor: number;
  try {
    // A pipe would have this wait for a writer.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const found = fstatSync(descriptor, { bigint: true });
    const offset = Number(found.size);
    if (!found.isFile() || offset === 0) return undefined;
    const buffer = Buffer.alloc(Math.min(HEAD_BYTES, offset));
    const head = buffer.subarray(0, readSync(descriptor, buffer, 0, buffer.length, 0));
    return { inode: String(found.ino), offset, line: 1, headBytes: head.length, headHash: hashOfHead(head) };
  } finally {
    closeSync(descriptor);
  }
}

/** The position of an offset in a file of whose beginning nothing is known; `undefined` for its beginning, or when it is not there. */
export async function startPosition(path: string, offset: number): Promise<TailPosition | undefined> {
  if (offset === 0) return undefined;
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  if (found === undefined) return undefined;
  return { inode: String(found.ino), offset, line: 1, headBytes: 0, headHash: hashOfHead(new Uint8Array(0)) };
}
