import { type Attributes, type SpanStatus, TraceFlags } from '@opentelemetry/api';
import type { TimedEvent } from '@opentelemetry/sdk-trace-base';
import { FIXED32, FIXED64, LENGTH, tagOf, VARINT } from '../../otlp/wire-type.js';
import { encodeAttributes, type WireWriter } from './wire-writer.js';

/** Tag of a span in its ScopeSpans, and of a log record in its ScopeLogs. */
export const RECORD = tagOf(2, LENGTH);

/** Tags of OTLP's Span (opentelemetry/proto/trace/v1/trace.proto). */
export const SPAN = {
  traceId: tagOf(1, LENGTH),
  spanId: tagOf(2, LENGTH),
  parentSpanId: tagOf(4, LENGTH),
  name: tagOf(5, LENGTH),
  kind: tagOf(6, VARINT),
  startTime: tagOf(7, FIXED64),
  endTime: tagOf(8, FIXED64),
  attributes: tagOf(9, LENGTH),
  droppedAttributesCount: tagOf(10, VARINT),
  events: tagOf(11, LENGTH),
  droppedEventsCount: tagOf(12, VARINT),
  links: tagOf(13, LENGTH),
  droppedLinksCount: tagOf(14, VARINT),
  status: tagOf(15, LENGTH),
  flags: tagOf(16, FIXED32),
} as const;

/** A span's events, in order of time, and how many there was no room for. */
export interface SpanEvents {
  /** Each as it stands in its span, tag and length included: a text with one byte in each character. */
  readonly events: readonly string[];
  readonly droppedCount: number;
}

/** Of a span without any. */
export const NO_EVENTS: SpanEvents = { events: [], droppedCount: 0 };

/** Tags of a span's event, and of its fields. */
export const EVENT = {
  message: SPAN.events,
  time: tagOf(1, FIXED64),
  name: tagOf(2, LENGTH),
  attributes: tagOf(3, LENGTH),
  droppedAttributesCount: tagOf(4, VARINT),
} as const;

/** Tags of a link beside those that it shares with a span. */
export const LINK = {
  attributes: tagOf(4, LENGTH),
  droppedAttributesCount: tagOf(5, VARINT),
  flags: tagOf(6, FIXED32),
} as const;

const STATUS_MESSAGE = tagOf(2, LENGTH);
const STATUS_CODE = tagOf(3, VARINT);
/** SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK of trace.proto: it is known that no span of a run is remote. */
const KNOWS_IS_REMOTE = 0x100;
/** Flags of every span of a run, and of links to them. */
export const SAMPLED_FLAGS = TraceFlags.SAMPLED | KNOWS_IS_REMOTE;

/** Writes what comes last of a span. */
export function encodeSpanEnd(out: WireWriter, status: SpanStatus): void {
  out.tag(SPAN.status);
  encodeStatus(out, status);
  out.tag(SPAN.flags);
  out.fixed32(SAMPLED_FLAGS);
}

/** Writes an event, its tag and length included. */
export function encodeEvent(out: WireWriter, event: TimedEvent): void {
  out.tag(EVENT.message);
  const start = out.open();
  out.tag(EVENT.time);
  out.time(event.time[0], event.time[1]);
  out.tag(EVENT.name);
  out.text(event.name);
  if (event.attributes !== undefined) encodeAttributes(out, EVENT.attributes, event.attributes);
  out.tag(EVENT.droppedAttributesCount);
  out.varint(event.droppedAttributesCount ?? 0);
  out.close(start);
}

/** Writes a link to a span of a run, its tag and length included. */
export function encodeLink(out: WireWriter, traceId: string, spanId: string, attributes: Attributes): void {
  out.tag(SPAN.links);
  const start = out.open();
  out.tag(SPAN.traceId);
  out.hex(traceId);
  out.tag(SPAN.spanId);
  out.hex(spanId);
  encodeAttributes(out, LINK.attributes, attributes);
  out.tag(LINK.droppedAttributesCount);
  out.varint(0);
  out.tag(LINK.flags);
  out.fixed32(SAMPLED_FLAGS);
  out.close(start);
}

function encodeStatus(out: WireWriter, status: SpanStatus): void {
  const start = out.open();
  if (status.message !== undefined && status.message !== '') {
    out.tag(STATUS_MESSAGE);
    out.text(status.message);
  }
  out.tag(STATUS_CODE);
  out.varint(status.code);
  out.close(start);
}

/** Tags of OTLP's LogRecord (opentelemetry/proto/logs/v1/logs.proto). */
export const LOG = {
  time: tagOf(1, FIXED64),
  severityNumber: tagOf(2, VARINT),
  severityText: tagOf(3, LENGTH),
  body: tagOf(5, LENGTH),
  attributes: tagOf(6, LENGTH),
  droppedAttributesCount: tagOf(7, VARINT),
  flags: tagOf(8, FIXED32),
  traceId: tagOf(9, LENGTH),
  spanId: tagOf(10, LENGTH),
  observedTime: tagOf(11, FIXED64),
  eventName: tagOf(12, LENGTH),
} as const;

/** Writes a text unless it is empty. */
export function optionalText(out: WireWriter, tag: number, text: string | undefined): void {
  if (text === undefined || text === '') return;
  out.tag(tag);
  out.text(text);
}
