import {
  type Attributes,
  type AttributeValue,
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
import { FIXED32, FIXED64, LENGTH, VARINT } from '../../otlp/wire-type.js';
import type { ExportGroup } from './export-group.js';

/** One field of a message: its number, and its value as its wire type has it. */
export interface WireField {
  readonly number: number;
  /** Of VARINT and FIXED32 fields, and 64 bits otherwise. */
  readonly value: bigint;
  /** Of LENGTH fields. */
  readonly content: Buffer;
}

/** The fields of a message that `WireWriter` wrote; it reads no others, so it checks nothing. */
export function* fieldsOf(message: Buffer): Generator<WireField> {
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(varint());
    const number = tag >> 3;
    const start = at;
    switch (tag & 7) {
      case VARINT:
        yield { number, value: varint(), content: EMPTY };
        break;
      case FIXED64:
        at += 8;
        yield { number, value: message.readBigUInt64LE(start), content: message.subarray(start, at) };
        break;
      case FIXED32:
        at += 4;
        yield { number, value: BigInt(message.readUInt32LE(start)), content: EMPTY };
        break;
      case LENGTH: {
        const length = Number(varint());
        at += length;
        yield { number, value: 0n, content: message.subarray(at - length, at) };
        break;
      }
      default:
        throw new Error(`no field of an exported item has the wire type ${tag & 7}`);
    }
  }
}

const EMPTY = Buffer.alloc(0);

/** Adds a KeyValue message to attributes. */
export function addAttribute(into: Attributes, keyValue: Buffer): void {
  let key = '';
  let value: AttributeValue | undefined;
  for (const field of fieldsOf(keyValue)) {
    if (field.number === 1) key = field.content.toString('utf8');
    else value = anyValueOf(field.content);
  }
  // Not by assignment: `__proto__` is a key like any other here.
  Object.defineProperty(into, key, { value, enumerable: true, configurable: true, writable: true });
}

/** The value of an AnyValue message; numbers beyond 2^53 lose digits, as they had when they were written. */
export function anyValueOf(anyValue: Buffer): AttributeValue | undefined {
  for (const field of fieldsOf(anyValue)) {
    if (field.number === 1) return field.content.toString('utf8');
    if (field.number === 2) return field.value !== 0n;
    if (field.number === 3) return Number(BigInt.asIntN(64, field.value));
    if (field.number === 4) return field.content.readDoubleLE(0);
    return [...fieldsOf(field.content)].map(({ content }) => anyValueOf(content)) as string[];
  }
  return undefined;
}

/** Seconds and nanoseconds of a fixed64. */
export function timeOf(nanos: bigint): HrTime {
  return [Number(nanos / 1_000_000_000n), Number(nanos % 1_000_000_000n)];
}

/** A log record that its bytes were read into. */
export interface DecodedLog {
  /** In lower-case hex; empty for none. */
  readonly traceId: string;
  readonly hrTime: HrTime;
  readonly hrTimeObserved: HrTime;
  readonly spanContext: SpanContext | undefined;
  readonly severityNumber: number;
  readonly severityText: string;
  readonly body: string | undefined;
  readonly eventName: string;
  readonly attributes: Attributes;
}

/** Reads a LogRecord message that the mapping wrote. */
export function decodeLog(message: Buffer): DecodedLog {
  let hrTime: HrTime = [0, 0];
  let hrTimeObserved: HrTime = [0, 0];
  let severityNumber = 0;
  let severityText = '';
  let body: string | undefined;
  let eventName = '';
  let traceId = '';
  let spanId = '';
  const attributes: Attributes = {};
  for (const { number, value, content } of fieldsOf(message)) {
    if (number === 1) hrTime = timeOf(value);
    else if (number === 2) severityNumber = Number(BigInt.asIntN(64, value));
    else if (number === 3) severityText = content.toString('utf8');
    else if (number === 5) body = String(anyValueOf(content));
    else if (number === 6) addAttribute(attributes, content);
    else if (number === 9) traceId = content.toString('hex');
    else if (number === 10) spanId = content.toString('hex');
    else if (number === 11) hrTimeObserved = timeOf(value);
    else if (number === 12) eventName = content.toString('utf8');
  }
  const spanContext = spanId === '' ? undefined : { traceId, spanId, traceFlags: TraceFlags.SAMPLED };
  return { traceId, hrTime, hrTimeObserved, spanContext, severityNumber, severityText, body, eventName, attributes };
}

/** A span of a run as exporters of OpenTelemetry want it: an object that its bytes were read into. */
export class DecodedSpan implements ReadableSpan {
  readonly ended = true;
  readonly droppedAttributesCount = 0;
  droppedLinksCount = 0;
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
    else if (number === 14) this.droppedLinksCount = Number(value);
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
