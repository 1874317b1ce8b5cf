import type { TimedEvent } from '@opentelemetry/sdk-trace-base';
import type { SpanId } from '../../record/ids.js';
import type { UnixNano } from '../../record/unix-nano.js';
import { spanIdOf } from './id-halves.js';

/** An event that waits for its span to end. */
export interface WaitingEvent {
  readonly event: TimedEvent;
  readonly timeUnixNano: UnixNano;
}

/** A span's events, in order of time, and how many there was no room for. */
export interface SpanEvents {
  readonly events: readonly WaitingEvent[];
  readonly droppedCount: number;
}

/** What `EventBuffer.take` gives for a span without any. */
export const NO_EVENTS: SpanEvents = { events: [], droppedCount: 0 };

/** Events that wait for their spans. Bounded by span and over all; what does not fit is counted as dropped. */
export class EventBuffer {
  private readonly bySpan = new Map<SpanId, { events: WaitingEvent[]; droppedCount: number }>();
  private waitingCount = 0;

  constructor(
    private readonly maxEventsPerSpan: number,
    private readonly maxWaitingEvents: number,
  ) {}

  add(spanId: SpanId, event: WaitingEvent): void {
    let waiting = this.bySpan.get(spanId);
    if (waiting === undefined) {
      if (this.waitingCount >= this.maxWaitingEvents) return;
      waiting = { events: [], droppedCount: 0 };
      this.bySpan.set(spanId, waiting);
    }
    if (waiting.events.length >= this.maxEventsPerSpan || this.waitingCount >= this.maxWaitingEvents) {
      waiting.droppedCount++;
      return;
    }
    waiting.events.push(event);
    this.waitingCount++;
  }

  /** The same events, to be taken out there alone. */
  copy(): EventBuffer {
    const copy = new EventBuffer(this.maxEventsPerSpan, this.maxWaitingEvents);
    for (const [spanId, { events, droppedCount }] of this.bySpan) {
      copy.bySpan.set(spanId, { events: [...events], droppedCount });
    }
    copy.waitingCount = this.waitingCount;
    return copy;
  }

  /** Takes a span's events out. */
  take(spanId: SpanId): SpanEvents {
    const waiting = this.bySpan.get(spanId);
    if (waiting === undefined) return NO_EVENTS;
    this.bySpan.delete(spanId);
    this.waitingCount -= waiting.events.length;
    return waiting;
  }

  /** Takes out the events of a span whose id is given as two halves. */
  takeHalves(high: number, low: number): SpanEvents {
    return this.bySpan.size === 0 ? NO_EVENTS : this.take(spanIdOf(high, low));
  }

  /** Spans that events wait for. */
  waitingSpans(): readonly SpanId[] {
    return [...this.bySpan.keys()];
  }
}
