import { Attributes } from '../record/attributes.js';
import { EVENT_TYPE_PREFIX } from '../record/event-table.js';
import { DEBUG, ERROR, INFO, severityNumberOf, TRACE, WARN } from '../record/severity.js';
import type {
  LogRecord,
  SpanEnd,
  SpanId,
  SpanLink,
  SpanStatus,
  TelemetryRecord,
  TraceId,
  UnixNano,
} from '../record/telemetry-record.js';
import { type AttributePart, inKeyOrder, nestedJson, valueJson } from './any-value.js';
import {
  type AttributeSchema,
  attributesOf,
  modernEnumName,
  modernSpelling,
  shortEventType,
  spanEventType,
  spanSeverity,
  spanStartOf,
} from './attribute-schema.js';
import {
  BRIDGE_ATTRIBUTE,
  BRIDGE_PREFIX,
  type BridgeAttributes,
  carriedRecord,
  recordOfLog,
  recordsOfSpan,
} from './bridge-attributes.js';
import type { AnyValue, KeyValue, OtlpLogRecord, OtlpSpan, OtlpSpanEvent, OtlpStatus } from './export-request.js';

/** Why a span or log record cannot become a record. */
export type Rejection =
  | 'without a valid trace id and span id'
  | 'with an id of a wrong length'
  | 'with a time beyond int64';

/** The type of a log record that names none. */
export const UNNAMED = `${EVENT_TYPE_PREFIX}log.LogMessage`;

const MAX_INT64 = 2n ** 63n - 1n;

/**
 * Makes the records of a span or log record of OTLP, whatever it looks like: this says what is right. `ItemLines` does the same
 * faster for what looks as nearly all of the engine's does.
 */
export class ItemRecords {
  constructor(private readonly schema: AttributeSchema) {}

  /** A span's start and end. OTLP does not carry the event type, the severity and the start; they are inferred from what it does carry. */
  ofSpan(span: OtlpSpan): readonly TelemetryRecord[] | Rejection {
    if (!hasIds(span)) return 'without a valid trace id and span id';
    if (hasOddId(span)) return 'with an id of a wrong length';
    const times = [span.startTimeUnixNano, span.endTimeUnixNano] as const;
    if (times.some((time) => time > MAX_INT64)) return 'with a time beyond int64';
    const { attributes, bridge } = withoutBridge(span.attributes);
    const eventType =
      bridge?.get(BRIDGE_ATTRIBUTE.eventType) ?? spanEventType(span.name, () => attributes, this.schema.spanShapes);
    const parts = this.partsOf(eventType, attributes);
    const severity = spanSeverity(shortEventType(eventType), (name, text) =>
      parts.some((part) => part.name === name && part.json === JSON.stringify(text)),
    );
    const received: SpanEnd = {
      recordType: 'SpanEnd',
      traceId: span.traceId as TraceId,
      spanId: span.spanId as SpanId,
      spanName: span.name,
      parentSpanId: isId(span.parentSpanId, 8) ? (span.parentSpanId as SpanId) : null,
      links: linksOf(span),
      startTimeUnixNano: times[0] as UnixNano,
      endTimeUnixNano: times[1] as UnixNano,
      severityNumber: severity.number,
      severityText: severity.text,
      status: statusOf(span.status),
      eventType,
      attributes: attributesOf(parts),
      ...(span.events.length > 0 && { unknownFields: { events: span.events.map(eventOf) } }),
    };
    const end = modernSpelling(received, this.schema);
    return bridge === undefined ? [spanStartOf(end), end] : recordsOfSpan(end, bridge);
  }

  /** A log record, without its span's name, which OTLP does not carry. */
  ofLog(log: OtlpLogRecord): readonly TelemetryRecord[] | Rejection {
    if (!isId(log.traceId, 16)) return 'without a valid trace id and span id';
    const time = log.timeUnixNano === 0n ? log.observedTimeUnixNano : log.timeUnixNano;
    if (time > MAX_INT64) return 'with a time beyond int64';
    const { attributes, bridge } = withoutBridge(log.attributes);
    const carried = bridge && carriedRecord(bridge, log.traceId);
    if (carried !== undefined) return [carried];
    const eventType = log.eventName === '' ? UNNAMED : log.eventName;
    const { body } = log;
    const received: LogRecord = {
      recordType: 'LogRecord',
      traceId: log.traceId as TraceId,
      spanId: isId(log.spanId, 8) ? (log.spanId as SpanId) : null,
      spanName: null,
      eventId: null,
      timeUnixNano: time as UnixNano,
      ...severityOf(log),
      body: typeof body === 'string' ? body : body === null ? '' : valueJson(body),
      eventType,
      attributes: attributesOf(this.partsOf(eventType, attributes)),
    };
    const record = modernSpelling(received, this.schema);
    return [bridge === undefined ? record : recordOfLog(record, bridge)];
  }

