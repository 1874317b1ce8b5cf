import type protobuf from 'protobufjs';
import type { Signal } from '../record/record-batch.js';
import { loadProtoFiles } from '../schema/proto-files.js';

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

/** The protobufjs types that OTLP's requests and answers need, read from `proto/`. */
export interface WireTypes {
  readonly request: Readonly<Record<Signal, protobuf.Type>>;
  readonly response: Readonly<Record<Signal, protobuf.Type>>;
  readonly status: protobuf.Type;
}

const TRACES = 'opentelemetry.proto.collector.trace.v1';
const LOGS = 'opentelemetry.proto.collector.logs.v1';

/** Reads OTLP's .proto files; about 10 ms. */
export function loadWireTypes(): WireTypes {
  const root = loadProtoFiles([
    'opentelemetry/proto/collector/trace/v1/trace_service.proto',
    'opentelemetry/proto/collector/logs/v1/logs_service.proto',
    'google/rpc/status.proto',
  ]);
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
