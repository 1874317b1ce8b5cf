import { randomBytes } from 'node:crypto';
import { parseSpanId, parseTraceId, type SpanId, type TraceId } from '../record/ids.js';
import type { TraceContext } from './trace-context.js';

/** Where a wrapped command stands in a trace. */
export interface PlaceInTrace {
  /** What the engine's roots are below; `null` where they are roots. */
  readonly parent: TraceContext | null;
  /** The command's own span, where there is to be one. */
  readonly span: { readonly traceId: TraceId; readonly spanId: SpanId; readonly parentSpanId: SpanId | null } | null;
}

/**
 * Below the caller's span, and, where the command is to have a span, below that one, in the caller's trace or a new one.
 * @param caller `null` where the caller names no trace
 */
export function placeInTrace(caller: TraceContext | null, isSpanWanted: boolean): PlaceInTrace {
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
