import { type AttributePart, nestedJson, valueJson } from '../../src/otlp/any-value.js';
import {
  type AttributeField,
  type AttributeSchema,
  modernEnumName,
  modernSpelling,
  shortEventType,
  spanEventType,
  spanSeverity,
  spanStartOf,
} from '../../src/otlp/attribute-schema.js';
import { BRIDGE_ATTRIBUTE, BRIDGE_PREFIX } from '../../src/otlp/bridge-attributes.js';
import type {
  AnyValue,
  ExportRequest,
  KeyValue,
  OtlpLogRecord,
  OtlpSpan,
  OtlpSpanLink,
  OtlpStatus,
  ResourceGroup,
  ScopeGroup,
} from '../../src/otlp/export-request.js';
import type { OtlpCodec } from '../../src/otlp/otlp-codec.js';
import type { DecodedRequest } from '../../src/otlp/wire/wire-decoder.js';
import {
  Attributes,
  isNestedTooDeep,
  isReserved,
  type JsonObject,
  type Resource,
  type ResourceValue,
  resourceKey,
} from '../../src/record/attributes.js';
import { EVENT_TYPE_PREFIX } from '../../src/record/event-table.js';
import type { ForeignBatch, RecordBatch } from '../../src/record/record-batch.js';
import { tryParseRecordLine } from '../../src/record/record-line.js';
import { DEBUG, ERROR, INFO, severityNumberOf, TRACE, WARN } from '../../src/record/severity.js';
import {
  type LogRecord,
  parseSpanId,
  parseTraceId,
  type SpanEnd,
  type SpanLink,
  type SpanStatus,
  type TelemetryRecord,
  type TraceId,
} from '../../src/record/telemetry-record.js';

/** Service and scope names of the engine's builds; whatever else comes is another service's. */
const ENGINE_NAMES = new Set(['dbt-core', 'dbt-fusion', 'dbt-tracing']);
/** Spans that a bridge has mapped already are another bridge's exports: they are passed on as they are. */
const MAPPED_BY = 'telemetry.distro.name';

/**
 * Decodes OTLP requests of the engine into records and keeps other services' telemetry as it came, by way of objects that protobufjs
 * or the JSON codec read. The bridge's own decoder, which reads the bytes, is held against it.
 */
export class OtlpRequestDecoder {
  /** @param json writes other services' telemetry as OTLP JSON */
  constructor(
    private readonly schema: AttributeSchema,
    private readonly json: OtlpCodec,
  ) {}

  decode(request: ExportRequest): DecodedRequest {
    const collected = new Collector();
    const foreign: ForeignBatch[] = [];
    if (request.signal === 'traces') {
      for (const group of request.resources) this.decodeGroup(group, collected, isValidSpan, this.spanRecords);
    } else {
      for (const group of request.resources) this.decodeGroup(group, collected, isAnyLog, this.logRecords);
    }
    const rest = foreignPart(request, collected);
    if (rest.recordCount > 0) {
      const body = Buffer.from(this.json.encode(rest.request)).toString('utf8');
      foreign.push({ signal: request.signal, body, recordCount: rest.recordCount });
    }
    return {
      delivery: { batches: collected.batches(), foreign },
      rejectedCount: collected.rejectedCount,
      rejectionMessage: collected.rejectionMessage(request.signal),
    };
  }

  private decodeGroup<T extends OtlpSpan | OtlpLogRecord>(
    group: ResourceGroup<T>,
    collected: Collector,
    isKept: (record: T) => boolean,
    toRecords: (record: T) => readonly TelemetryRecord[] | Rejection,
  ): void {
    for (const scope of group.scopes) {
      if (isEngine(group, scope)) {
        const resource = resourceOf(group, scope);
        const key = resourceKey(resource);
        for (const record of scope.records) {
          // A log record outside any trace has no run to join; it is kept and passed on like another service's.
          if ('body' in record && parseTraceId(record.traceId) === undefined) collected.pass(record);
          else collected.add(resource, key, toRecords(record));
        }
      } else {
        for (const record of scope.records) {
          if (isKept(record)) collected.pass(record);
          else collected.reject('without a valid trace id and span id');
        }
      }
    }
  }

  private readonly spanRecords = (span: OtlpSpan) => decodeSpan(span, this.schema);
  private readonly logRecords = (log: OtlpLogRecord): readonly TelemetryRecord[] | Rejection => {
    const decoded = decodeLog(log, this.schema);
    return typeof decoded === 'string' ? decoded : [decoded];
  };
}

