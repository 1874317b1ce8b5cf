import { GrowingBytes } from '../core/bytes.js';
import { reasonOf } from '../core/errors.js';
import { Attributes, isJsonObject, type JsonObject, type JsonValue } from './attributes.js';
import { parseCanonicalLine } from './canonical-line.js';
import { severityNumberOf } from './severity.js';
import {
  type LogRecord,
  parseSpanId,
  parseTraceId,
  parseUnixNano,
  type SpanEnd,
  type SpanId,
  type SpanLink,
  type SpanStart,
  type SpanStatus,
  type TelemetryRecord,
  type UnixNano,
} from './telemetry-record.js';

/** A growing buffer in which JSONL lines are assembled by position, without strings in between. */
export class LineBuffer extends GrowingBytes {
  /** Appends a text; reserves the space for it. */
  utf8(text: string): void {
    this.reserve(text.length * 3);
    this.length += this.bytes.write(text, this.length, 'utf8');
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Whether `bytes` equals the range from `start` to `end` of `from`. For short ids, keys and names a loop takes less than a call into the runtime. */
export function isSame(bytes: Uint8Array, from: Uint8Array, start: number, end: number): boolean {
  if (bytes.length !== end - start) return false;
  for (let index = 0; index < bytes.length; index++) if (bytes[index] !== from[start + index]) return false;
  return true;
}

/** A line is not a telemetry record; the message says why. */
export class RecordParseError extends Error {
  override readonly name = 'RecordParseError';
}

/** The envelope's keys in the order in which the engine writes them. */
const KEYS: Readonly<Record<TelemetryRecord['recordType'], readonly string[]>> = {
  SpanStart: [
    'record_type',
    'trace_id',
    'span_id',
    'span_name',
    'parent_span_id',
    'links',
    'start_time_unix_nano',
    'severity_number',
    'severity_text',
    'event_type',
    'attributes',
  ],
  SpanEnd: [
    'record_type',
    'trace_id',
    'span_id',
    'span_name',
    'parent_span_id',
    'links',
    'start_time_unix_nano',
    'end_time_unix_nano',
    'severity_number',
    'severity_text',
    'status',
    'event_type',
    'attributes',
  ],
  LogRecord: [
    'record_type',
    'trace_id',
    'span_id',
    'span_name',
    'event_id',
    'time_unix_nano',
    'severity_number',
    'severity_text',
    'body',
    'event_type',
    'attributes',
  ],
};

/**
 * Parses a line of JSONL as the engine writes it. A line in the engine's order of keys is kept with the record, so that it is written again with the same bytes.
 * @throws RecordParseError if it is not a record
 */
export function parseRecordLine(line: string): TelemetryRecord {
  return parseCanonicalLine(line) ?? parseAnyLine(line);
}

/** Parses a line that may come from another program or be damaged. @returns `undefined` if it is not a record */
export function tryParseRecordLine(line: string): TelemetryRecord | undefined {
  try {
    return parseRecordLine(line);
  } catch (error) {
    if (error instanceof RecordParseError) return undefined;
    throw error;
  }
}

/**
 * Parses a line in any layout that JSON allows.
 * @throws RecordParseError if it is not a record
 */
export function parseAnyLine(line: string): TelemetryRecord {
  const value = parseObject(line);
  const recordType = value.record_type;
  if (recordType !== 'SpanStart' && recordType !== 'SpanEnd' && recordType !== 'LogRecord') {
    throw new RecordParseError(
      `record_type must be SpanStart, SpanEnd or LogRecord, not ${JSON.stringify(recordType) ?? 'missing'}`,
    );
  }
  const traceId = parseTraceId(text(value, 'trace_id'));
  if (traceId === undefined) throw new RecordParseError('trace_id must be 32 hexadecimal characters, not all zero');
  const unknownFields = unknownFieldsOf(value, KEYS[recordType]);
  const severityText = optionalText(value, 'severity_text') ?? '';
  const givenSeverity = integer(value, 'severity_number', 0);
  const severityNumber = givenSeverity === 0 ? severityNumberOf(severityText) : givenSeverity;
  const envelope = {
    traceId,
    severityNumber,
    severityText,
    eventType: text(value, 'event_type'),
    attributes: attributesWithText(value, line),
    ...(unknownFields === undefined ? {} : { unknownFields }),
    ...(severityNumber === givenSeverity && isCanonical(line, value, KEYS[recordType]) ? { line } : {}),
  };
  if (recordType === 'LogRecord') {
    return {
      recordType,
      ...envelope,
      spanId: optionalSpanId(value, 'span_id'),
      spanName: optionalText(value, 'span_name'),
      eventId: optionalText(value, 'event_id'),
      timeUnixNano: time(value, 'time_unix_nano'),
      body: optionalText(value, 'body') ?? '',
    };
  }
  const span = {
    ...envelope,
    spanId: spanId(value, 'span_id'),
    spanName: optionalText(value, 'span_name') ?? '',
    parentSpanId: optionalSpanId(value, 'parent_span_id'),
    links: linksOf(value),
    startTimeUnixNano: time(value, 'start_time_unix_nano'),
  };
  if (recordType === 'SpanStart') return { recordType, ...span };
  return { recordType, ...span, endTimeUnixNano: time(value, 'end_time_unix_nano'), status: statusOf(value) };
}

/** Formats a record as one line, without the line break, with the engine's keys in the engine's order. */
export function formatRecordLine(record: TelemetryRecord): string {
  if (record.line !== undefined) return record.line;
  switch (record.recordType) {
    case 'SpanStart':
      return formatSpanStart(record);
    case 'SpanEnd':
      return formatSpanEnd(record);
    case 'LogRecord':
      return formatLogRecord(record);
  }
}

// Lines are concatenated: ids, times and severities need no escaping, and the attributes are JSON already.

function formatSpanStart(record: SpanStart): string {
  return `{"record_type":"SpanStart",${spanHead(record)}${tail(record)}`;
}

function formatSpanEnd(record: SpanEnd): string {
  const { status } = record;
  const end = `,"end_time_unix_nano":"${record.endTimeUnixNano}"`;
  const statusText =
    status === null ? 'null' : `{"message":${quotedOrNull(status.message)},"code":${String(status.code)}}`;
  return `{"record_type":"SpanEnd",${spanHead(record)}${end}${tail(record, `"status":${statusText},`)}`;
}

function formatLogRecord(record: LogRecord): string {
  const span = `"span_id":${quotedOrNull(record.spanId)},"span_name":${quotedOrNull(record.spanName)}`;
  const head = `"trace_id":"${record.traceId}",${span},"event_id":${quotedOrNull(record.eventId)}`;
  const time = `"time_unix_nano":"${record.timeUnixNano}"`;
  return `{"record_type":"LogRecord",${head},${time}${tail(record, `"body":${JSON.stringify(record.body)},`)}`;
}

function spanHead(record: SpanStart | SpanEnd): string {
  const parent = record.parentSpanId === null ? 'null' : `"${record.parentSpanId}"`;
  const links = record.links === null ? 'null' : `[${record.links.map(formatLink).join(',')}]`;
  return `"trace_id":"${record.traceId}","span_id":"${record.spanId}","span_name":${JSON.stringify(record.spanName)},"parent_span_id":${parent},"links":${links},"start_time_unix_nano":"${record.startTimeUnixNano}"`;
}

function formatLink(link: SpanLink): string {
  return `{"trace_id":"${link.traceId}","span_id":"${link.spanId}","attributes":${link.attributes.json}}`;
}

function tail(record: TelemetryRecord, between = ''): string {
  const severity = `,"severity_number":${record.severityNumber},"severity_text":${JSON.stringify(record.severityText)},`;
  const type = `"event_type":${JSON.stringify(record.eventType)},"attributes":${record.attributes.json}`;
  return `${severity}${between}${type}${unknownTail(record.unknownFields)}}`;
}

function unknownTail(fields: JsonObject | undefined): string {
  if (fields === undefined) return '';
  return Object.entries(fields)
    .map(([key, value]) => `,${JSON.stringify(key)}:${JSON.stringify(value)}`)
    .join('');
}

function quotedOrNull(value: string | null): string {
  return value === null ? 'null' : JSON.stringify(value);
}

function parseObject(line: string): JsonObject {
  let value: JsonValue;
  try {
    value = JSON.parse(line) as JsonValue;
  } catch (cause) {
    throw new RecordParseError(`not JSON: ${reasonOf(cause)}`, { cause });
  }
  if (!isJsonObject(value)) throw new RecordParseError('not a JSON object');
  return value;
}

function isCanonical(line: string, value: JsonObject, keys: readonly string[]): boolean {
  if (!line.startsWith('{"record_type":"') || !line.endsWith('}')) return false;
  const found = Object.keys(value);
  if (found.length < keys.length) return false;
  return keys.every((key, index) => found[index] === key) && IDS.every((id) => isLowercase(value[id]));
}

const IDS = ['trace_id', 'span_id', 'parent_span_id'];

function isLowercase(value: JsonValue | undefined): boolean {
  return typeof value !== 'string' || value === value.toLowerCase();
}

function unknownFieldsOf(value: JsonObject, keys: readonly string[]): JsonObject | undefined {
  const unknown = Object.entries(value).filter(([key]) => !keys.includes(key));
  return unknown.length === 0 ? undefined : Object.fromEntries(unknown);
}

function text(value: JsonObject, key: string): string {
  const found = value[key];
  if (typeof found !== 'string') throw new RecordParseError(`${key} must be a string`);
  return found;
}

function optionalText(value: JsonObject, key: string): string | null {
  const found = value[key];
  if (found === undefined || found === null) return null;
  return text(value, key);
}

function integer(value: JsonObject, key: string, fallback: number): number {
  const found = value[key];
  if (found === undefined || found === null) return fallback;
  if (typeof found !== 'number' || !Number.isInteger(found)) throw new RecordParseError(`${key} must be an integer`);
  return found;
}

function time(value: JsonObject, key: string): UnixNano {
  const found = value[key];
  const parsed = typeof found === 'string' ? parseUnixNano(found) : undefined;
  if (parsed === undefined) {
    throw new RecordParseError(`${key} must be a string of digits: nanoseconds since the Unix epoch, below 2^63`);
  }
  return parsed;
}

function spanId(value: JsonObject, key: string): SpanId {
  const parsed = parseSpanId(text(value, key));
  if (parsed === undefined) throw new RecordParseError(`${key} must be 16 hexadecimal characters, not all zero`);
  return parsed;
}

function optionalSpanId(value: JsonObject, key: string): SpanId | null {
  const found = optionalText(value, key);
  return found === null || found === '' ? null : spanId(value, key);
}

function attributesOf(value: JsonObject): Attributes {
  const found = value.attributes;
  if (found === undefined || found === null) return Attributes.EMPTY;
  if (!isJsonObject(found)) throw new RecordParseError('attributes must be an object');
  return Attributes.of(found);
}

/** Parses the record's attributes; keeps their JSON text if numbers in it could change when written again. */
function attributesWithText(value: JsonObject, line: string): Attributes {
  const { value: parsed } = attributesOf(value);
  const json = LARGE_NUMBER.test(line) ? fieldText(line, 'attributes') : undefined;
  return json === undefined || !isJsonObject(value.attributes)
    ? Attributes.of(parsed)
    : Attributes.parsed(json, parsed);
}

/** Digits that may be part of a number that changes when it is parsed and written again. */
const LARGE_NUMBER = /[\d.]{16}|\d[eE.]/;

function linksOf(value: JsonObject): readonly SpanLink[] | null {
  const found = value.links;
  if (found === undefined || found === null) return null;
  if (!Array.isArray(found)) throw new RecordParseError('links must be a list');
  return (found as readonly JsonValue[]).map((link) => {
    if (!isJsonObject(link)) throw new RecordParseError('a link must be an object');
    const traceId = parseTraceId(text(link, 'trace_id'));
    if (traceId === undefined) throw new RecordParseError("a link's trace_id must be 32 hexadecimal characters");
    return { traceId, spanId: spanId(link, 'span_id'), attributes: attributesOf(link) };
  });
}

function statusOf(value: JsonObject): SpanStatus | null {
  const found = value.status;
  if (found === undefined || found === null) return null;
  if (!isJsonObject(found)) throw new RecordParseError('status must be an object or null');
  return { message: optionalText(found, 'message'), code: integer(found, 'code', 0) };
}

/**
 * Returns the JSON text of a field's value, without surrounding white space: when parsed and written again, a number beyond 2^53 would change. If the object has the field several times, the last one
 * counts, as for `JSON.parse`.
 * @param json text of a valid JSON object
 * @returns `undefined` if the object has no such field
 */
export function fieldText(json: string, name: string): string | undefined {
  return fieldTexts(json).findLast((field) => field.name === name)?.json;
}

/** Returns the names and JSON texts of all fields of a JSON object. */
export function fieldTexts(json: string): readonly { readonly name: string; readonly json: string }[] {
  const found: { name: string; json: string }[] = [];
  let at = json.indexOf('{') + 1;
  for (;;) {
    const keyStart = json.indexOf('"', at);
    if (keyStart < 0) return found;
    const keyEnd = endOfString(json, keyStart);
    const valueStart = json.indexOf(':', keyEnd) + 1;
    at = endOfValue(json, valueStart);
    found.push({ name: JSON.parse(json.slice(keyStart, keyEnd)) as string, json: json.slice(valueStart, at).trim() });
  }
}

/** Returns the JSON texts of the items of a JSON list. */
export function itemTexts(json: string): readonly string[] {
  const found: string[] = [];
  for (let start = json.indexOf('[') + 1; ; ) {
    const end = endOfValue(json, start);
    const item = json.slice(start, end).trim();
    if (item !== '') found.push(item);
    if (json[end] !== ',') return found;
    start = end + 1;
  }
}

/** Returns the end of a string that begins at `start`, including the closing quote. */
function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at + 1;
}

/** Returns the position of the comma after a value, or of the bracket that closes its object or list. */
function endOfValue(json: string, start: number): number {
  let level = 0;
  let at = start;
  while (at < json.length) {
    const character = json[at];
    if (character === '"') {
      at = endOfString(json, at);
      continue;
    }
    if (character === '{' || character === '[') level++;
    if (character === '}' || character === ']') level--;
    if (level < 0 || (level === 0 && character === ',')) return at;
    at++;
  }
  return at;
}

/** How a record begins: the engine, and programs that write like it, begin with the record's type. */
const BEGINNING: readonly Buffer[] = [Buffer.from('{"record_type":')];
/** NUL, and the bytes of a byte order mark. */
const FILLING: ReadonlySet<number> = new Set([0x00, 0xef, 0xbb, 0xbf]);

/**
 * Splits a damaged line where records begin and end in it, and removes NULs and byte order marks from the parts. A killed engine leaves half a line, which the next run's first line follows;
 * truncated files get NULs; and other programs may write into the same file, after a record. Text inside of a record never looks like a beginning, since its quotes are escaped.
 * @param beginnings how a record may begin
 * @returns the start and end of each part
 */
export function recordParts(
  bytes: Uint8Array,
  start: number,
  end: number,
  beginnings = BEGINNING,
): readonly (readonly [number, number])[] {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const parts: [number, number][] = [];
  for (let from = start; from < end; ) {
    const found = beginnings.map((beginning) => all.indexOf(beginning, from + 1)).filter((next) => next !== -1);
    const to = Math.min(end, ...found);
    let [first, last] = [from, to];
    while (first < last && FILLING.has(all[first] ?? -1)) first += 1;
    while (last > first && all[last - 1] === 0) last -= 1;
    const objectEnd = endOfObject(all, first, last);
    if (objectEnd > first) parts.push([first, objectEnd]);
    if (last > objectEnd) parts.push([objectEnd, last]);
    from = to;
  }
  return parts;
}

const [OPEN, CLOSE] = [0x7b, 0x7d];

/** Returns the end of the object that begins at `start`; `start` if none begins there or it is not closed. */
function endOfObject(bytes: Uint8Array, start: number, end: number): number {
  if (bytes[start] !== OPEN) return start;
  let [level, isInText] = [0, false];
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) isInText = !isInText;
    else if (isInText) at += byte === BACKSLASH ? 1 : 0;
    else if (byte === OPEN) level += 1;
    else if (byte === CLOSE && --level === 0) return at + 1;
  }
  return start;
}
