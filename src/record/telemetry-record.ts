import type { Attributes, JsonObject } from './attributes.js';

/** Nanoseconds since the Unix epoch. They exceed 2^53, so they never pass through `number`. */
export type UnixNano = bigint;

const DIGITS = /^\d{1,20}$/;
/** The largest time that OTLP's fixed64 and Parquet's INT64 can both carry. */
const MAX_UNIX_NANO = 2n ** 63n - 1n;

/** Reads a string of digits; `undefined` when it is none or beyond int64. */
export function parseUnixNano(text: string): UnixNano | undefined {
  if (!DIGITS.test(text)) return undefined;
  const value = BigInt(text);
  return value <= MAX_UNIX_NANO ? value : undefined;
}

/** The same moment in whole milliseconds, cut off. */
export function toUnixMs(time: UnixNano): number {
  return Number(time / 1_000_000n);
}

/** 32 lowercase hexadecimal characters, not all zero. */
export type TraceId = string & { readonly __brand: 'TraceId' };

/** 16 lowercase hexadecimal characters, not all zero. */
export type SpanId = string & { readonly __brand: 'SpanId' };

const TRACE_ID = /^(?!0{32}$)[0-9a-f]{32}$/;
const SPAN_ID = /^(?!0{16}$)[0-9a-f]{16}$/;

/** Reads a trace id; hexadecimal in either case and an invocation id with hyphens are taken. `undefined` when it is none. */
export function parseTraceId(text: string): TraceId | undefined {
  const hex = text.length === 36 ? text.replaceAll('-', '').toLowerCase() : text.toLowerCase();
  return TRACE_ID.test(hex) ? (hex as TraceId) : undefined;
}

/** Reads a span id; hexadecimal in either case is taken. `undefined` when it is none. */
export function parseSpanId(text: string): SpanId | undefined {
  const hex = text.toLowerCase();
  return SPAN_ID.test(hex) ? (hex as SpanId) : undefined;
}

/** The span id of a number from a Parquet file; `undefined` for zero. */
export function spanIdFromUint64(value: bigint): SpanId | undefined {
  return parseSpanId(BigInt.asUintN(64, value).toString(16).padStart(16, '0'));
}

/** The invocation id: the trace id in the UUID's notation. */
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
