import { type Link, type SpanContext, type SpanStatus, TraceFlags } from '@opentelemetry/api';
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import type { ReadableSpan, TimedEvent } from '@opentelemetry/sdk-trace-base';
import { FIXED32, FIXED64, LENGTH, tagOf, VARINT } from '../../otlp/wire-type.js';
import { encodeAttributes, encodeValue, type WireWriter } from './wire-writer.js';

/** Tag of a span in its ScopeSpans, and of a log record in its ScopeLogs. */
export const RECORD = tagOf(2, LENGTH);

/** Tags of OTLP's Span (opentelemetry/proto/trace/v1/trace.proto). */
export const SPAN = {
  traceId: tagOf(1, LENGTH),
  spanId: tagOf(2, LENGTH),
  traceState: tagOf(3, LENGTH),
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
/** SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK and SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK of trace.proto. */
const KNOWS_IS_REMOTE = 0x100;
const IS_REMOTE = 0x200;

/** Writes a span as it stands in a ScopeSpans, its tag and length included: the same bytes as OpenTelemetry's serialiser. */
export function encodeSpan(out: WireWriter, span: ReadableSpan): void {
  const context = span.spanContext();
  const parent = span.parentSpanContext;
  out.tag(RECORD);
  const start = out.open();
  out.tag(SPAN.traceId);
  out.hex(context.traceId);
  out.tag(SPAN.spanId);
  out.hex(context.spanId);
  encodeTraceState(out, context);
  if (parent?.spanId) {
    out.tag(SPAN.parentSpanId);
    out.hex(parent.spanId);
  }
  out.tag(SPAN.name);
  out.text(span.name);
  out.tag(SPAN.kind);
  out.varint(span.kind + 1);
  out.tag(SPAN.startTime);
  out.time(span.startTime[0], span.startTime[1]);
  out.tag(SPAN.endTime);
  out.time(span.endTime[0], span.endTime[1]);
  encodeAttributes(out, SPAN.attributes, span.attributes);
  out.tag(SPAN.droppedAttributesCount);
  out.varint(span.droppedAttributesCount);
  for (const event of span.events) encodeEvent(out, event);
  out.tag(SPAN.droppedEventsCount);
  out.varint(span.droppedEventsCount);
  for (const link of span.links) encodeLink(out, link);
  out.tag(SPAN.droppedLinksCount);
  out.varint(span.droppedLinksCount);
  encodeSpanEnd(out, span.status, flagsOf(context.traceFlags, parent?.isRemote));
  out.close(start);
}

/** Writes what comes last of a span. */
export function encodeSpanEnd(out: WireWriter, status: SpanStatus, flags = SAMPLED_FLAGS): void {
  out.tag(SPAN.status);
  encodeStatus(out, status);
  out.tag(SPAN.flags);
  out.fixed32(flags);
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

/** Writes a link, its tag and length included. */
export function encodeLink(out: WireWriter, link: Link): void {
  out.tag(SPAN.links);
  const start = out.open();
  out.tag(SPAN.traceId);
  out.hex(link.context.traceId);
  out.tag(SPAN.spanId);
  out.hex(link.context.spanId);
  encodeTraceState(out, link.context);
  if (link.attributes !== undefined) encodeAttributes(out, LINK.attributes, link.attributes);
  out.tag(LINK.droppedAttributesCount);
  out.varint(link.droppedAttributesCount ?? 0);
  out.tag(LINK.flags);
  out.fixed32(flagsOf(link.context.traceFlags, link.context.isRemote));
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

/** Field 3 of a span as of a link. */
function encodeTraceState(out: WireWriter, context: SpanContext): void {
  const state = context.traceState?.serialize();
  if (state === undefined || state === '') return;
  out.tag(SPAN.traceState);
  out.text(state);
}

function flagsOf(traceFlags: number, isRemote: boolean | undefined): number {
  return (traceFlags & 0xff) | KNOWS_IS_REMOTE | (isRemote === true ? IS_REMOTE : 0);
}

/** Flags of every span of a run, and of links to them. */
export const SAMPLED_FLAGS = flagsOf(TraceFlags.SAMPLED, false);

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

/**
 * Writes a log record as it stands in a ScopeLogs, its tag and length included: the same bytes as OpenTelemetry's
 * serialiser. A body is a text here, as the mapping makes it.
 */
export function encodeLog(out: WireWriter, log: ReadableLogRecord): void {
  const { spanContext: context, hrTime, hrTimeObserved } = log;
  out.tag(RECORD);
  const start = out.open();
  out.tag(LOG.time);
  out.time(hrTime[0], hrTime[1]);
  if (log.severityNumber !== undefined && log.severityNumber !== 0) {
    out.tag(LOG.severityNumber);
    out.int64(log.severityNumber);
  }
  optionalText(out, LOG.severityText, log.severityText);
  if (log.body !== undefined) {
    out.tag(LOG.body);
    encodeValue(out, typeof log.body === 'string' ? log.body : JSON.stringify(log.body));
  }
  encodeAttributes(out, LOG.attributes, log.attributes as Parameters<typeof encodeAttributes>[2]);
  out.tag(LOG.droppedAttributesCount);
  out.varint(log.droppedAttributesCount);
  if (context !== undefined) {
    if (context.traceFlags !== 0) {
      out.tag(LOG.flags);
      out.fixed32(context.traceFlags);
    }
    out.tag(LOG.traceId);
    out.hex(context.traceId);
    out.tag(LOG.spanId);
    out.hex(context.spanId);
  }
  out.tag(LOG.observedTime);
  out.time(hrTimeObserved[0], hrTimeObserved[1]);
  optionalText(out, LOG.eventName, log.eventName);
  out.close(start);
}

/** Writes a text unless it is empty. */
export function optionalText(out: WireWriter, tag: number, text: string | undefined): void {
  if (text === undefined || text === '') return;
  out.tag(tag);
  out.text(text);
}
