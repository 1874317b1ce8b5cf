import { createReadStream } from 'node:fs';
import { type ByteLine, LineSplitter, MAX_LINE_BYTES, type SplitLines } from './line-splitter.js';

/** Lines that were read together. */
export interface LineChunk extends SplitLines {
  /** Bytes read so far. */
  readonly bytesRead: number;
}

/** Bytes asked for at a time. */
const READ_BYTES = 1024 * 1024;

/**
 * Reads a file or pipe line by line. Lines end in LF or CRLF; blank ones are passed over; the last one needs no line
 * break. Holds about one read of 1 MiB and the line that is not complete yet, at most `maxLineBytes`.
 */
export async function* readLineChunks(
  path: string,
  signal: AbortSignal,
  maxLineBytes = MAX_LINE_BYTES,
): AsyncGenerator<LineChunk> {
  const splitter = new LineSplitter(maxLineBytes);
  let bytesRead = 0;
  const stream = createReadStream(path, { highWaterMark: READ_BYTES, signal });
  for await (const bytes of stream as AsyncIterable<Buffer>) {
    bytesRead += bytes.length;
    splitter.push(bytes);
    yield { ...splitter.take(), bytesRead };
  }
  splitter.end();
  yield { ...splitter.take(), bytesRead };
}

/** A line's text. */
export function textOf({ bytes }: ByteLine): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
}
