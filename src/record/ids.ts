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
