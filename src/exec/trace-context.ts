import { randomBytes } from 'node:crypto';
import { parseSpanId, parseTraceId, type SpanId, type TraceId } from '../record/telemetry-record.js';

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

/** Where a wrapped command stands in a trace. */
export interface TracePosition {
  /** What the engine's roots are below; `null` where they are roots. */
  readonly parent: TraceContext | null;
  /** The command's own span, where there is to be one. */
  readonly span: { readonly traceId: TraceId; readonly spanId: SpanId; readonly parentSpanId: SpanId | null } | null;
}

/**
 * Below the caller's span, and, where the command is to have a span, below that one, in the caller's trace or a new one.
 * @param caller `null` where the caller names no trace
 */
export function tracePosition(caller: TraceContext | null, isSpanWanted: boolean): TracePosition {
  if (!isSpanWanted) return { parent: caller, span: null };
  const traceId = caller?.traceId ?? newTraceId();
  const spanId = newSpanId();
  return {
    parent: { traceId, parentSpanId: spanId, flags: caller?.flags ?? '01' },
    span: { traceId, spanId, parentSpanId: caller?.parentSpanId ?? null },
  };
}

function newTraceId(): TraceId {
  return parseTraceId(randomBytes(16).toString('hex')) ?? newTraceId();
}

function newSpanId(): SpanId {
  return parseSpanId(randomBytes(8).toString('hex')) ?? newSpanId();
}
