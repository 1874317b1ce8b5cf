import { modernRecord } from '../otlp/create-decoding.js';
import { isNestedTooDeep, MAX_JSON_LEVELS } from '../record/attributes.js';
import { parseRecordLine, RecordParseError } from '../record/record-line.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { rejectLine } from './line-reject.js';
import type { ByteLine } from './line-splitter.js';
import { textOf } from './line-stream.js';
import type { Reject } from './record-source.js';

/** The record on a line of JSONL, in the engine's own spelling, or what is wrong with the line. */
export function readRecord(line: ByteLine): TelemetryRecord | Reject {
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
export function readRecords(lines: readonly ByteLine[]): { records: TelemetryRecord[]; rejects: Reject[] } {
  const records: TelemetryRecord[] = [];
  const rejects: Reject[] = [];
  for (const line of lines) {
    const read = readRecord(line);
    if ('reason' in read) rejects.push(read);
    else records.push(read);
  }
  return { records, rejects };
}
