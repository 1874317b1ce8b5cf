import type { Attributes, JsonObject } from './attributes.js';

/** Nanoseconds since the Unix epoch; they exceed 2^53, so they never pass through `number`. */
export type UnixNano = bigint;

const DIGITS = /^\d{1,20}$/;
/** The latest time that both OTLP's fixed64 and Parquet's INT64 can represent. */
const MAX_UNIX_NANO = 2n ** 63n - 1n;

/** Parses a string of decimal digits; `undefined` if it is not one or exceeds int64. */
export function parseUnixNano(text: string): UnixNano | undefined {
  if (!DIGITS.test(text)) return undefined;
  const value = BigInt(text);
  return value <= MAX_UNIX_NANO ? value : undefined;
}

/** Converts a time to milliseconds, rounded down. */
export function toUnixMs(time: UnixNano): number {
  return Number(time / 1_000_000n);
}

/** A trace id: 32 lowercase hexadecimal characters, not all zero. */
export type TraceId = string & { readonly __brand: 'TraceId' };

/** A span id: 16 lowercase hexadecimal characters, not all zero. */
export type SpanId = string & { readonly __brand: 'SpanId' };

const TRACE_ID = /^(?!0{32}$)[0-9a-f]{32}$/;
const SPAN_ID = /^(?!0{16}$)[0-9a-f]{16}$/;

/** Parses a trace id in hexadecimal of either case, or an invocation id with hyphens; `undefined` if it is not valid. */
export function parseTraceId(text: string): TraceId | undefined {
  const hex = text.length === 36 ? text.replaceAll('-', '').toLowerCase() : text.toLowerCase();
  return TRACE_ID.test(hex) ? (hex as TraceId) : undefined;
}

/** Parses a span id in hexadecimal of either case; `undefined` if it is not valid. */
export function parseSpanId(text: string): SpanId | undefined {
  const hex = text.toLowerCase();
  return SPAN_ID.test(hex) ? (hex as SpanId) : undefined;
}

/** Returns the span id of a number from a Parquet file; `undefined` for zero. */
export function spanIdFromUint64(value: bigint): SpanId | undefined {
  return parseSpanId(BigInt.asUintN(64, value).toString(16).padStart(16, '0'));
}

/** Returns the invocation id: the trace id in the notation of UUIDs. */
export function invocationIdOf(traceId: TraceId): string {
  return [
    traceId.slice(0, 8),
    traceId.slice(8, 12),
    traceId.slice(12, 16),
    traceId.slice(16, 20),
    traceId.slice(20),
  ].join('-');
}

/** A link from a span to another span. */
export interface SpanLink {
  readonly traceId: TraceId;
  readonly spanId: SpanId;
  readonly attributes: Attributes;
}

/** A span's status as the engine writes it: code 1 is ok, 2 is an error; an unset status is `null` on the record. */
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
  /** Keys of the envelope that the schema does not know; they are written after the known ones. */
  readonly unknownFields?: JsonObject;
  /** The JSONL text from which the record was read, without the line break; it is written again unchanged. */
  readonly line?: string;
}

/** The start of a span. */
export interface SpanStart extends Envelope {
  readonly recordType: 'SpanStart';
  readonly spanId: SpanId;
  readonly spanName: string;
  readonly parentSpanId: SpanId | null;
  readonly links: readonly SpanLink[] | null;
  readonly startTimeUnixNano: UnixNano;
}

/** The end of a span, which repeats its start with more attributes. */
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

/** An event at one point in time, usually inside of a span. */
export interface LogRecord extends Envelope {
  readonly recordType: 'LogRecord';
  readonly spanId: SpanId | null;
  readonly spanName: string | null;
  /** A UUID; `null` if the record came over OTLP, which does not carry it. */
  readonly eventId: string | null;
  readonly timeUnixNano: UnixNano;
  readonly body: string;
}

/** A record of a run's telemetry: the envelope of `docs/reference/records.md`. */
export type TelemetryRecord = SpanStart | SpanEnd | LogRecord;
