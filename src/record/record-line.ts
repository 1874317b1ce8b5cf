import { reasonOf } from '../component/reason-of.js';
import { Attributes } from './attributes.js';
import { parseCanonicalLine } from './canonical-line.js';
import { fieldText } from './field-text.js';
import { parseSpanId, parseTraceId, type SpanId } from './ids.js';
import { isJsonObject, type JsonObject, type JsonValue } from './json.js';
import { severityNumberOf } from './severity.js';
import type { LogRecord, SpanEnd, SpanLink, SpanStart, SpanStatus, TelemetryRecord } from './telemetry-record.js';
import { parseUnixNano, type UnixNano } from './unix-nano.js';

/** A line is not a telemetry record; the message says what is wrong with it. */
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
 * Reads one line of JSONL as the engine writes it. A line in the engine's own key order is kept with the record, so that
 * writing it again gives the same bytes.
 * @throws RecordParseError when it is not a record.
 */
export function parseRecordLine(line: string): TelemetryRecord {
  return parseCanonicalLine(line) ?? parseAnyLine(line);
}

/** Reads a line that may be none of ours, or damaged: `undefined` where it is not a record. */
export function tryParseRecordLine(line: string): TelemetryRecord | undefined {
  try {
    return parseRecordLine(line);
  } catch (error) {
    if (error instanceof RecordParseError) return undefined;
    throw error;
  }
}

/**
 * Reads a line in any layout that JSON allows.
 * @throws RecordParseError when it is not a record.
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
    attributes: ownAttributes(value, line),
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

/** Writes a record as one line, without the line break: the engine's keys in the engine's order. */
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

// Assembled from parts: ids, times and severities need no escaping, and the attributes are text already.

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

/** The record's own, with the text that they have in its line. */
function ownAttributes(value: JsonObject, line: string): Attributes {
  const { value: parsed } = attributesOf(value);
  const json = LARGE_NUMBER.test(line) ? fieldText(line, 'attributes') : undefined;
  return json === undefined || !isJsonObject(value.attributes)
    ? Attributes.of(parsed)
    : Attributes.parsed(json, parsed);
}

/** Digits that may be a number which comes out otherwise when it is parsed and written again. */
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
