import {
  type Attributes,
  type HrTime,
  type Link,
  type SpanContext,
  type SpanKind,
  SpanStatusCode,
  TraceFlags,
} from '@opentelemetry/api';
import type { InstrumentationScope } from '@opentelemetry/core';
import type { Resource } from '@opentelemetry/resources';
import type { ReadableSpan, TimedEvent } from '@opentelemetry/sdk-trace-base';
import type { ExportGroup } from './export-group.js';
import { addAttribute, fieldsOf, timeOf, type WireField } from './wire-reader.js';

/** A span of a run as exporters of OpenTelemetry want it: an object that its bytes were read into. */
export class DecodedSpan implements ReadableSpan {
  readonly ended = true;
  readonly droppedAttributesCount = 0;
  readonly droppedLinksCount = 0;
  parentSpanContext?: SpanContext;
  name = '';
  kind: SpanKind = 0;
  startTime: HrTime = [0, 0];
  endTime: HrTime = [0, 0];
  status: ReadableSpan['status'] = { code: SpanStatusCode.UNSET };
  readonly attributes: Attributes = {};
  readonly events: TimedEvent[] = [];
  readonly links: Link[] = [];
  droppedEventsCount = 0;
  readonly resource: Resource;
  readonly instrumentationScope: InstrumentationScope;
  private readonly context: SpanContext;

  /** @param message a Span message that the mapping wrote: it begins with its trace id and span id */
  constructor(message: Buffer, { resource, scope }: ExportGroup) {
    this.resource = resource;
    this.instrumentationScope = scope;
    const traceId = message.toString('hex', 2, 18);
    this.context = { traceId, spanId: message.toString('hex', 20, 28), traceFlags: TraceFlags.SAMPLED };
    for (const field of fieldsOf(message)) this.read(field);
  }

  spanContext(): SpanContext {
    return this.context;
  }

  get duration(): HrTime {
    const [fromSeconds, fromNanos] = this.startTime;
    const [toSeconds, toNanos] = this.endTime;
    const seconds = toSeconds - fromSeconds;
    const nanos = toNanos - fromNanos;
    if (nanos < 0) return seconds > 0 ? [seconds - 1, nanos + 1_000_000_000] : [0, 0];
    return seconds < 0 ? [0, 0] : [seconds, nanos];
  }

  private read({ number, value, content }: WireField): void {
    if (number === 4) this.parentSpanContext = { ...this.context, spanId: content.toString('hex') };
    else if (number === 5) this.name = content.toString('utf8');
    else if (number === 6) this.kind = Number(value) - 1;
    else if (number === 7) this.startTime = timeOf(value);
    else if (number === 8) this.endTime = timeOf(value);
    else if (number === 9) addAttribute(this.attributes, content);
    else if (number === 11) this.events.push(eventOf(content));
    else if (number === 12) this.droppedEventsCount = Number(value);
    else if (number === 13) this.links.push(linkOf(content));
    else if (number === 15) this.status = statusOf(content);
  }
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
