import { Attributes } from '../record/attributes.js';
import { parseSpanId, parseTraceId, type SpanId, spanIdFromUint64, type TraceId } from '../record/ids.js';
import { isJsonObject, type JsonValue } from '../record/json.js';
import { isNestedTooDeep, MAX_JSON_LEVELS } from '../record/json-nesting.js';
import { severityNumberOf } from '../record/severity.js';
import type { SpanLink, SpanStatus, TelemetryRecord } from '../record/telemetry-record.js';
import type { UnixNano } from '../record/unix-nano.js';
import { type AttributeCell, attributesFromCells } from './attributes-from-cells.js';
import { type AttributeColumn, isAttributeColumn } from './leaf-column.js';

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
  if (typeof value !== 'string') throw new RowParseError(`${name} must be a text`);
  return value;
}

function optionalText(row: Row, name: string): string | null {
  const value = row[name];
  return typeof value === 'string' ? value : null;
}

function integer(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) ? value : undefined;
}
