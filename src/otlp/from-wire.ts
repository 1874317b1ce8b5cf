import protobuf from 'protobufjs';
import type {
  AnyValue,
  KeyValue,
  LogsRequest,
  OtlpEntityRef,
  OtlpLogRecord,
  OtlpResource,
  OtlpScope,
  OtlpSpan,
  OtlpSpanEvent,
  OtlpSpanLink,
  TracesRequest,
} from './export-request.js';
import { checkFieldCount, checkValueLevel } from './otlp-codec.js';
import type {
  WireAnyValue,
  WireEntityRef,
  WireInt64,
  WireKeyValue,
  WireLogRecord,
  WireLogsRequest,
  WireResource,
  WireScope,
  WireSpan,
  WireSpanEvent,
  WireSpanLink,
  WireTracesRequest,
} from './wire-messages.js';

/** Turns a decoded protobuf request into the bridge's own. @throws OtlpDecodeError for values nested too deep. */
export function tracesFromWire(request: WireTracesRequest): TracesRequest {
  const resources = request.resourceSpans.map((group) => ({
    resource: resourceFromWire(group.resource),
    schemaUrl: group.schemaUrl,
    scopes: group.scopeSpans.map((scopeGroup) => ({
      scope: scopeFromWire(scopeGroup.scope),
      schemaUrl: scopeGroup.schemaUrl,
      records: scopeGroup.spans.map(spanFromWire),
    })),
  }));
  return { signal: 'traces', resources };
}

/** Turns a decoded protobuf request into the bridge's own. @throws OtlpDecodeError for values nested too deep. */
export function logsFromWire(request: WireLogsRequest): LogsRequest {
  const resources = request.resourceLogs.map((group) => ({
    resource: resourceFromWire(group.resource),
    schemaUrl: group.schemaUrl,
    scopes: group.scopeLogs.map((scopeGroup) => ({
      scope: scopeFromWire(scopeGroup.scope),
      schemaUrl: scopeGroup.schemaUrl,
      records: scopeGroup.logRecords.map(logRecordFromWire),
    })),
  }));
  return { signal: 'logs', resources };
}

function resourceFromWire(resource: WireResource | null): OtlpResource {
  if (resource === null) return { attributes: [], droppedAttributesCount: 0 };
  return {
    attributes: attributesFromWire(resource.attributes),
    droppedAttributesCount: resource.droppedAttributesCount,
    ...(resource.entityRefs.length === 0 ? {} : { entityRefs: resource.entityRefs.map(entityRefFromWire) }),
  };
}

function entityRefFromWire({ schemaUrl, type, idKeys, descriptionKeys }: WireEntityRef): OtlpEntityRef {
  return { schemaUrl, type, idKeys: [...idKeys], descriptionKeys: [...descriptionKeys] };
}

function scopeFromWire(scope: WireScope | null): OtlpScope {
  if (scope === null) return { name: '', version: '', attributes: [], droppedAttributesCount: 0 };
  return {
    name: scope.name,
    version: scope.version,
    attributes: attributesFromWire(scope.attributes),
    droppedAttributesCount: scope.droppedAttributesCount,
  };
}

function spanFromWire(span: WireSpan): OtlpSpan {
  return {
    traceId: hex(span.traceId),
    spanId: hex(span.spanId),
    traceState: span.traceState,
    parentSpanId: hex(span.parentSpanId),
    flags: span.flags,
    name: span.name,
    kind: span.kind,
    startTimeUnixNano: unsigned(span.startTimeUnixNano),
    endTimeUnixNano: unsigned(span.endTimeUnixNano),
    attributes: attributesFromWire(span.attributes),
    droppedAttributesCount: span.droppedAttributesCount,
    events: span.events.map(spanEventFromWire),
    droppedEventsCount: span.droppedEventsCount,
    links: span.links.map(spanLinkFromWire),
    droppedLinksCount: span.droppedLinksCount,
    status: span.status === null ? null : { code: span.status.code, message: span.status.message },
  };
}

function spanEventFromWire(event: WireSpanEvent): OtlpSpanEvent {
  return {
    timeUnixNano: unsigned(event.timeUnixNano),
    name: event.name,
    attributes: attributesFromWire(event.attributes),
    droppedAttributesCount: event.droppedAttributesCount,
  };
}

function spanLinkFromWire(link: WireSpanLink): OtlpSpanLink {
  return {
    traceId: hex(link.traceId),
    spanId: hex(link.spanId),
    traceState: link.traceState,
    attributes: attributesFromWire(link.attributes),
    droppedAttributesCount: link.droppedAttributesCount,
    flags: link.flags,
  };
}

function logRecordFromWire(record: WireLogRecord): OtlpLogRecord {
  return {
    timeUnixNano: unsigned(record.timeUnixNano),
    observedTimeUnixNano: unsigned(record.observedTimeUnixNano),
    severityNumber: record.severityNumber,
    severityText: record.severityText,
    body: valueFromWire(record.body, 1),
    attributes: attributesFromWire(record.attributes),
    droppedAttributesCount: record.droppedAttributesCount,
    flags: record.flags,
    traceId: hex(record.traceId),
    spanId: hex(record.spanId),
    eventName: record.eventName,
  };
}

function attributesFromWire(attributes: readonly WireKeyValue[]): KeyValue[] {
  return attributes.map((entry) => ({ key: entry.key, value: valueFromWire(entry.value, 1) }));
}

function valueFromWire(value: WireAnyValue | null, level: number): AnyValue {
  checkValueLevel(level);
  switch (value?.value) {
    case 'stringValue':
      return value.stringValue;
    case 'boolValue':
      return value.boolValue;
    case 'intValue':
      return signed(value.intValue);
    case 'doubleValue':
      return value.doubleValue;
    case 'arrayValue':
      return value.arrayValue.values.map((item) => valueFromWire(item, level + 1));
    case 'kvlistValue':
      return {
        entries: value.kvlistValue.values.map((entry) => ({
          key: entry.key,
          value: valueFromWire(entry.value, level + 1),
        })),
      };
    case 'bytesValue':
      // A copy: a view would keep the whole request body alive.
      return new Uint8Array(value.bytesValue);
    case 'stringValueStrindex':
    case undefined:
      return null;
  }
}

function hex(bytes: Uint8Array): string {
  return bytes.length === 0 ? '' : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}

function unsigned({ low, high }: WireInt64): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}

function signed({ low, high }: WireInt64): bigint {
  return (BigInt(high) << 32n) | BigInt(low >>> 0);
}

/**
 * Reads OTLP's protobuf. It differs from the library's reader in two points. Text that is not UTF-8 gets U+FFFD for
 * each broken part, where proto3 would have the whole request refused: the engine never retries, and one garbled
 * attribute must not cost the batch. And it counts the fields.
 */
export class WireReader extends protobuf.BufferReader {
  static of(body: Uint8Array): WireReader {
    return new WireReader(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
  }

  private fieldCount = 0;

  /** @throws OtlpDecodeError for too many fields. */
  override tag(): number {
    checkFieldCount(++this.fieldCount);
    return super.tag();
  }

  override stringVerify(): string {
    return this.string();
  }
}