  /** As the engine's JSON has them, in key order. */
  private partsOf(eventType: string, attributes: readonly KeyValue[]): readonly AttributePart[] {
    return inKeyOrder(attributes).map(({ key, value }) => ({ name: key, json: this.jsonOf(eventType, key, value) }));
  }

  private jsonOf(eventType: string, name: string, value: AnyValue): string {
    const field = this.schema.field(eventType, name);
    const kind = field?.kind ?? 'unknown';
    if (typeof value === 'string') {
      if (kind === 'enum' && field !== undefined) return JSON.stringify(modernEnumName(value, field));
      return (kind === 'nested' || kind === 'unknown' ? nestedJson(value) : undefined) ?? JSON.stringify(value);
    }
    if (typeof value !== 'bigint') return valueJson(value);
    if (kind === 'int64') return `"${value}"`;
    const enumName = kind === 'enum' ? field?.nameByNumber.get(Number(value)) : undefined;
    return enumName === undefined ? String(value) : JSON.stringify(enumName);
  }
}

/** Whether a span has a trace id and a span id that a record can have. */
export function hasIds({ traceId, spanId }: Pick<OtlpSpan, 'traceId' | 'spanId'>): boolean {
  return isId(traceId, 16) && isId(spanId, 8);
}

/** Whether an id in it has another length than such ids have: there are receivers that refuse all of a request for one. */
export function hasOddId(item: OtlpSpan | OtlpLogRecord): boolean {
  if (isOdd(item.traceId, 16) || isOdd(item.spanId, 8)) return true;
  if ('body' in item) return false;
  return isOdd(item.parentSpanId, 8) || item.links.some((link) => isOdd(link.traceId, 16) || isOdd(link.spanId, 8));
}

function isOdd(hex: string, byteCount: number): boolean {
  return hex !== '' && hex.length !== 2 * byteCount;
}

/** Whether it is an id; zeros are none. */
export function isId(hex: string, byteCount: number): boolean {
  return hex.length === 2 * byteCount && /[^0]/.test(hex);
}

/** What a bridge put beside the attributes, as texts; `undefined` where there is nothing. */
function withoutBridge(all: readonly KeyValue[]): {
  readonly attributes: readonly KeyValue[];
  readonly bridge: BridgeAttributes | undefined;
} {
  const isOfBridge = ({ key }: KeyValue) => key.startsWith(BRIDGE_PREFIX);
  if (!all.some(isOfBridge)) return { attributes: all, bridge: undefined };
  const textOf = (value: AnyValue) => (typeof value === 'string' ? value : valueJson(value));
  return {
    attributes: all.filter((attribute) => !isOfBridge(attribute)),
    bridge: new Map(all.filter(isOfBridge).map(({ key, value }) => [key, textOf(value)])),
  };
}

/** Those whose ids a record can have. */
function linksOf({ links }: OtlpSpan): readonly SpanLink[] | null {
  const kept = links.filter(hasIds);
  if (kept.length === 0) return null;
  return kept.map(({ traceId, spanId, attributes }) => ({
    traceId: traceId as TraceId,
    spanId: spanId as SpanId,
    // As text: parsed and written again, a number beyond 2^53 would be another.
    attributes: Attributes.fromJson(valueJson({ entries: attributes })),
  }));
}

function statusOf(status: OtlpStatus | null): SpanStatus | null {
  if (status === null || (status.code === 0 && status.message === '')) return null;
  return { message: status.message === '' ? null : status.message, code: status.code };
}

function eventOf({ name, timeUnixNano, attributes }: OtlpSpanEvent) {
  return {
    name,
    time_unix_nano: String(timeUnixNano),
    attributes: Attributes.fromJson(valueJson({ entries: attributes })).value,
  };
}

/** What one of the two leaves open, the other says. */
function severityOf({ severityNumber, severityText }: OtlpLogRecord) {
  if (severityText !== '') return { severityNumber: severityNumber || severityNumberOf(severityText), severityText };
  return { severityNumber, severityText: severityTextOf(severityNumber) };
}

/** OTel's ranges: four numbers a severity. */
export function severityTextOf(number: number): string {
  return [ERROR, WARN, INFO, DEBUG, TRACE].find((severity) => number >= severity.number)?.text ?? '';
}
