import {
  type Attributes,
  type HrTime,
  type Link,
  type SpanContext,
  type SpanKind,
  type SpanStatus,
  TraceFlags,
} from '@opentelemetry/api';
import type { InstrumentationScope } from '@opentelemetry/core';
import type { Resource } from '@opentelemetry/resources';
import type { ReadableSpan, TimedEvent } from '@opentelemetry/sdk-trace-base';
import type { SpanId, TraceId } from '../../record/ids.js';
import type { UnixNano } from '../../record/unix-nano.js';
import { hrTimeOf } from './hr-time.js';

/** What a span is made of. */
export interface SpanParts {
  readonly traceId: TraceId;
  readonly spanId: SpanId;
  readonly parentSpanId: SpanId | null;
  readonly name: string;
  readonly kind: SpanKind;
  readonly startTimeUnixNano: UnixNano;
  readonly endTimeUnixNano: UnixNano;
  readonly status: SpanStatus;
  readonly attributes: Attributes;
  readonly links: Link[];
  readonly events: TimedEvent[];
  readonly droppedEventsCount: number;
  readonly resource: Resource;
  readonly instrumentationScope: InstrumentationScope;
}

/** An ended span as OTel's processors and exporters take it, with the engine's own ids and times. */
export class MappedSpan implements ReadableSpan {
  readonly name: string;
  readonly kind: SpanKind;
  readonly parentSpanContext?: SpanContext;
  readonly startTime: HrTime;
  readonly endTime: HrTime;
  readonly duration: HrTime;
  readonly status: SpanStatus;
  readonly attributes: Attributes;
  readonly links: Link[];
  readonly events: TimedEvent[];
  readonly resource: Resource;
  readonly instrumentationScope: InstrumentationScope;
  readonly ended = true;
  readonly droppedAttributesCount = 0;
  readonly droppedEventsCount: number;
  readonly droppedLinksCount = 0;
  private readonly context: SpanContext;

  constructor(parts: SpanParts) {
    this.context = spanContextOf(parts.traceId, parts.spanId);
    if (parts.parentSpanId !== null) this.parentSpanContext = spanContextOf(parts.traceId, parts.parentSpanId);
    this.name = parts.name;
    this.kind = parts.kind;
    this.startTime = hrTimeOf(parts.startTimeUnixNano);
    this.endTime = hrTimeOf(parts.endTimeUnixNano);
    const durationNanos = parts.endTimeUnixNano - parts.startTimeUnixNano;
    this.duration = hrTimeOf(durationNanos > 0n ? durationNanos : 0n);
    this.status = parts.status;
    this.attributes = parts.attributes;
    this.links = parts.links;
    this.events = parts.events;
    this.droppedEventsCount = parts.droppedEventsCount;
    this.resource = parts.resource;
    this.instrumentationScope = parts.instrumentationScope;
  }

  spanContext(): SpanContext {
    return this.context;
  }
}

/** The context of one of the run's spans: sampled, since it was recorded. */
export function spanContextOf(traceId: TraceId, spanId: SpanId): SpanContext {
  return { traceId, spanId, traceFlags: TraceFlags.SAMPLED };
}
