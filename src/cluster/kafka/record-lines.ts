import { LineSplitter } from '../../core/lines.js';
import { groupBy } from '../../core/lists.js';
import { batchesOf, type Reject, readRecords } from '../../files/feature.js';
import { asResource, isJsonObject, type JsonValue, type Resource } from '../../record/attributes.js';
import type { RecordBatch } from '../../record/record-batch.js';
import { formatRecordLine, parseRecordLine } from '../../record/record-line.js';
import type { TelemetryRecord, TraceId } from '../../record/telemetry-record.js';

/**
 * The header of a message that holds records of one trace as lines of the engine's JSONL, where OTLP has no place for them: a
 * span that has only begun. It says what the lines do not: `{"resource":{…},"isNameless":false}`.
 */
export const RECORDS_HEADER = 'run-bridge-records';

/** Records as lines, and the header that goes with them. */
export interface RecordLines {
  readonly traceId: TraceId;
  readonly header: string;
  readonly lines: Buffer;
}

/** Records as lines, in their order; those that wait for the names of their spans stand apart from the others. */
export function encodeRecords(batches: readonly RecordBatch[]): readonly RecordLines[] {
  const parts: { readonly traceId: TraceId; readonly header: string; text: string }[] = [];
  for (const { traceId, resource, records } of batches) {
    for (const [isNameless, some] of groupBy(records, isWaiting)) {
      const header = JSON.stringify({ resource, isNameless });
      const text = some.map((record) => `${formatRecordLine(record)}\n`).join('');
      const last = parts.at(-1);
      if (last?.traceId === traceId && last.header === header) last.text += text;
      else parts.push({ traceId, header, text });
    }
  }
  return parts.map(({ text, ...part }) => ({ ...part, lines: Buffer.from(text) }));
}

/**
 * Cuts lines into parts of at most so many bytes, or of one line each. Log records without an event id that are of one span and
 * time come to one part, however long it is: equal ones are told from those that come twice by being counted in each part.
 */
export function splitLines(lines: Buffer, maxBytes: number): readonly Buffer[] {
  if (lines.length <= maxBytes) return [lines];
  const parts: Buffer[] = [];
  let pieces: Buffer[] = [];
  let size = 0;
  for (const together of groupBy(eachLine(lines), equalityOf).values()) {
    const more = together.reduce((sum, { length }) => sum + length, 0);
    if (size > 0 && size + more > maxBytes) {
      parts.push(Buffer.concat(pieces));
      [pieces, size] = [[], 0];
    }
    pieces.push(...together);
    size += more;
  }
  return [...parts, Buffer.concat(pieces)];
}

function* eachLine(lines: Buffer): Generator<Buffer> {
  for (let from = 0; from < lines.length; ) {
    const to = lines.indexOf('\n', from) + 1;
    yield lines.subarray(from, to);
    from = to;
  }
}

/** What log records that are equal have in common; any other record has nothing in common with others. */
function equalityOf(line: Buffer): string | Buffer {
  const record = parseRecordLine(line.toString());
  const isNamed = record.recordType !== 'LogRecord' || record.eventId !== null;
  return isNamed ? line : `${record.spanId} ${record.timeUnixNano}`;
}

/** The records on lines, and what the other lines are. @param header that of the message; `undefined` for lines of any engine */
export function decodeRecords(
  lines: Buffer,
  header: string | undefined,
): { readonly batches: readonly RecordBatch[]; readonly rejects: readonly Reject[] } {
  const splitter = new LineSplitter();
  splitter.push(lines);
  splitter.end();
  const { records, rejects } = readRecords(splitter.take().lines);
  if (header === undefined) return { batches: batchesOf(records), rejects };
  const { resource, isNameless } = parseHeader(header);
  const batches = batchesOf(isNameless ? records.map(withoutLine) : records);
  return { batches: batches.map((batch) => ({ ...batch, resource: resource ?? batch.resource })), rejects };
}

/** Whether it came without its span's name, and waits for that. */
function isWaiting(record: TelemetryRecord): boolean {
  return record.recordType === 'LogRecord' && record.line === undefined && record.spanName === null;
}

/** With its line it would count as it stands. */
function withoutLine(record: TelemetryRecord): TelemetryRecord {
  const { line: _line, ...bare } = record;
  return bare;
}

/** A header that is damaged costs the records their resource, and nothing else. */
function parseHeader(header: string): { readonly resource: Resource | undefined; readonly isNameless: boolean } {
  try {
    const value = JSON.parse(header) as JsonValue;
    const { resource, isNameless } = isJsonObject(value) ? value : {};
    return { resource: asResource(resource), isNameless: isNameless === true };
  } catch {
    return { resource: undefined, isNameless: false };
  }
}