/** Sorts what a request brought: records by trace and resource, what is passed on, what is rejected and why. */
class Collector {
  readonly passed = new Set<OtlpSpan | OtlpLogRecord>();
  rejectedCount = 0;
  private readonly reasons = new Set<Rejection>();
  private readonly byTrace = new Map<string, { resource: Resource; records: TelemetryRecord[] }>();

  /** @param key equal for equal resources */
  add(resource: Resource, key: string, decoded: readonly TelemetryRecord[] | Rejection): void {
    if (typeof decoded === 'string') {
      this.reject(decoded);
      return;
    }
    const [first] = decoded;
    if (first === undefined) return;
    const traceKey = first.traceId + key;
    const batch = this.byTrace.get(traceKey);
    if (batch === undefined) this.byTrace.set(traceKey, { resource, records: [...decoded] });
    else for (const record of decoded) batch.records.push(record);
  }

  pass(record: OtlpSpan | OtlpLogRecord): void {
    this.passed.add(record);
  }

  reject(reason: Rejection): void {
    this.rejectedCount++;
    this.reasons.add(reason);
  }

  batches(): RecordBatch[] {
    return [...this.byTrace.values()].flatMap(({ resource, records }) => {
      const [first] = records;
      return first === undefined ? [] : [{ traceId: first.traceId, resource, records }];
    });
  }

  rejectionMessage(signal: string): string {
    if (this.rejectedCount === 0) return '';
    const what = signal === 'traces' ? 'spans' : 'log records';
    return `${this.rejectedCount} ${what} ${[...this.reasons].join(' or ')} were not kept; the rest was`;
  }
}

function foreignPart(request: ExportRequest, collected: Collector): { request: ExportRequest; recordCount: number } {
  const recordCount = collected.passed.size;
  if (request.signal === 'traces') {
    return { request: { signal: 'traces', resources: keepPassed(request.resources, collected) }, recordCount };
  }
  return { request: { signal: 'logs', resources: keepPassed(request.resources, collected) }, recordCount };
}

function keepPassed<T extends OtlpSpan | OtlpLogRecord>(
  groups: readonly ResourceGroup<T>[],
  collected: Collector,
): ResourceGroup<T>[] {
  if (collected.passed.size === 0) return [];
  return groups
    .map((group) => ({
      ...group,
      scopes: group.scopes
        .map((scope) => ({ ...scope, records: scope.records.filter((record) => collected.passed.has(record)) }))
        .filter((scope) => scope.records.length > 0),
    }))
    .filter((group) => group.scopes.length > 0);
}

/** Whether the engine sent a scope's records, by its service or scope name. */
export function isEngine<T>(group: ResourceGroup<T>, scope: ScopeGroup<T>): boolean {
  if (attribute(group, MAPPED_BY) === 'run-bridge') return false;
  const service = attribute(group, 'service.name');
  return (typeof service === 'string' && ENGINE_NAMES.has(service)) || ENGINE_NAMES.has(scope.scope.name);
}

function attribute<T>(group: ResourceGroup<T>, name: string): AnyValue | undefined {
  return group.resource.attributes.find(({ key }) => key === name)?.value;
}

function isValidSpan(span: OtlpSpan): boolean {
  return parseTraceId(span.traceId) !== undefined && parseSpanId(span.spanId) !== undefined;
}

function isAnyLog(): boolean {
  return true;
}

/** The resource and scope of a group as records carry them. */
export function resourceOf<T>(group: ResourceGroup<T>, scope: ScopeGroup<T>): Resource {
  const attributes: Record<string, ResourceValue> = {};
  for (const { key, value: sent } of group.resource.attributes) {
    const value = resourceValue({ key, value: sent });
    if (!isReserved(key, value)) attributes[key] = value;
  }
  return { attributes, scope: { name: scope.scope.name, version: scope.scope.version } };
}

