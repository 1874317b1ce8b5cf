import { MAX_LINE_BYTES } from '../core/lines.js';
import { readLineChunks } from './line-stream.js';
import { readRecords, rejectLongLine } from './read-record.js';
import { batchesOf, type RecordSource, type SourceChunk, SourceError } from './record-source.js';

/** The engine's JSONL as a source. A line that is no record, or is incomplete at the end, becomes a reject and is skipped. */
export class JsonlFile implements RecordSource {
  constructor(
    readonly path: string,
    readonly sizeBytes: number,
    private readonly maxLineBytes = MAX_LINE_BYTES,
  ) {}

  async *read(signal: AbortSignal): AsyncGenerator<SourceChunk> {
    try {
      for await (const { lines, tooLong, bytesRead } of readLineChunks(this.path, signal, this.maxLineBytes)) {
        const long = tooLong.map((line) => rejectLongLine(line, this.maxLineBytes));
        const { records, rejects } = readRecords(lines);
        yield { delivery: { batches: batchesOf(records), passthrough: [] }, rejects: [...long, ...rejects], bytesRead };
      }
    } catch (cause) {
      throw unreadable(this.path, cause);
    }
  }
}

/** Returns a SourceError for an error of the file system, and any other error (an abort) unchanged. */
export function unreadable(path: string, cause: unknown): unknown {
  if (!(cause instanceof Error) || !('syscall' in cause)) return cause;
  return new SourceError('unreadable', `cannot read ${path}: ${cause.message}. Check the file and its permissions`, {
    cause,
  });
}
