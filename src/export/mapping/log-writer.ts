import { type Attributes, TraceFlags } from '@opentelemetry/api';
import type { MappingSwitches } from '../../config/mapping-options.js';
import { spanIdOf } from '../../record/span-id-table.js';
import type { Redactor } from '../../redaction/redactor.js';
import {
  EVENT,
  encodeAttribute,
  encodeAttributes,
  encodeValue,
  LOG,
  optionalText,
  RECORD,
  WireWriter,
} from '../wire/wire-writer.js';
import { shortEventType } from './event-types.js';
import type { PlainRecord } from './mapped-record.js';
import type { IdHalves } from './span-tree.js';
import { attributesOf, writeStatement } from './span-writer.js';

/**
 * Writes log records of any look as OTLP's bytes, as events of their spans and as log records: this says what is right. What both
 * have in common is made once: `read` comes first.
 */
export class LogWriter {
  private readonly event = new WireWriter(4096);
  private attributes: Attributes = {};
  private body = '';

  constructor(
    private readonly switches: MappingSwitches,
    private readonly redactor: Redactor,
  ) {}

  /** @throws SyntaxError when the record turns out to be damaged */
  read(record: PlainRecord): void {
    const { redactor } = this;
    this.body = redactor.text(record.body);
    this.attributes = attributesOf(record, this.switches, redactor);
    writeStatement(record, this.attributes, redactor, undefined, false);
  }

  /** The event, as `EventBuffer.addText` takes it. */
  eventText(record: PlainRecord): string {
    const { event: out } = this;
    out.length = 0;
    out.tag(EVENT.message);
    const start = out.open();
    out.tag(EVENT.time);
    out.time(record.startSeconds, record.startNanos);
    out.tag(EVENT.name);
    out.text(shortEventType(record.eventType));
    encodeAttributes(out, EVENT.attributes, {
      ...(this.body === '' ? {} : { body: this.body }),
      severity_text: record.severityText,
      severity_number: record.severityNumber,
      ...this.attributes,
    });
    out.tag(EVENT.droppedAttributesCount);
    out.varint(0);
    out.close(start);
    return out.bytes.toString('latin1', 0, out.length);
  }

  /** Writes the log record, its tag and length included. @param record the one that was read */
  write(out: WireWriter, record: PlainRecord): void {
    out.tag(RECORD);
    const start = out.open();
    out.tag(LOG.time);
    out.time(record.startSeconds, record.startNanos);
    if (record.severityNumber !== 0) {
      out.tag(LOG.severityNumber);
      out.int64(record.severityNumber);
    }
    optionalText(out, LOG.severityText, record.severityText);
    out.tag(LOG.body);
    encodeValue(out, this.body);
    encodeAttributes(out, LOG.attributes, this.attributes);
    out.tag(LOG.droppedAttributesCount);
    out.varint(0);
    if (record.spanHigh !== 0 || record.spanLow !== 0) {
      out.tag(LOG.flags);
      out.fixed32(TraceFlags.SAMPLED);
      out.tag(LOG.traceId);
      out.hex(record.traceId);
      out.tag(LOG.spanId);
      out.id(record.spanHigh, record.spanLow);
    }
    out.tag(LOG.observedTime);
    out.time(record.startSeconds, record.startNanos);
    optionalText(out, LOG.eventName, record.eventType);
    out.close(start);
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
