import { LineSplitter, type SplitLines } from '../core/lines.js';
import { compressionOf, readBytes } from './read-bytes.js';

/** Lines that were read together. */
export interface LineChunk extends SplitLines {
  /** Bytes read so far, as they lie on the disk. */
  readonly bytesRead: number;
}

/** Bytes whose lines are given together, about. */
const CHUNK_BYTES = 1024 * 1024;

/**
 * Reads a file or pipe line by line, unpacking `.gz` and `.zst`. Lines end in LF or CRLF; blank ones are passed over; the last one needs no line
 * break. Holds about one read of 1 MiB and the line that is not complete yet, at most `maxLineBytes`.
 */
export async function* readLineChunks(
  path: string,
  signal: AbortSignal,
  maxLineBytes?: number,
): AsyncGenerator<LineChunk> {
  const splitter = new LineSplitter({ maxLineBytes });
  let bytesRead = 0;
  let pushedBytes = 0;
  // What is packed comes in small pieces; of a pipe nothing is to wait for more.
  const chunkBytes = compressionOf(path) === undefined ? 0 : CHUNK_BYTES;
  try {
    for await (const piece of readBytes(path, signal)) {
      bytesRead = piece.bytesRead;
      splitter.push(piece.bytes);
      pushedBytes += piece.bytes.length;
      if (pushedBytes < chunkBytes) continue;
      pushedBytes = 0;
      yield { ...splitter.take(), bytesRead };
    }
  } catch (error) {
    // What came before the damage counts.
    if (pushedBytes > 0) yield { ...splitter.take(), bytesRead };
    throw error;
  }
  splitter.end();
  yield { ...splitter.take(), bytesRead };
}
