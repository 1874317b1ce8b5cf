import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { stat } from 'node:fs/promises';

/** How far a file that is still being written was read, for continuing there, also in another process. */
export interface TailPosition {
  /** The file's inode number, which it keeps when it is renamed. */
  readonly inode: string;
  /** The end of the last complete line that was read, in bytes. */
  readonly offset: number;
  /** Number of the next line, from 1. */
  readonly line: number;
  /** The number of the file's first bytes that `headHash` covers: at most 1 KiB, and none after `offset`. */
  readonly headBytes: number;
  /** SHA-256 of these bytes: another file with the same inode number begins differently, for example with another trace id. */
  readonly headHash: string;
}

/** How many bytes at the start of a file distinguish it from others. */
export const HEAD_BYTES = 1024;

/** Hashes the start of a file. */
export function hashOfHead(head: Uint8Array): string {
  return createHash('sha256').update(head).digest('hex');
}

/** Returns the current end of a file, for reading what is appended to it; `undefined` if there is no file or it is empty. */
export function endPosition(path: string): TailPosition | undefined {
  let descriptor: number;
  try {
    // Without this flag, opening a pipe would wait for a writer.
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

/** Returns a position at an offset of a file whose start is not known; `undefined` for offset 0 or a missing file. */
export async function startPosition(path: string, offset: number): Promise<TailPosition | undefined> {
  if (offset === 0) return undefined;
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  if (found === undefined) return undefined;
  return { inode: String(found.ino), offset, line: 1, headBytes: 0, headHash: hashOfHead(new Uint8Array(0)) };
}
