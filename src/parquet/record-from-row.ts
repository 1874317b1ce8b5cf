import { isDeepStrictEqual } from 'node:util';
import {
  Attributes,
  isJsonObject,
  isNestedTooDeep,
  type JsonObject,
  type JsonValue,
  MAX_JSON_LEVELS,
} from '../record/attributes.js';
import { severityNumberOf } from '../record/severity.js';
import {
  parseSpanId,
  parseTraceId,
  type SpanId,
  type SpanLink,
  type SpanStatus,
  spanIdFromUint64,
  type TelemetryRecord,
  type TraceId,
  type UnixNano,
} from '../record/telemetry-record.js';
import { MESSAGE_LAYOUTS, type MessageLayout, ONEOF_FIELD, ONEOF_MEMBERS } from './message-layout.js';
import { type AttributeColumn, isAttributeColumn } from './schema.js';

/** A row of a Parquet file is not a telemetry record; the message says what is wrong with it. */
export class RowParseError extends Error {
  override readonly name = 'RowParseError';
}

/** A row as the Parquet reader gives it: columns by name, structs as objects, 64-bit integers as bigints. */
export type Row = Readonly<Record<string, unknown>>;

/**
 * The record that a row holds.
 * @throws RowParseError when it holds none.
 */
export function recordFromRow(row: Row): TelemetryRecord {
  const eventType = text(row, 'event_type');
  const severityText = optionalText(row, 'severity_text') ?? '';
  const severityNumber = integer(row.severity_number) ?? 0;
  const envelope = {
    traceId: traceId(row),
    severityNumber: severityNumber === 0 ? severityNumberOf(severityText) : severityNumber,
    severityText,
    eventType,
    attributes: attributesFromCells(eventType, cellsOf(row.attributes)),
  };
  const recordType = row.record_type;
  switch (recordType) {
    case 'LogRecord':
      return {
        recordType,
        ...envelope,
        spanId: spanIdOf(row.span_id),
        spanName: optionalText(row, 'span_name'),
        eventId: optionalText(row, 'event_id'),
        timeUnixNano: time(row, 'time_unix_nano'),
        body: optionalText(row, 'body') ?? '',
      };
    case 'SpanStart':
      return { recordType, ...envelope, ...spanOf(row) };
    case 'SpanEnd':
      return {
        recordType,
        ...envelope,
        ...spanOf(row),
        endTimeUnixNano: time(row, 'end_time_unix_nano'),
        status: statusOf(row),
      };
    default:
      throw new RowParseError(`record_type must be SpanStart, SpanEnd or LogRecord, not ${JSON.stringify(recordType)}`);
  }
}

function spanOf(row: Row) {
  const spanId = spanIdOf(row.span_id);
  if (spanId === null) throw new RowParseError('a span needs a span_id');
  return {
    spanId,
    spanName: optionalText(row, 'span_name') ?? '',
    parentSpanId: spanIdOf(row.parent_span_id),
    links: linksOf(row.links),
    startTimeUnixNano: time(row, 'start_time_unix_nano'),
  };
}

function linksOf(value: unknown): readonly SpanLink[] | null {
  if (!Array.isArray(value)) return null;
  return value.map((link: unknown) => {
    if (!isRow(link)) throw new RowParseError('a link must be a struct');
    const spanId = spanIdOf(link.span_id);
    if (spanId === null) throw new RowParseError('a link needs a span_id');
    const json = link.json_payload;
    return {
      traceId: traceId(link),
      spanId,
      attributes: typeof json === 'string' ? linkAttributes(json) : Attributes.EMPTY,
    };
  });
}

/** @throws RowParseError when it is no JSON object. */
function linkAttributes(json: string): Attributes {
  checkNesting(json);
  if (json === '{}') return Attributes.EMPTY;
  const value = parseJson(json);
  if (!isJsonObject(value)) throw new RowParseError("a link's json_payload must be a JSON object");
  return Attributes.of(value);
}

function parseJson(json: string): JsonValue | undefined {
  try {
    return JSON.parse(json) as JsonValue;
  } catch {
    return undefined;
  }
}

function checkNesting(json: string): void {
  if (isNestedTooDeep(json)) throw new RowParseError(`json_payload is nested deeper than ${MAX_JSON_LEVELS} levels`);
}

function statusOf(row: Row): SpanStatus | null {
  const code = integer(row.status_code);
  const message = optionalText(row, 'status_message');
  return code === undefined && message === null ? null : { message, code: code ?? 0 };
}

function cellsOf(value: unknown): Map<AttributeColumn, AttributeCell> {
  const cells = new Map<AttributeColumn, AttributeCell>();
  if (!isRow(value)) return cells;
  for (const name in value) {
    const cell = value[name];
    // Most cells are null, so that is asked first.
    if (cell !== null && isCell(cell) && isAttributeColumn(name)) cells.set(name, cell);
  }
  const payload = cells.get('json_payload');
  if (typeof payload === 'string') checkNesting(payload);
  return cells;
}

function isCell(value: unknown): value is AttributeCell {
  return (
    typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean'
  );
}

function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function traceId(row: Row): TraceId {
  const parsed = parseTraceId(text(row, 'trace_id'));
  if (parsed === undefined) throw new RowParseError('trace_id must be 32 hexadecimal characters, not all zero');
  return parsed;
}

/** Files rewritten by other tools may carry ids as hexadecimal text; both are taken. */
function spanIdOf(value: unknown): SpanId | null {
  if (typeof value === 'bigint') return spanIdFromUint64(value) ?? null;
  return typeof value === 'string' ? (parseSpanId(value) ?? null) : null;
}