/** Scalars and lists of them as they are; anything deeper as its JSON text. */
function resourceValue({ value }: KeyValue): ResourceValue {
  if (typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number') return value;
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (Array.isArray(value)) {
    return (value as readonly AnyValue[]).map((item) => (typeof item === 'string' ? item : valueJson(item)));
  }
  return value === null ? '' : valueJson(value);
}

/** The type of a log record that names none. */
const UNNAMED = `${EVENT_TYPE_PREFIX}log.LogMessage`;

/**
 * A log record of the engine as its record, or why it cannot be. OTLP brings the event type in `event_name` and neither
 * `event_id` nor the span's name; the record log fills in the name when the span is known.
 */
export function decodeLog(log: OtlpLogRecord, schema: AttributeSchema): TelemetryRecord | Rejection {
  const traceId = parseTraceId(log.traceId);
  if (traceId === undefined) return 'without a valid trace id and span id';
  const timeUnixNano = log.timeUnixNano === 0n ? log.observedTimeUnixNano : log.timeUnixNano;
  if (timeUnixNano > MAX_UNIX_NANO) return 'with a time beyond int64';

  const { own, bridge } = splitAttributes(log.attributes);
  const whole = wholeRecord(bridge.get(BRIDGE_ATTRIBUTE.record), traceId);
  if (whole !== undefined) return whole;
  const eventType = log.eventName === '' ? UNNAMED : log.eventName;
  const unknownFields = bridgeObject(bridge.get(BRIDGE_ATTRIBUTE.unknownFields));
  return modernSpelling<LogRecord>(
    {
      recordType: 'LogRecord',
      traceId,
      spanId: parseSpanId(log.spanId) ?? null,
      spanName: bridge.get(BRIDGE_ATTRIBUTE.spanName) ?? null,
      eventId: bridge.get(BRIDGE_ATTRIBUTE.eventId) ?? null,
      timeUnixNano,
      severityNumber: log.severityNumber === 0 ? severityNumberOf(log.severityText) : log.severityNumber,
      severityText: log.severityText === '' ? severityText(log.severityNumber) : log.severityText,
      body: typeof log.body === 'string' ? log.body : log.body === null ? '' : valueJson(log.body),
      eventType,
      attributes: joined(partsOf(own, eventType, schema)),
      ...(unknownFields === undefined ? {} : { unknownFields }),
    },
    schema,
  );
}

/** The record that another bridge handed over as its line; only one of the trace that the log record names. */
function wholeRecord(line: string | undefined, traceId: TraceId): TelemetryRecord | undefined {
  if (line === undefined || isNestedTooDeep(line)) return undefined;
  const record = tryParseRecordLine(line);
  return record?.traceId === traceId ? record : undefined;
}

/** OTel's ranges: four numbers a severity. */
function severityText(number: number): string {
  if (number >= ERROR.number) return ERROR.text;
  if (number >= WARN.number) return WARN.text;
  if (number >= INFO.number) return INFO.text;
  if (number >= DEBUG.number) return DEBUG.text;
  return number >= TRACE.number ? TRACE.text : '';
}

/** The largest time that a record can hold. */
export const MAX_UNIX_NANO = 2n ** 63n - 1n;

/** Why a span or log record cannot become a record. */
export type Rejection = 'without a valid trace id and span id' | 'with a time beyond int64';

/**
 * A span of the engine as its SpanStart and SpanEnd, or why it cannot be.
 * OTLP does not carry the event type, the severity and the start; they are reported from what it does carry.
 */
export function decodeSpan(span: OtlpSpan, schema: AttributeSchema): readonly TelemetryRecord[] | Rejection {
  const traceId = parseTraceId(span.traceId);
  const spanId = parseSpanId(span.spanId);
  if (traceId === undefined || spanId === undefined) return 'without a valid trace id and span id';
  if (span.startTimeUnixNano > MAX_UNIX_NANO || span.endTimeUnixNano > MAX_UNIX_NANO) return 'with a time beyond int64';

  const { own, bridge } = splitAttributes(span.attributes);
  const eventType = bridge.get(BRIDGE_ATTRIBUTE.eventType) ?? spanEventType(span.name, () => own, schema.spanShapes);
  const shortType = shortEventType(eventType);
  const parts = partsOf(own, eventType, schema);
  const severity = spanSeverity(shortType, (name, text) =>
    parts.some((part) => part.name === name && part.json === JSON.stringify(text)),
  );
  const unknownFields = unknownFieldsOf(span, bridge);
  const severityText = bridge.get(BRIDGE_ATTRIBUTE.severityText);
  const severityNumber = Number(bridge.get(BRIDGE_ATTRIBUTE.severityNumber) ?? 0);
  const end = modernSpelling(
    {
      recordType: 'SpanEnd',
      traceId,
      spanId,
      spanName: span.name,
      parentSpanId: parseSpanId(span.parentSpanId) ?? null,
      links: linksOf(span.links),
      startTimeUnixNano: span.startTimeUnixNano,
      endTimeUnixNano: span.endTimeUnixNano,
      severityNumber: severityNumber || severityNumberOf(severityText ?? severity.text),
      severityText: severityText ?? severity.text,
      status: statusOf(span.status),
      eventType,
      attributes: joined(parts),
      ...(unknownFields === undefined ? {} : { unknownFields }),
    },
    schema,
  );
  return bridge.size > 0 ? withStart(end, bridge) : [spanStartOf(end), end];
}

const NONE: ReadonlyMap<string, string> = new Map();

/** The attributes of the message, and the bridge's own as text by name. */
export function splitAttributes(attributes: readonly KeyValue[]): {
  readonly own: readonly KeyValue[];
  readonly bridge: ReadonlyMap<string, string>;
} {
  if (!attributes.some(({ key }) => key.startsWith(BRIDGE_PREFIX))) return { own: attributes, bridge: NONE };
  const bridge = new Map<string, string>();
  const own: KeyValue[] = [];
  for (const attribute of attributes) {
    if (!attribute.key.startsWith(BRIDGE_PREFIX)) own.push(attribute);
    else bridge.set(attribute.key, typeof attribute.value === 'string' ? attribute.value : valueJson(attribute.value));
  }
  return { own, bridge };
}

/** A JSON object that the bridge itself wrote into an attribute; `undefined` where it is absent or not one. */
export function bridgeObject(text: string | undefined): JsonObject | undefined {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as JsonObject;
  } catch {
    return undefined;
  }
}

