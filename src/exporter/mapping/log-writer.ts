import { type Attributes, TraceFlags } from '@opentelemetry/api';
import { LineAttributes } from '../lines/line-attributes.js';
import type { LineReader } from '../lines/line-reader.js';
import { CELL } from '../lines/line-scanner.js';
import type { Redactor } from '../redaction/redactor.js';
import { encodeAttributes, encodeValue } from '../wire/encode-attributes.js';
import { LOG, optionalText } from '../wire/encode-log.js';
import { EVENT, RECORD } from '../wire/encode-span.js';
import { WireWriter } from '../wire/wire-writer.js';
import { shortEventType } from './event-types.js';
import type { MappingSwitches } from './mapping-switches.js';
import { writeStatement } from './query-attributes.js';

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
