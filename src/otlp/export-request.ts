/** OTLP's Resource. */
export interface OtlpResource {
  readonly attributes: readonly KeyValue[];
  readonly droppedAttributesCount: number;
  /** Left out when there are none, as the engine has it. */
  readonly entityRefs?: readonly OtlpEntityRef[];
}

/** OTLP's EntityRef: which attributes of a resource identify an entity. */
export interface OtlpEntityRef {
  readonly schemaUrl: string;
  readonly type: string;
  readonly idKeys: readonly string[];
  readonly descriptionKeys: readonly string[];
}

/** OTLP's InstrumentationScope. */
export interface OtlpScope {
  readonly name: string;
  readonly version: string;
  readonly attributes: readonly KeyValue[];
  readonly droppedAttributesCount: number;
}

/** OTLP's Span. Ids are lowercase hex of any length, empty for none, and not checked here. */
export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceState: string;
  readonly parentSpanId: string;
  readonly flags: number;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: bigint;
  readonly endTimeUnixNano: bigint;
  readonly attributes: readonly KeyValue[];
  readonly droppedAttributesCount: number;
  readonly events: readonly OtlpSpanEvent[];
  readonly droppedEventsCount: number;
  readonly links: readonly OtlpSpanLink[];
  readonly droppedLinksCount: number;
  readonly status: OtlpStatus | null;
}

/** OTLP's Span.Event. */
export interface OtlpSpanEvent {
  readonly timeUnixNano: bigint;
  readonly name: string;
  readonly attributes: readonly KeyValue[];
  readonly droppedAttributesCount: number;
}

/** OTLP's Span.Link. */
export interface OtlpSpanLink {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceState: string;
  readonly attributes: readonly KeyValue[];
  readonly droppedAttributesCount: number;
  readonly flags: number;
}

/** OTLP's Status: 0 unset, 1 ok, 2 error. */
export interface OtlpStatus {
  readonly code: number;
  readonly message: string;
}

/** OTLP's LogRecord. */
export interface OtlpLogRecord {
  readonly timeUnixNano: bigint;
  readonly observedTimeUnixNano: bigint;
  readonly severityNumber: number;
  readonly severityText: string;
  readonly body: AnyValue;
  readonly attributes: readonly KeyValue[];
  readonly droppedAttributesCount: number;
  readonly flags: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly eventName: string;
}

/** Records of one scope. */
export interface ScopeGroup<T> {
  readonly scope: OtlpScope;
  readonly schemaUrl: string;
  readonly records: readonly T[];
}

/** Records of one resource. */
export interface ResourceGroup<T> {
  readonly resource: OtlpResource;
  readonly schemaUrl: string;
  readonly scopes: readonly ScopeGroup<T>[];
}

/** The body of POST /v1/traces. */
export interface TracesRequest {
  readonly signal: 'traces';
  readonly resources: readonly ResourceGroup<OtlpSpan>[];
}

/** The body of POST /v1/logs. */
export interface LogsRequest {
  readonly signal: 'logs';
  readonly resources: readonly ResourceGroup<OtlpLogRecord>[];
}

/** Either body. */
export type ExportRequest = TracesRequest | LogsRequest;

/** OTLP's AnyValue: `bigint` is its int, `number` its double, `null` no value at all. */
export type AnyValue = null | string | boolean | bigint | number | Uint8Array | readonly AnyValue[] | KeyValueList;

/** OTLP's KeyValueList; keys may repeat on the wire, the last one counts. */
export interface KeyValueList {
  readonly entries: readonly KeyValue[];
}

/** OTLP's KeyValue. */
export interface KeyValue {
  readonly key: string;
  readonly value: AnyValue;
}