function withStart(end: SpanEnd, bridge: ReadonlyMap<string, string>): readonly TelemetryRecord[] {
  if (bridge.get(BRIDGE_ATTRIBUTE.only) === 'ended') return [end];
  const line = bridge.get(BRIDGE_ATTRIBUTE.spanStart);
  const start = line === undefined ? undefined : tryParseRecordLine(line);
  if (bridge.get(BRIDGE_ATTRIBUTE.only) === 'started') return start === undefined ? [] : [start];
  return [start ?? spanStartOf(end), end];
}

/** Span events have no place in the envelope; the engine sends none today. They are kept beside the known keys. */
function unknownFieldsOf(span: OtlpSpan, bridge: ReadonlyMap<string, string>): JsonObject | undefined {
  const kept = bridgeObject(bridge.get(BRIDGE_ATTRIBUTE.unknownFields));
  if (span.events.length === 0) return kept;
  const events = span.events.map(({ name, timeUnixNano, attributes }) => ({
    name,
    time_unix_nano: String(timeUnixNano),
    attributes: JSON.parse(valueJson({ entries: attributes })) as JsonObject,
  }));
  return { ...kept, events };
}

function linksOf(links: readonly OtlpSpanLink[]): readonly SpanLink[] | null {
  const valid = links.flatMap((link) => {
    const traceId = parseTraceId(link.traceId);
    const spanId = parseSpanId(link.spanId);
    if (traceId === undefined || spanId === undefined) return [];
    return [{ traceId, spanId, attributes: Attributes.fromJson(valueJson({ entries: link.attributes })) }];
  });
  return valid.length === 0 ? null : valid;
}

function statusOf(status: OtlpStatus | null): SpanStatus | null {
  if (status === null || (status.code === 0 && status.message === '')) return null;
  return { message: status.message === '' ? null : status.message, code: status.code };
}

/**
 * A span's or log record's attributes, in key order: nested JSON texts as what they are, numbers as the schema spells
 * them. Of a key that comes twice the last value counts.
 */
function partsOf(
  attributes: readonly KeyValue[],
  eventType: string,
  schema: AttributeSchema,
): readonly AttributePart[] {
  return inKeyOrder(attributes).map(({ key, value }) => ({
    name: key,
    json: fieldJson(value, schema.field(eventType, key)),
  }));
}

function joined(parts: readonly AttributePart[]): Attributes {
  return Attributes.fromJson(`{${parts.map(({ name, json }) => `${JSON.stringify(name)}:${json}`).join(',')}}`);
}

function inKeyOrder(attributes: readonly KeyValue[]): readonly KeyValue[] {
  const byKey = new Map(attributes.map((attribute) => [attribute.key, attribute]));
  return [...byKey.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
}

function fieldJson(value: AnyValue, field: AttributeField | undefined): string {
  if (typeof value === 'string') return textJson(value, field);
  if (typeof value === 'bigint') return integerJson(value, field);
  return valueJson(value);
}

function textJson(value: string, field: AttributeField | undefined): string {
  switch (field?.kind) {
    case 'nested':
    case undefined:
      return nestedJson(value) ?? JSON.stringify(value);
    case 'enum':
      return JSON.stringify(modernEnumName(value, field));
    case 'text':
    case 'int64':
    case 'int32':
    case 'bool':
    case 'double':
    case 'enumNumber':
      return JSON.stringify(value);
  }
}

function integerJson(value: bigint, field: AttributeField | undefined): string {
  if (field?.kind === 'int64') return `"${value}"`;
  const name = field?.kind === 'enum' ? field.nameByNumber.get(Number(value)) : undefined;
  return name === undefined ? String(value) : JSON.stringify(name);
}
