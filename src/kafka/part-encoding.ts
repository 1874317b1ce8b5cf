import { isJsonObject, type JsonValue, type Resource } from '../record/attributes.js';
import type { RecordBatch } from '../record/record-batch.js';
import { formatRecordLine, parseRecordLine } from '../record/record-line.js';
import { PageBatch } from '../record/record-page.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';

/** A message of the journal with this header is a part, and no request in OTLP. */
export const RECORDS_HEADER = 'run-bridge-records';

const LINE_BREAK = 0x0a;
/** How a line begins that says whose the records after it are. */
const RESOURCE_LINE = '{"resource":';
/** Before the line of a log record that came without its span's name, and waits for that. */
const NAMELESS = '?';
const NAMELESS_BYTES = Buffer.from(NAMELESS);

/**
 * What one delivery brought of a trace, as lines: `{"resource":{…}}` says whose the records after it are. The lines of records
 * are those that the record log gets.
 */
export function encodePart(batches: readonly RecordBatch[]): Buffer {
  const pieces: Uint8Array[] = [];
  let current: Resource | undefined;
  for (const batch of batches) {
    if (batch.resource !== current) pieces.push(Buffer.from(`${JSON.stringify({ resource: batch.resource })}\n`));
    current = batch.resource;
    if (batch instanceof PageBatch) {
      const { page, from, to } = batch;
      for (let row = from; row < to; row++) {
        if (page.lacksName(row)) pieces.push(NAMELESS_BYTES);
        pieces.push(page.linesOf(row));
      }
    } else {
      pieces.push(Buffer.from(batch.records.map(lineOf).join('')));
    }
  }
  return Buffer.concat(pieces);
}

/** Cuts a part into parts of at most so many bytes, or of one record each. */
export function splitPart(bytes: Buffer, maxBytes: number): readonly Buffer[] {
  const parts: Buffer[] = [];
  let resource: Buffer = Buffer.alloc(0);
  let pieces: Buffer[] = [];
  let size = 0;
  for (let at = 0; at < bytes.length; ) {
    const line = bytes.subarray(at, bytes.indexOf(LINE_BREAK, at) + 1);
    at += line.length;
    if (line.toString('latin1', 0, RESOURCE_LINE.length) === RESOURCE_LINE) resource = line;
    else if (size > 0 && size + line.length > maxBytes) {
      parts.push(Buffer.concat(pieces));
      pieces = [resource];
      size = resource.length;
    }
    pieces.push(line);
    size += line.length;
  }
  return [...parts, Buffer.concat(pieces)];
}

/** Reads a part. @throws Error if it is none: the bucket returned something else than what was written */
export function decodePart(traceId: RecordBatch['traceId'], bytes: Buffer): readonly RecordBatch[] {
  const batches: { traceId: RecordBatch['traceId']; resource: Resource; records: TelemetryRecord[] }[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(LINE_BREAK, at);
    if (end === -1) throw new Error('a part of the journal has no end');
    const text = bytes.toString('utf8', at, end);
    at = end + 1;
    if (text.startsWith(RESOURCE_LINE)) {
      batches.push({ traceId, resource: parseResource(text), records: [] });
      continue;
    }
    const last = batches.at(-1);
    if (last === undefined) throw new Error('a part of the journal has no resource for its records');
    last.records.push(text.startsWith(NAMELESS) ? withoutLine(parseRecordLine(text.slice(1))) : parseRecordLine(text));
  }
  return batches;
}

function lineOf(record: TelemetryRecord): string {
  const isNameless = record.recordType === 'LogRecord' && record.line === undefined && record.spanName === null;
  return `${isNameless ? NAMELESS : ''}${formatRecordLine(record)}\n`;
}

/** With its line it would count as it stands. */
function withoutLine(record: TelemetryRecord): TelemetryRecord {
  const { line: _line, ...bare } = record;
  return bare;
}

function parseResource(text: string): Resource {
  const value = JSON.parse(text) as JsonValue;
  const resource = isJsonObject(value) ? value.resource : undefined;
  if (!isJsonObject(resource) || !isJsonObject(resource.attributes) || !isJsonObject(resource.scope)) {
    throw new Error('a part of the journal has an invalid resource');
  }
  return resource as unknown as Resource;
}
