import protobuf from 'protobufjs/light.js';
import { reasonOf } from '../core/errors.js';
import type { Signal } from '../record/record-batch.js';
import type {
  AnyValue,
  ExportRequest,
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
import { checkFieldCount, checkValueLevel, type OtlpCodec, OtlpDecodeError } from './otlp-codec.js';
import { readOtlpMessages } from './read-otlp-messages.js';
import { requestToWire, type WireSpelling } from './to-wire.js';

/**
 * OTLP's binary encoding. A known field with the wrong wire type counts as unknown and is passed over, as protobuf
 * has it; what cannot be read at all (a length beyond the body, a broken varint, an unfinished group, more than 100
 * nested messages) is an OtlpDecodeError. Creating the first one makes protobufjs' types of OTLP's messages, some ms.
 */
export class ProtobufCodec implements OtlpCodec {
  readonly encoding = 'protobuf';
  private readonly types = loadWireTypes();

  decode(signal: Signal, body: Uint8Array): ExportRequest {
    try {
      // protobufjs cannot know its messages' types statically; the .proto files are what these interfaces say.
      const message: unknown = this.types.request[signal].decode(WireReader.of(body));
      return signal === 'traces'
        ? tracesFromWire(message as WireTracesRequest)
        : logsFromWire(message as WireLogsRequest);
    } catch (cause) {
      if (cause instanceof OtlpDecodeError) throw cause;
      const reason = reasonOf(cause);
      throw new OtlpDecodeError(
        `The body is not an OTLP ${signal} request in protobuf: ${reason} (body of ${body.byteLength} bytes).`,
        { cause },
      );
    }
  }

  encode(request: ExportRequest): Uint8Array {
    return finish(this.types.request[request.signal], requestToWire(request, PROTOBUF_SPELLING));
  }

  encodeResponse(signal: Signal, rejectedCount: number, message: string): Uint8Array {
    const response =
      rejectedCount === 0 && message === ''
        ? {}
        : {
            partialSuccess:
              signal === 'traces'
                ? { rejectedSpans: rejectedCount, errorMessage: message }
                : { rejectedLogRecords: rejectedCount, errorMessage: message },
          };
    return finish(this.types.response[signal], response);
  }

  encodeStatus(code: number, message: string): Uint8Array {
    return finish(this.types.status, { code, message });
  }
}

const PROTOBUF_SPELLING: WireSpelling = {
  id: (hex) => Buffer.from(hex, 'hex'),
  int64: (value): WireInt64 => ({
    low: Number(BigInt.asIntN(32, value)),
    high: Number(BigInt.asIntN(32, value >> 32n)),
  }),
  double: (value) => value,
  bytes: (value) => value,
};

function finish(type: protobuf.Type, message: Readonly<Record<string, unknown>>): Uint8Array {
  return type.encode(message).finish();
}

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

/** A 64-bit integer as protobufjs spells it: two signed halves. */
export interface WireInt64 {
  readonly low: number;
  readonly high: number;
}

/** `opentelemetry.proto.common.v1.AnyValue` as protobufjs decodes it; `value` names the member that is set. */
export interface WireAnyValue {
  readonly value?:
    | 'stringValue'
    | 'boolValue'
    | 'intValue'
    | 'doubleValue'
    | 'arrayValue'
    | 'kvlistValue'
    | 'bytesValue'
    | 'stringValueStrindex';
  readonly stringValue: string;
  readonly boolValue: boolean;
  readonly intValue: WireInt64;
  readonly doubleValue: number;
  readonly arrayValue: { readonly values: readonly WireAnyValue[] };
  readonly kvlistValue: { readonly values: readonly WireKeyValue[] };
  readonly bytesValue: Uint8Array;
}

/** `opentelemetry.proto.common.v1.KeyValue`. */
export interface WireKeyValue {
  readonly key: string;
  readonly value: WireAnyValue | null;
}

interface WireAttributes {
  readonly attributes: readonly WireKeyValue[];
  readonly droppedAttributesCount: number;
}

/** `opentelemetry.proto.resource.v1.Resource`. */
export interface WireResource extends WireAttributes {
  readonly entityRefs: readonly WireEntityRef[];
}

/** `opentelemetry.proto.common.v1.EntityRef`. */
export interface WireEntityRef {
  readonly schemaUrl: string;
  readonly type: string;
  readonly idKeys: readonly string[];
  readonly descriptionKeys: readonly string[];
}

/** `opentelemetry.proto.common.v1.InstrumentationScope`. */
export interface WireScope extends WireAttributes {
  readonly name: string;
  readonly version: string;
}

/** `opentelemetry.proto.trace.v1.Span.Event`. */
export interface WireSpanEvent extends WireAttributes {
  readonly timeUnixNano: WireInt64;
  readonly name: string;
}

/** `opentelemetry.proto.trace.v1.Span.Link`. */
export interface WireSpanLink extends WireAttributes {
  readonly traceId: Uint8Array;
  readonly spanId: Uint8Array;
  readonly traceState: string;
  readonly flags: number;
}

/** `opentelemetry.proto.trace.v1.Span`. */
export interface WireSpan extends WireAttributes {
  readonly traceId: Uint8Array;
  readonly spanId: Uint8Array;
  readonly traceState: string;
  readonly parentSpanId: Uint8Array;
  readonly flags: number;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: WireInt64;
  readonly endTimeUnixNano: WireInt64;
  readonly events: readonly WireSpanEvent[];
  readonly droppedEventsCount: number;
  readonly links: readonly WireSpanLink[];
  readonly droppedLinksCount: number;
  readonly status: { readonly code: number; readonly message: string } | null;
}

/** `opentelemetry.proto.logs.v1.LogRecord`. */
export interface WireLogRecord extends WireAttributes {
  readonly timeUnixNano: WireInt64;
  readonly observedTimeUnixNano: WireInt64;
  readonly severityNumber: number;
  readonly severityText: string;
  readonly body: WireAnyValue | null;
  readonly flags: number;
  readonly traceId: Uint8Array;
  readonly spanId: Uint8Array;
  readonly eventName: string;
}

interface WireGroup {
  readonly resource: WireResource | null;
  readonly schemaUrl: string;
}

interface WireScopeGroup {
  readonly scope: WireScope | null;
  readonly schemaUrl: string;
}

/** `opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest`. */
export interface WireTracesRequest {
  readonly resourceSpans: readonly (WireGroup & {
    readonly scopeSpans: readonly (WireScopeGroup & { readonly spans: readonly WireSpan[] })[];
  })[];
}

/** `opentelemetry.proto.collector.logs.v1.ExportLogsServiceRequest`. */
export interface WireLogsRequest {
  readonly resourceLogs: readonly (WireGroup & {
    readonly scopeLogs: readonly (WireScopeGroup & { readonly logRecords: readonly WireLogRecord[] })[];
  })[];
}

/** The protobufjs types that OTLP's requests and answers need. */
export interface WireTypes {
  readonly request: Readonly<Record<Signal, protobuf.Type>>;
  readonly response: Readonly<Record<Signal, protobuf.Type>>;
  readonly status: protobuf.Type;
}

const TRACES = 'opentelemetry.proto.collector.trace.v1';
const LOGS = 'opentelemetry.proto.collector.logs.v1';

let loaded: WireTypes | undefined;

/** Those of this thread; the first time it reads OTLP's .proto files, about 10 ms. */
export function loadWireTypes(): WireTypes {
  loaded ??= readWireTypes();
  return loaded;
}

function readWireTypes(): WireTypes {
  const root = protobuf.Root.fromJSON(readOtlpMessages());
  return {
    request: {
      traces: root.lookupType(`${TRACES}.ExportTraceServiceRequest`),
      logs: root.lookupType(`${LOGS}.ExportLogsServiceRequest`),
    },
    response: {
      traces: root.lookupType(`${TRACES}.ExportTraceServiceResponse`),
      logs: root.lookupType(`${LOGS}.ExportLogsServiceResponse`),
    },
    status: root.lookupType('google.rpc.Status'),
  };
}
