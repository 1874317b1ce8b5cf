import { type Attributes, TraceFlags } from '@opentelemetry/api';
import type { MappingSwitches } from '../../config/mapping-options.js';
import type { Redactor } from '../../redaction/redactor.js';
import { LineAttributes } from '../lines/line-intake.js';
import type { LineReader } from '../lines/line-reader.js';
import { CELL } from '../lines/line-scanner.js';
import {
  EVENT,
  encodeAttribute,
  encodeAttributes,
  encodeValue,
  LOG,
  NO_EVENTS,
  optionalText,
  RECORD,
  type SpanEvents,
  WireWriter,
} from '../wire/wire-writer.js';
import { shortEventType } from './event-types.js';
import { type IdHalves, SpanIdMap, spanIdOf } from './span-tree.js';
import { writeStatement } from './span-writer.js';

/**
 * Writes log records as OTLP's bytes, of the bytes of their lines: as events of their spans, and as log records. What both
 * have in common is made once: `read` comes first.
 */
export class LogWriter {
  private readonly attributes: LineAttributes;
  /** The event of the line that was read last. */
  private readonly event = new WireWriter(4096);
  /** Where the attributes that the log record has, too, begin and end in it. */
  private from = 0;
  private to = 0;
  /** Those where two of the line, or of the event, might have one name. */
  private together: Attributes | undefined;
  private body = '';

  constructor(
    switches: MappingSwitches,
    private readonly redactor: Redactor,
  ) {
    this.attributes = new LineAttributes(switches, redactor);
  }

  /** @throws SyntaxError when the line turns out to be damaged */
  read(line: LineReader): void {
    const { event: out, redactor } = this;
    this.body = redactor.text(line.body);
    const own: Attributes = {
      ...(this.body === '' ? {} : { body: this.body }),
      severity_text: line.textIn(CELL.severityText),
      severity_number: line.severityNumber,
    };
    out.length = 0;
    out.tag(EVENT.message);
    const start = out.open();
    out.tag(EVENT.time);
    out.time(line.startSeconds, line.startNanos);
    out.tag(EVENT.name);
    out.text(shortEventType(line.eventType));
    const begin = out.length;
    encodeAttributes(out, EVENT.attributes, own);
    const from = out.length;
    const added = this.attributes.write(out, EVENT.attributes, line, false);
    writeStatement(line, added, redactor, undefined, false);
    this.together = 'event_type' in added ? added : undefined;
    if (this.together !== undefined) out.length = begin;
    encodeAttributes(out, EVENT.attributes, this.together === undefined ? added : { ...own, ...added });
    const byteCount = out.length - from;
    out.tag(EVENT.droppedAttributesCount);
    out.varint(0);
    out.close(start);
    // Closing moves what is in it where the length takes more than one byte.
    this.to = out.length - EVENT_TAIL_BYTES;
    this.from = this.to - byteCount;
  }

  /** The event, as `EventBuffer` keeps it. */
  eventText(): string {
    return this.event.bytes.toString('latin1', 0, this.event.length);
  }

  /** Writes the log record, its tag and length included. @param line the one that was read */
  write(out: WireWriter, line: LineReader): void {
    out.tag(RECORD);
    const start = out.open();
    out.tag(LOG.time);
    out.time(line.startSeconds, line.startNanos);
    if (line.severityNumber !== 0) {
      out.tag(LOG.severityNumber);
      out.int64(line.severityNumber);
    }
    optionalText(out, LOG.severityText, line.textIn(CELL.severityText));
    out.tag(LOG.body);
    encodeValue(out, this.body);
    if (this.together === undefined) this.copyAttributes(out);
    else encodeAttributes(out, LOG.attributes, this.together);
    out.tag(LOG.droppedAttributesCount);
    out.varint(0);
    if (line.spanHigh !== 0 || line.spanLow !== 0) {
      out.tag(LOG.flags);
      out.fixed32(TraceFlags.SAMPLED);
      out.tag(LOG.traceId);
      out.hexBytes(line.bytes, line.start + line.traceIdStart, TRACE_ID_DIGITS);
      out.tag(LOG.spanId);
      out.id(line.spanHigh, line.spanLow);
    }
    out.tag(LOG.observedTime);
    out.time(line.startSeconds, line.startNanos);
    optionalText(out, LOG.eventName, line.eventType);
    out.close(start);
  }

  /** Copies the event's attributes; only their tags differ. */
  private copyAttributes(out: WireWriter): void {
    const { event, from, to } = this;
    let at = out.length;
    out.copy(event.bytes, from, to);
    const { bytes, length } = out;
    while (at < length) {
      bytes[at++] = LOG.attributes;
      let byteCount = 0;
      let shift = 0;
      for (; (bytes[at] as number) > 0x7f; shift += 7) byteCount |= ((bytes[at++] as number) & 0x7f) << shift;
      byteCount |= (bytes[at++] as number) << shift;
      at += byteCount;
    }
  }
}

/** The number of dropped attributes, which ends each event. */
const EVENT_TAIL_BYTES = 2;
const TRACE_ID_DIGITS = 32;

/**
 * Events that wait for their spans, in OTLP's protobuf. Each is a text, see `SpanEvents`: in memory of its own, where a range
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
