import { encodeAttribute } from '../wire/encode-attributes.js';
import { EVENT, NO_EVENTS, type SpanEvents } from '../wire/encode-span.js';
import { WireWriter } from '../wire/wire-writer.js';
import { type IdHalves, spanIdOf } from './id-halves.js';
import { SpanIdMap } from './span-id-map.js';

/**
 * Events that wait for their spans, in OTLP's protobuf. Each is a text, see `SpanEvents`: in memory of its own, where a stretch
 * of a larger block of bytes would keep all of that. Bounded by span and over all; what does not fit is
 * counted as dropped.
 */
export class EventBuffer {
  private readonly bySpan = new SpanIdMap<{ events: string[]; droppedCount: number }>();
  private waitingCount = 0;

  constructor(
    private readonly maxEventsPerSpan: number,
    private readonly maxWaitingEvents: number,
  ) {}

  add(high: number, low: number, event: string): void {
    let waiting = this.bySpan.get(high, low);
    if (waiting === undefined) {
      if (this.waitingCount >= this.maxWaitingEvents) return;
      waiting = { events: [], droppedCount: 0 };
      this.bySpan.add(high, low, waiting);
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
    for (const [[high, low], { events, droppedCount }] of this.bySpan) {
      copy.bySpan.add(high, low, { events: [...events], droppedCount });
    }
    copy.waitingCount = this.waitingCount;
    return copy;
  }

  /** Takes a span's events out. */
  take(high: number, low: number): SpanEvents {
    const waiting = this.bySpan.size === 0 ? undefined : this.bySpan.get(high, low);
    if (waiting === undefined) return NO_EVENTS;
    this.bySpan.delete(high, low);
    this.waitingCount -= waiting.events.length;
    return waiting;
  }

  /** Spans that events wait for. */
  waitingSpans(): readonly IdHalves[] {
    return Array.from(this.bySpan, ([id]) => id);
  }
}

/** When an event happened, in nanoseconds: the first of its fields. */
export function eventTimeOf(event: string): bigint {
  const at = bodyStartOf(event) + 1;
  return Buffer.from(event.slice(at, at + 8), 'latin1').readBigUInt64LE(0);
}

/** An event that stands on another span than it happened in. @param span the one in which it happened */
export function movedEvent(event: string, span: IdHalves): string {
  const body = event.slice(bodyStartOf(event), -TAIL_BYTES);
  const wasMoved = body.startsWith(SPAN_ID_HEAD, body.length - SPAN_ID_HEAD.length - SPAN_ID_DIGITS);
  const own = wasMoved ? body.slice(0, -SPAN_ID_HEAD.length - SPAN_ID_DIGITS) : body;
  const moved = own + SPAN_ID_HEAD + spanIdOf(span[0], span[1]) + event.slice(-TAIL_BYTES);
  const head = new WireWriter(8);
  head.tag(EVENT.message);
  head.varint(moved.length);
  return head.bytes.toString('latin1', 0, head.length) + moved;
}

/** Where its fields begin, behind its tag and length. */
function bodyStartOf(event: string): number {
  let at = 1;
  while (event.charCodeAt(at) >= 0x80) at++;
  return at + 1;
}

/** The number of dropped attributes, which ends each event. */
const TAIL_BYTES = 2;
const SPAN_ID_DIGITS = 16;
/** The attribute that names the span, up to the id. */
const SPAN_ID_HEAD = spanIdHead();

function spanIdHead(): string {
  const out = new WireWriter(64);
  encodeAttribute(out, EVENT.attributes, 'run_bridge.event.span_id', '0'.repeat(SPAN_ID_DIGITS));
  return out.bytes.toString('latin1', 0, out.length - SPAN_ID_DIGITS);
}
