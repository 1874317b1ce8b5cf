import { type Attributes, type HrTime, type Link, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import type { ReadableSpan, TimedEvent } from '@opentelemetry/sdk-trace-base';
import { addAttribute, fieldsOf, timeOf } from './decode-fields.js';

/** What a span's bytes say; the rest of a ReadableSpan follows from it, or is the same for all. */
export type DecodedSpan = Pick<
  ReadableSpan,
  'name' | 'kind' | 'startTime' | 'endTime' | 'status' | 'attributes' | 'links' | 'events' | 'droppedEventsCount'
> & { readonly parentSpanId: string | undefined };

/** Reads a Span message that `encodeSpan` wrote, for exporters that want objects. */
export function decodeSpan(message: Buffer): DecodedSpan {
  let parentSpanId: string | undefined;
  let name = '';
  let kind = 0;
  let startTime: HrTime = [0, 0];
  let endTime: HrTime = [0, 0];
  let status: ReadableSpan['status'] = { code: SpanStatusCode.UNSET };
  let droppedEventsCount = 0;
  const attributes: Attributes = {};
  const events: TimedEvent[] = [];
  const links: Link[] = [];
  for (const { number, value, content } of fieldsOf(message)) {
    if (number === 4) parentSpanId = content.toString('hex');
    else if (number === 5) name = content.toString('utf8');
    else if (number === 6) kind = Number(value) - 1;
    else if (number === 7) startTime = timeOf(value);
    else if (number === 8) endTime = timeOf(value);
    else if (number === 9) addAttribute(attributes, content);
    else if (number === 11) events.push(eventOf(content));
    else if (number === 12) droppedEventsCount = Number(value);
    else if (number === 13) links.push(linkOf(content));
    else if (number === 15) status = statusOf(content);
  }
  return { parentSpanId, name, kind, startTime, endTime, status, attributes, links, events, droppedEventsCount };
}

function eventOf(message: Buffer): TimedEvent {
  let time: HrTime = [0, 0];
  let name = '';
  const attributes: Attributes = {};
  for (const { number, value, content } of fieldsOf(message)) {
    if (number === 1) time = timeOf(value);
    else if (number === 2) name = content.toString('utf8');
    else if (number === 3) addAttribute(attributes, content);
  }
  return { time, name, attributes, droppedAttributesCount: 0 };
}

function linkOf(message: Buffer): Link {
  let traceId = '';
  let spanId = '';
  const attributes: Attributes = {};
  for (const { number, content } of fieldsOf(message)) {
    if (number === 1) traceId = content.toString('hex');
    else if (number === 2) spanId = content.toString('hex');
    else if (number === 4) addAttribute(attributes, content);
  }
  return { context: { traceId, spanId, traceFlags: TraceFlags.SAMPLED }, attributes };
}

function statusOf(message: Buffer): ReadableSpan['status'] {
  let code = SpanStatusCode.UNSET;
  let text: string | undefined;
  for (const { number, value, content } of fieldsOf(message)) {
    if (number === 2) text = content.toString('utf8');
    else if (number === 3) code = Number(value);
  }
  return text === undefined ? { code } : { code, message: text };
}
