import { isNestedTooDeep, MAX_JSON_LEVELS } from '../record/json-nesting.js';
import { parseRecordLine, RecordParseError } from '../record/record-line.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { batchesOf } from './batch-builder.js';
import { MAX_LINE_BYTES, readLineChunks, type TextLine } from './line-stream.js';
import { type RecordSource, type Reject, type SourceChunk, SourceError } from './record-source.js';

/** The engine's JSONL as a source. A line that is no record is told as a reject and passed over, so is a half last line. */
export class JsonlFile implements RecordSource {
  constructor(
    readonly path: string,
    readonly sizeBytes: number,
    private readonly maxLineBytes = MAX_LINE_BYTES,
  ) {}

  async *read(signal: AbortSignal): AsyncGenerator<SourceChunk> {
    try {
      for await (const { lines, tooLong, bytesRead } of readLineChunks(this.path, signal, this.maxLineBytes)) {
        const records: TelemetryRecord[] = [];
        const rejects: Reject[] = tooLong.map((number) => tooLongReject(number, this.maxLineBytes));
        for (const line of lines) {
          const parsed = parseLine(line);
          if ('reason' in parsed) rejects.push(parsed);
          else records.push(parsed);
        }
        yield { delivery: { batches: batchesOf(records), foreign: [] }, rejects, bytesRead };
      }
    } catch (cause) {
      throw unreadable(this.path, cause);
    }
  }
}

/** The reject for a line that is longer than the limit. */
export function tooLongReject(lineNumber: number, maxLineBytes: number): Reject {
  return { place: `line ${lineNumber}`, reason: `longer than ${maxLineBytes} bytes`, count: 1 };
}

/** The error for a file that stopped being readable; an abort stays what it is. */
export function unreadable(path: string, cause: unknown): unknown {
  if (!(cause instanceof Error) || !('syscall' in cause)) return cause;
  return new SourceError('unreadable', `cannot read ${path}: ${cause.message}. Check the file and its permissions`, {
    cause,
  });
}

function parseLine({ number, text }: TextLine): TelemetryRecord | Reject {
  if (isNestedTooDeep(text)) {
    return { place: `line ${number}`, reason: `nested deeper than ${MAX_JSON_LEVELS} levels`, count: 1 };
  }
  try {
    return parseRecordLine(text);
  } catch (error) {
    if (!(error instanceof RecordParseError)) throw error;
    return { place: `line ${number}`, reason: error.message, count: 1 };
  }
}
