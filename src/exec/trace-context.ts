import { parseSpanId, parseTraceId, type SpanId, type TraceId } from '../record/ids.js';

/** The span that a caller is in, as `TRACEPARENT` names it. */
export interface TraceContext {
  readonly traceId: TraceId;
  readonly parentSpanId: SpanId;
  /** Two hexadecimal digits; bit 0 says that the caller keeps the trace. */
  readonly flags: string;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * Reads a `traceparent` as W3C Trace Context has it (https://www.w3.org/TR/trace-context/#traceparent-header): version 00
 * has four fields, later ones may have more, ff is none; ids are lower case and not all zero. `undefined` when it is none.
 */
export function parseTraceparent(text: string): TraceContext | undefined {
  const [, version, trace = '', parent = '', flags = '', rest] = TRACEPARENT.exec(text.trim()) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  const traceId = parseTraceId(trace);
  const parentSpanId = parseSpanId(parent);
  return traceId === undefined || parentSpanId === undefined ? undefined : { traceId, parentSpanId, flags };
}

/** The `traceparent` of a context. */
export function formatTraceparent({ traceId, parentSpanId, flags }: TraceContext): string {
  return `00-${traceId}-${parentSpanId}-${flags}`;
}
