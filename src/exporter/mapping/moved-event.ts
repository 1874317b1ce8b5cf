import type { SpanId } from '../../record/ids.js';
import type { SpanEvents } from './event-buffer.js';

/** An event that stands on another span than it happened in. */
export function movedEvent(event: SpanEvents['events'][number]['event'], spanId: SpanId): typeof event {
  return { ...event, attributes: { ...event.attributes, 'run_bridge.event.span_id': spanId } };
}
