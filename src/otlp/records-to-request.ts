import { isJsonObject, type JsonValue, type Resource } from '../record/attributes.js';
import type { RecordBatch } from '../record/record-batch.js';
import { formatRecordLine } from '../record/record-line.js';
import type { LogRecord, SpanEnd, SpanId, SpanStart, TelemetryRecord, TraceId } from '../record/telemetry-record.js';
import { spanStartOf } from './attribute-schema.js';
import { BRIDGE_ATTRIBUTE } from './bridge-attributes.js';
import type {
  AnyValue,
  ExportRequest,
  KeyValue,
  OtlpLogRecord,
  OtlpResource,
  OtlpScope,
  OtlpSpan,
} from './export-request.js';

/** The scope of records that came without one, so that they are read as the engine's again. */
const DEFAULT_SCOPE = 'dbt-core';
const KIND_INTERNAL = 1;
const SAMPLED = 1;

/**
 * Makes OTLP requests of records as the engine sends them: a span when it ends, nested attributes of spans as JSON texts.
 * What OTLP has no place for (event type and severity of spans, starts, event ids) goes into `run_bridge.*` attributes,
 * so that reading the requests gives the records back. Keeps the starts of spans that have not ended.
 */
export class RecordsToRequests {
  private readonly starts = new Map<string, { readonly start: SpanStart; readonly resource: Resource }>();

  /** The requests that can be made with this batch: at most one of spans and one of logs. */
  push({ resource, records }: RecordBatch): readonly ExportRequest[] {
    const spans: OtlpSpan[] = [];
    const logs: OtlpLogRecord[] = [];
    for (const record of records) {
      switch (record.recordType) {
        case 'SpanStart':
          this.starts.set(spanKey(record), { start: record, resource });
          break;
        case 'SpanEnd':
          spans.push(this.endedSpan(record));
          break;
        case 'LogRecord':
          logs.push(logOf(record));
          break;
      }
    }
    return [...tracesRequest(resource, spans), ...logsRequest(resource, logs)];
  }

  /** Spans that never ended, with an end time of zero. */
  finish(): readonly ExportRequest[] {
    const left = [...this.starts.values()];
    this.starts.clear();
    return left.flatMap(({ start, resource }) => tracesRequest(resource, [startedSpan(start)]));
  }

  private endedSpan(end: SpanEnd): OtlpSpan {
    const key = spanKey(end);
    const start = this.starts.get(key)?.start;
    this.starts.delete(key);
    return spanOf(end, end.endTimeUnixNano, end.status, startAttributes(start, end));
  }
}

/**
 * Makes one OTLP request of logs of records, in their order: each record as its line. So a bridge has starts of spans at once,
 * and everything in the engine's order, which spans that are sent when they end cannot say.
 */
export function linesRequest({ resource, records }: RecordBatch): readonly ExportRequest[] {
  return logsRequest(resource, records.map(carrierOf));
}

/** Whether the line says all of a record: a log record that came over OTLP gets its span's name where it is kept. */
export function isWholeLine(record: TelemetryRecord): boolean {
  if (record.recordType !== 'LogRecord' || record.line !== undefined) return true;
  return record.spanName !== null || record.spanId === null;
}

function carrierOf(record: TelemetryRecord): OtlpLogRecord {
  const timeUnixNano = record.recordType === 'LogRecord' ? record.timeUnixNano : record.startTimeUnixNano;
  return {
    timeUnixNano,
    observedTimeUnixNano: timeUnixNano,
    severityNumber: record.severityNumber,
    severityText: record.severityText,
    body: '',
    attributes: [{ key: BRIDGE_ATTRIBUTE.record, value: formatRecordLine(record) }],
    droppedAttributesCount: 0,
    flags: SAMPLED,
    traceId: record.traceId,
    spanId: record.spanId ?? '',
    eventName: record.eventType,
  };
}

function startAttributes(start: SpanStart | undefined, end: SpanEnd): readonly KeyValue[] {
  if (start === undefined) return [{ key: BRIDGE_ATTRIBUTE.only, value: 'ended' }];
  const { line: _line, ...bare } = start;
  const isDerivable = formatRecordLine(bare) === formatRecordLine(spanStartOf(end));
  return isDerivable ? [] : [{ key: BRIDGE_ATTRIBUTE.spanStart, value: formatRecordLine(start) }];
}

function startedSpan(start: SpanStart): OtlpSpan {
  return spanOf(start, 0n, null, [
    { key: BRIDGE_ATTRIBUTE.only, value: 'started' },
    { key: BRIDGE_ATTRIBUTE.spanStart, value: formatRecordLine(start) },
  ]);
}

