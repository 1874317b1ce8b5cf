import { type Link, type SpanContext, type SpanStatus, TraceFlags } from '@opentelemetry/api';
import type { ReadableSpan, TimedEvent } from '@opentelemetry/sdk-trace-base';
import { FIXED32, FIXED64, LENGTH, tagOf, VARINT } from '../../otlp/wire-type.js';
import { encodeAttributes } from './encode-attributes.js';
import type { WireWriter } from './wire-writer.js';

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

const EVENT_TIME = tagOf(1, FIXED64);
const EVENT_NAME = tagOf(2, LENGTH);
const EVENT_ATTRIBUTES = tagOf(3, LENGTH);
const EVENT_DROPPED = tagOf(4, VARINT);
const LINK_ATTRIBUTES = tagOf(4, LENGTH);
const LINK_DROPPED = tagOf(5, VARINT);
const LINK_FLAGS = tagOf(6, FIXED32);
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
  encodeSpanTail(out, span, flagsOf(context.traceFlags, parent?.isRemote));
  out.close(start);
}

/** Writes what comes behind a span's attributes. */
export function encodeSpanTail(
  out: WireWriter,
  span: Pick<ReadableSpan, 'events' | 'droppedEventsCount' | 'links' | 'droppedLinksCount' | 'status'>,
  flags = SAMPLED_FLAGS,
): void {
  for (const event of span.events) encodeEvent(out, event);
  out.tag(SPAN.droppedEventsCount);
  out.varint(span.droppedEventsCount);
  for (const link of span.links) encodeLink(out, link);
  out.tag(SPAN.droppedLinksCount);
  out.varint(span.droppedLinksCount);
  out.tag(SPAN.status);
  encodeStatus(out, span.status);
  out.tag(SPAN.flags);
  out.fixed32(flags);
}

function encodeEvent(out: WireWriter, event: TimedEvent): void {
  out.tag(SPAN.events);
  const start = out.open();
  out.tag(EVENT_TIME);
  out.time(event.time[0], event.time[1]);
  out.tag(EVENT_NAME);
  out.text(event.name);
  if (event.attributes !== undefined) encodeAttributes(out, EVENT_ATTRIBUTES, event.attributes);
  out.tag(EVENT_DROPPED);
  out.varint(event.droppedAttributesCount ?? 0);
  out.close(start);
}

function encodeLink(out: WireWriter, link: Link): void {
  out.tag(SPAN.links);
  const start = out.open();
  out.tag(SPAN.traceId);
  out.hex(link.context.traceId);
  out.tag(SPAN.spanId);
  out.hex(link.context.spanId);
  encodeTraceState(out, link.context);
  if (link.attributes !== undefined) encodeAttributes(out, LINK_ATTRIBUTES, link.attributes);
  out.tag(LINK_DROPPED);
  out.varint(link.droppedAttributesCount ?? 0);
  out.tag(LINK_FLAGS);
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

/** Of every span of a run. */
const SAMPLED_FLAGS = flagsOf(TraceFlags.SAMPLED, false);
