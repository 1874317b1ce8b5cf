import {
  type Attributes,
  type HrTime,
  type Link,
  type SpanContext,
  type SpanKind,
  TraceFlags,
} from '@opentelemetry/api';
import type { InstrumentationScope } from '@opentelemetry/core';
import type { Resource } from '@opentelemetry/resources';
import type { ReadableSpan, TimedEvent } from '@opentelemetry/sdk-trace-base';
import { type DecodedSpan, decodeSpan } from './decode-span.js';
import { type EncodedItem, messageOf } from './encoded-item.js';
import type { ExportGroup } from './export-group.js';

/**
 * A span in OTLP's protobuf, see `EncodedItem`. For exporters that want objects it is one, too: it is decoded when the
 * first of its properties is asked for.
 */
export class EncodedSpan implements ReadableSpan, EncodedItem {
  private known: DecodedSpan | undefined;

  constructor(
    readonly block: Buffer,
    readonly start: number,
    readonly end: number,
    readonly group: ExportGroup,
  ) {}

  /** Read from the first bytes: a message begins with its trace id and span id. */
  spanContext(): SpanContext {
    const message = messageOf(this);
    return {
      traceId: message.toString('hex', 2, 18),
      spanId: message.toString('hex', 20, 28),
      traceFlags: TraceFlags.SAMPLED,
    };
  }

  // Not fields: as many spans wait to be sent as there is room for, and these would be in each.
  get ended(): boolean {
    return true;
  }

  get droppedAttributesCount(): number {
    return 0;
  }

  get droppedLinksCount(): number {
    return 0;
  }

  get parentSpanContext(): SpanContext {
    const { parentSpanId } = this.decoded;
    return parentSpanId === undefined ? ABSENT : { ...this.spanContext(), spanId: parentSpanId };
  }

  get name(): string {
    return this.decoded.name;
  }

  get kind(): SpanKind {
    return this.decoded.kind;
  }

  get startTime(): HrTime {
    return this.decoded.startTime;
  }

  get endTime(): HrTime {
    return this.decoded.endTime;
  }

  get duration(): HrTime {
    const [fromSeconds, fromNanos] = this.decoded.startTime;
    const [toSeconds, toNanos] = this.decoded.endTime;
    const seconds = toSeconds - fromSeconds;
    const nanos = toNanos - fromNanos;
    if (nanos < 0) return seconds > 0 ? [seconds - 1, nanos + 1_000_000_000] : [0, 0];
    return seconds < 0 ? [0, 0] : [seconds, nanos];
  }

  get status(): ReadableSpan['status'] {
    return this.decoded.status;
  }

  get attributes(): Attributes {
    return this.decoded.attributes;
  }

  get links(): Link[] {
    return this.decoded.links;
  }

  get events(): TimedEvent[] {
    return this.decoded.events;
  }

  get droppedEventsCount(): number {
    return this.decoded.droppedEventsCount;
  }

  get resource(): Resource {
    return this.group.resource;
  }

  get instrumentationScope(): InstrumentationScope {
    return this.group.scope;
  }

  private get decoded(): DecodedSpan {
    this.known ??= decodeSpan(messageOf(this));
    return this.known;
  }
}

/** An optional property of an interface cannot be declared as a getter that gives `undefined`; it may all the same. */
const ABSENT = undefined as never;
