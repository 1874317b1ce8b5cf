import { parseRecordLine, RecordParseError } from '../record/record-line.js';
import type { LoggedRecord } from '../sink/record-log.js';
import type { AppendedLines } from './messages.js';

const LINE_BREAK = 0x0a;

/** The records of lines of a record log. @param onDamage is told of a line that is none, which is passed over. */
export function parseLines(
  { resource, offset, lines }: AppendedLines,
  onDamage: (offset: number, reason: string) => void,
): readonly LoggedRecord[] {
  const bytes = Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength);
  const records: LoggedRecord[] = [];
  let start = 0;
  for (let end = bytes.indexOf(LINE_BREAK); end !== -1; end = bytes.indexOf(LINE_BREAK, start)) {
    const place = { resource, offset: offset + start, endOffset: offset + end + 1 };
    try {
      records.push({ record: parseRecordLine(bytes.toString('utf8', start, end)), ...place });
    } catch (error) {
      if (!(error instanceof RecordParseError)) throw error;
      onDamage(place.offset, error.message);
    }
    start = end + 1;
  }
  return records;
}
