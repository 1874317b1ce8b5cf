import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { errorCode } from '../core/errors.js';

/** A line of a file, without its line break, and where it stands. */
export interface FileLine {
  readonly text: string;
  /** Offset of the line's first byte. */
  readonly offset: number;
  /** Offset of the byte after the line break. */
  readonly endOffset: number;
}

/** Bytes read at a time; a chunk holds the lines that end in it. */
const CHUNK_BYTES = 1024 * 1024;
const LINE_BREAK = 0x0a;

/**
 * Yields the whole lines of a file between two offsets, in chunks of about 1 MiB; a longer line makes its chunk longer.
 * A last line without its line break is left out. A file that does not exist has no lines.
 */
export async function* readLines(
  path: string,
  fromOffset = 0,
  toOffset = Number.POSITIVE_INFINITY,
): AsyncIterable<readonly FileLine[]> {
  const handle = await openIfThere(path);
  if (handle === undefined) return;
  try {
    let rest: Buffer = Buffer.alloc(0);
    let position = fromOffset;
    while (position < toOffset) {
      const wanted = Math.min(CHUNK_BYTES, toOffset - position);
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(wanted), 0, wanted, position);
      if (bytesRead === 0) return;
      const start = position - rest.length;
      position += bytesRead;
      const bytes =
        rest.length === 0 ? buffer.subarray(0, bytesRead) : Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
      const { lines, used } = splitLines(bytes, start);
      rest = bytes.subarray(used);
      if (lines.length > 0) yield lines;
    }
  } finally {
    await handle.close();
  }
}

function splitLines(bytes: Buffer, start: number): { lines: FileLine[]; used: number } {
  const lines: FileLine[] = [];
  let used = 0;
  for (let end = bytes.indexOf(LINE_BREAK); end !== -1; end = bytes.indexOf(LINE_BREAK, used)) {
    lines.push({ text: bytes.toString('utf8', used, end), offset: start + used, endOffset: start + end + 1 });
    used = end + 1;
  }
  return { lines, used };
}

/** Opens a file for reading; `undefined` if it does not exist. */
export async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_RDONLY);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}