function time(row: Row, name: string): UnixNano {
  const value = row[name];
  if (typeof value === 'bigint' && value >= 0n) return value;
  throw new RowParseError(`${name} must be a timestamp since the Unix epoch`);
}

function text(row: Row, name: string): string {
  const value = row[name];
  if (typeof value !== 'string') throw new RowParseError(`${name} must be a string`);
  return value;
}

function optionalText(row: Row, name: string): string | null {
  const value = row[name];
  return typeof value === 'string' ? value : null;
}

function integer(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) ? value : undefined;
}

/** A cell of a column inside `attributes`. */
type AttributeCell = string | number | bigint | boolean;

/** The cells of one row's `attributes`; null cells are left out. */
type AttributeCells = ReadonlyMap<AttributeColumn, AttributeCell>;

const MEMBERS_BY_VARIANT = new Map([...ONEOF_MEMBERS].map(([field, variant]) => [variant, field]));
const NO_LAYOUT: MessageLayout = { columns: [], payload: [], payloadIs: 'any', fields: new Set() };

/**
 * Puts a record's attributes together again as JSONL has them: plain zero values left out, 64-bit integers as strings,
 * keys sorted. A cell in a column that the message does not use (a newer engine's) becomes an attribute of that name.
 */
function attributesFromCells(eventType: string, cells: AttributeCells): Attributes {
  const layout = MESSAGE_LAYOUTS.get(eventType);
  const text = cells.get('json_payload');
  const payload = typeof text === 'string' ? parsePayload(text) : {};
  if (layout === undefined && cells.size === 1 && typeof text === 'string' && !mayBeParsed(text)) {
    // An unknown message whose numbers JavaScript cannot hold: its own text is kept.
    return Attributes.fromJson(text);
  }
  const attributes: Record<string, JsonValue> = {};
  fromColumns(layout ?? NO_LAYOUT, cells, attributes);
  fromPayload(layout ?? NO_LAYOUT, payload, attributes);
  return Attributes.of(sortedKeys(attributes));
}

function fromColumns(layout: MessageLayout, cells: AttributeCells, attributes: Record<string, JsonValue>): void {
  const used = new Set<AttributeColumn>(['json_payload']);
  for (const { field, column, zero } of layout.columns) {
    used.add(column);
    const cell = cells.get(column);
    if (cell !== undefined && cell !== zero) attributes[field] = jsonOf(cell);
  }
  if (layout.constant !== undefined && cells.get(layout.constant.column) === layout.constant.text) {
    used.add(layout.constant.column);
  }
  for (const [column, cell] of cells) {
    if (!used.has(column)) attributes[column] = jsonOf(cell);
  }
}

function fromPayload(layout: MessageLayout, payload: JsonObject, attributes: Record<string, JsonValue>): void {
  const map: Record<string, JsonValue> = {};
  const hasOneof = layout.fields.has(ONEOF_FIELD);
  for (const [key, value] of Object.entries(payload)) {
    if (layout.payloadMap !== undefined && isDebugValue(value)) {
      setOwn(map, key, value);
    } else if (hasOneof && key === ONEOF_FIELD && isJsonObject(value)) {
      unwrapOneof(value, attributes);
    } else if (hasOneof && MEMBERS_BY_VARIANT.has(key)) {
      // Older engines wrote the member itself as the payload.
      unwrapOneof({ [key]: value }, attributes);
    } else {
      const field = layout.payload.find((candidate) => candidate.field === key);
      if (field?.zero !== undefined && isDeepStrictEqual(field.zero, value)) continue;
      setOwn(attributes, key, field?.isUint64 === true && typeof value === 'number' ? String(value) : value);
    }
  }
  if (layout.payloadMap !== undefined && Object.keys(map).length > 0) attributes[layout.payloadMap] = map;
}

function unwrapOneof(value: JsonObject, attributes: Record<string, JsonValue>): void {
  for (const [variant, detail] of Object.entries(value)) {
    setOwn(attributes, MEMBERS_BY_VARIANT.get(variant) ?? variant, detail);
  }
}

function parsePayload(text: string): JsonObject {
  const value = parse(text);
  // Not the engine's writing; kept under the column's name.
  return isJsonObject(value) ? value : { json_payload: value ?? text };
}

/** Whether nothing is lost when the text is parsed and written again, or it cannot be kept as it is. */
function mayBeParsed(text: string): boolean {
  const value = parse(text);
  // Text on several lines cannot be kept: a record is one line.
  return !isJsonObject(value) || JSON.stringify(value) === text || /[\r\n]/.test(text);
}

function parse(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

function jsonOf(cell: AttributeCell): JsonValue {
  return typeof cell === 'bigint' ? String(cell) : cell;
}

/** Whether a JSON value is a `v1.public.events.fusion.dev.DebugValue`: an object with at most one field, named after its type. */
function isDebugValue(value: JsonValue): boolean {
  if (!isJsonObject(value)) return false;
  const keys = Object.keys(value);
  return keys.length === 0 || (keys.length === 1 && /^(float64|bool|string|bytes)$/.test(keys[0] ?? ''));
}

/** Sets a key that someone else chose: `__proto__` becomes a key like any other. */
function setOwn(target: Record<string, JsonValue>, key: string, value: JsonValue): void {
  if (key === '__proto__') {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    target[key] = value;
  }
}

/** The object with its keys, and those of the objects in it, sorted as JSONL has them. */
function sortedKeys(value: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sortedValue(value[key] ?? null)]),
  );
}

function sortedValue(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(sortedValue);
  return isJsonObject(value) ? sortedKeys(value) : value;
}
