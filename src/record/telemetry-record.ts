import type { Attributes, JsonObject } from './attributes.js';
import type { SpanId, TraceId } from './ids.js';
import type { UnixNano } from './unix-nano.js';

/** A link from a span to another span. */
export interface SpanLink {
  readonly traceId: TraceId;
  readonly spanId: SpanId;
  readonly attributes: Attributes;
}

/** A span's status as the engine writes it: 1 ok, 2 error; unset is `null` on the record. */
export interface SpanStatus {
  readonly message: string | null;
  readonly code: number;
}

interface Envelope {
  readonly traceId: TraceId;
  readonly severityNumber: number;
  readonly severityText: string;
  /** Full name of the protobuf message, for example `v1.public.events.fusion.node.NodeProcessed`. */
  readonly eventType: string;
  readonly attributes: Attributes;
  /** Keys of the envelope that the schema does not know, kept and written after the known ones. */
  readonly unknownFields?: JsonObject;
  /** The record's own JSONL text, without the line break, when it was read from one; written again as it is. */
  readonly line?: string;
}

/** A span has begun. */
export interface SpanStart extends Envelope {
  readonly recordType: 'SpanStart';
  readonly spanId: SpanId;
  readonly spanName: string;
  readonly parentSpanId: SpanId | null;
  readonly links: readonly SpanLink[] | null;
  readonly startTimeUnixNano: UnixNano;
}

/** A span has ended; repeats its start with more attributes. */
export interface SpanEnd extends Envelope {
  readonly recordType: 'SpanEnd';
  readonly spanId: SpanId;
  readonly spanName: string;
  readonly parentSpanId: SpanId | null;
  readonly links: readonly SpanLink[] | null;
  readonly startTimeUnixNano: UnixNano;
  readonly endTimeUnixNano: UnixNano;
  readonly status: SpanStatus | null;
}

/** Something happened at one point in time, usually inside a span. */
export interface LogRecord extends Envelope {
  readonly recordType: 'LogRecord';
  readonly spanId: SpanId | null;
  readonly spanName: string | null;
  /** A UUID; `null` where the record came over OTLP, which does not carry it. */
  readonly eventId: string | null;
  readonly timeUnixNano: UnixNano;
  readonly body: string;
}

/** One record of a run's telemetry: the envelope of `docs/reference/records.md`. */
export type TelemetryRecord = SpanStart | SpanEnd | LogRecord;
