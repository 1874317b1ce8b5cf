import { type Attributes as OtelAttributes, SpanKind, type SpanStatus, SpanStatusCode } from '@opentelemetry/api';
import type { SpanId, TraceId } from '../../record/ids.js';
import type { SpanEvents } from './event-buffer.js';
import { MappedSpan } from './mapped-span.js';
import type { MissingParent } from './missing-parents.js';
import type { MappedResource } from './resource-map.js';

/** What else is known of a span that never came. */
export interface MissingSpanSource {
  /** The invocation that it is put under; `null` where none is known. */
  readonly invocationSpanId: SpanId | null;
  readonly isCanceled: boolean;
  readonly resource: MappedResource;
  readonly events: SpanEvents;
}

/** A span in the place of one that never came, so that its children do not hang in the air. */
export function missingSpan(traceId: TraceId, missing: MissingParent, source: MissingSpanSource): MappedSpan {
  const attributes: OtelAttributes = { 'run_bridge.synthetic': true };
  if (missing.phase !== undefined) attributes.phase = missing.phase;
  else if (missing.uniqueId !== undefined) attributes.unique_id = missing.uniqueId;
  if (source.isCanceled) attributes['error.type'] = 'canceled';
  const canceled: SpanStatus = { code: SpanStatusCode.ERROR, message: 'canceled' };
  const phase = missing.phase?.replace(/^EXECUTION_PHASE_/, '');
  return new MappedSpan({
    traceId,
    spanId: missing.spanId,
    parentSpanId: source.invocationSpanId,
    name: phase === undefined ? 'missing span' : `Phase: ${phase}`,
    kind: SpanKind.INTERNAL,
    startTimeUnixNano: missing.startTimeUnixNano,
    endTimeUnixNano: missing.endTimeUnixNano,
    status: source.isCanceled ? canceled : { code: SpanStatusCode.UNSET },
    attributes,
    links: [],
    events: source.events.events.map((waiting) => waiting.event),
    droppedEventsCount: source.events.droppedCount,
    resource: source.resource.resource,
    instrumentationScope: source.resource.scope,
  });
}