function spanOf(
  record: SpanStart | SpanEnd,
  endTimeUnixNano: bigint,
  status: SpanEnd['status'],
  extra: readonly KeyValue[],
): OtlpSpan {
  return {
    traceId: record.traceId,
    spanId: record.spanId,
    traceState: '',
    parentSpanId: record.parentSpanId ?? '',
    flags: SAMPLED,
    name: record.spanName,
    kind: KIND_INTERNAL,
    startTimeUnixNano: record.startTimeUnixNano,
    endTimeUnixNano,
    attributes: [
      ...Object.entries(record.attributes.value).map(([key, value]) => ({ key, value: spanValue(value) })),
      { key: BRIDGE_ATTRIBUTE.eventType, value: record.eventType },
      { key: BRIDGE_ATTRIBUTE.severityNumber, value: BigInt(record.severityNumber) },
      { key: BRIDGE_ATTRIBUTE.severityText, value: record.severityText },
      ...unknownFields(record),
      ...extra,
    ],
    droppedAttributesCount: 0,
    events: [],
    droppedEventsCount: 0,
    links: (record.links ?? []).map(({ traceId, spanId, attributes }) => ({
      traceId,
      spanId,
      traceState: '',
      attributes: Object.entries(attributes.value).map(([key, value]) => ({ key, value: logValue(value) })),
      droppedAttributesCount: 0,
      flags: 0,
    })),
    droppedLinksCount: 0,
    status: status === null ? null : { code: status.code, message: status.message ?? '' },
  };
}

function logOf(record: LogRecord): OtlpLogRecord {
  const extra: KeyValue[] = [];
  if (record.eventId !== null) extra.push({ key: BRIDGE_ATTRIBUTE.eventId, value: record.eventId });
  if (record.spanName !== null) extra.push({ key: BRIDGE_ATTRIBUTE.spanName, value: record.spanName });
  return {
    timeUnixNano: record.timeUnixNano,
    observedTimeUnixNano: record.timeUnixNano,
    severityNumber: record.severityNumber,
    severityText: record.severityText,
    body: record.body,
    attributes: [
      ...Object.entries(record.attributes.value).map(([key, value]) => ({ key, value: logValue(value) })),
      ...unknownFields(record),
      ...extra,
    ],
    droppedAttributesCount: 0,
    flags: SAMPLED,
    traceId: record.traceId,
    spanId: record.spanId ?? '',
    eventName: record.eventType,
  };
}

function unknownFields({ unknownFields: fields }: TelemetryRecord): readonly KeyValue[] {
  return fields === undefined ? [] : [{ key: BRIDGE_ATTRIBUTE.unknownFields, value: JSON.stringify(fields) }];
}

/** A span's attribute: the engine sends anything nested as one JSON text. */
function spanValue(value: JsonValue): AnyValue {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : scalar(value);
}

/** A log record's attribute: lists and maps as what they are. */
function logValue(value: JsonValue): AnyValue {
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(logValue);
  if (isJsonObject(value)) {
    return { entries: Object.entries(value).map(([key, inner]) => ({ key, value: logValue(inner) })) };
  }
  return scalar(value as string | number | boolean | null);
}

function scalar(value: string | number | boolean | null): AnyValue {
  return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : value;
}

function tracesRequest(resource: Resource, spans: readonly OtlpSpan[]): readonly ExportRequest[] {
  if (spans.length === 0) return [];
  return [{ signal: 'traces', resources: [group(resource, spans)] }];
}

function logsRequest(resource: Resource, logs: readonly OtlpLogRecord[]): readonly ExportRequest[] {
  if (logs.length === 0) return [];
  return [{ signal: 'logs', resources: [group(resource, logs)] }];
}

function group<T>(resource: Resource, records: readonly T[]) {
  return {
    resource: otlpResource(resource),
    schemaUrl: '',
    scopes: [{ scope: otlpScope(resource), schemaUrl: '', records }],
  };
}

function otlpResource({ attributes }: Resource): OtlpResource {
  return {
    attributes: Object.entries(attributes).map(([key, value]) => ({ key, value: logValue(value as JsonValue) })),
    droppedAttributesCount: 0,
  };
}

function otlpScope({ scope }: Resource): OtlpScope {
  return {
    name: scope.name === '' ? DEFAULT_SCOPE : scope.name,
    version: scope.version,
    attributes: [],
    droppedAttributesCount: 0,
  };
}

function spanKey({ traceId, spanId }: { readonly traceId: TraceId; readonly spanId: SpanId }): string {
  return traceId + spanId;
}
