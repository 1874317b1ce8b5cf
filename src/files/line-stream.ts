import { LineSplitter, type SplitLines } from '../core/lines.js';
import { compressionOf, readBytes } from './read-bytes.js';

/** Lines that were read together. */
export interface LineChunk extends SplitLines {
  /** Bytes read so far, compressed if the file is. */
  readonly bytesRead: number;
}

/** The approximate size of a chunk. */
const CHUNK_BYTES = 1024 * 1024;

/**
 * Reads a file or pipe line by line, decompressing `.gz` and `.zst`. Lines end in LF or CRLF; blank ones are skipped; the last one needs no line break. Buffers about one read of 1 MiB and the
 * incomplete line, at most `maxLineBytes`.
 */
export async function* readLineChunks(
  path: string,
  signal: AbortSignal,
  maxLineBytes?: number,
): AsyncGenerator<LineChunk> {
  const splitter = new LineSplitter({ maxLineBytes });
  let bytesRead = 0;
  let pushedBytes = 0;
  // Compressed files arrive in small pieces; lines of a pipe should not wait for more.
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
    // Lines before the damage are valid.
    if (pushedBytes > 0) yield { ...splitter.take(), bytesRead };
    throw error;
  }
  splitter.end();
  yield { ...splitter.take(), bytesRead };
}
