import { type Line, type LongLine, textOf } from '../core/lines.js';
import { modernRecord } from '../otlp/create-decoding.js';
import { isNestedTooDeep, MAX_JSON_LEVELS } from '../record/attributes.js';
import { parseRecordLine, RecordParseError } from '../record/record-line.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import type { Reject } from './record-source.js';

/** The record on a line of JSONL, in the engine's own spelling, or what is wrong with the line. */
export function readRecord(line: Line): TelemetryRecord | Reject {
  const text = textOf(line);
  if (isNestedTooDeep(text)) return rejectLine(line, `nested deeper than ${MAX_JSON_LEVELS} levels`);
  try {
    return modernRecord(parseRecordLine(text));
  } catch (error) {
    if (!(error instanceof RecordParseError)) throw error;
    return rejectLine(line, error.message);
  }
}

/** The records on lines of JSONL, in their order, and what the other lines are. */
export function readRecords(lines: readonly Line[]): { records: TelemetryRecord[]; rejects: Reject[] } {
  const records: TelemetryRecord[] = [];
  const rejects: Reject[] = [];
  for (const line of lines) {
    const read = readRecord(line);
    if ('reason' in read) rejects.push(read);
    else records.push(read);
  }
  return { records, rejects };
}

/** What is kept of a line that is no record, in bytes. */
const TEXT_BYTES = 4096;

/**
 * The reject for a line.
 * @param reason why it is none, without a full stop.
 * @param count of the records that it stands for.
 */
export function rejectLine({ number, offset, bytes }: Omit<Line, 'endOffset'>, reason: string, count = 1): Reject {
  const text = Buffer.from(bytes.subarray(0, TEXT_BYTES)).toString('utf8');
  return { place: `line ${number}`, reason, count, offset, text };
}

/** The reject for a line that is longer than the limit. */
export function rejectLongLine({ head, ...place }: LongLine, maxLineBytes: number): Reject {
  return rejectLine({ ...place, bytes: head }, tooLongReason(maxLineBytes));
}

/** Why a line that is longer than the limit is none. */
export function tooLongReason(maxLineBytes: number): string {
  return `longer than ${maxLineBytes} bytes`;
}
