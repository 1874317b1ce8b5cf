import { Attributes } from '../../record/attributes.js';
import type { SpanId, TraceId } from '../../record/ids.js';
import type { SpanEnd, SpanLink, SpanStart, SpanStatus } from '../../record/telemetry-record.js';
import type { UnixNano } from '../../record/unix-nano.js';

/** What a span's start and its end have in common; made once for both. */
export interface WireSpanHead {
  readonly traceId: TraceId;
  readonly spanId: SpanId;
  readonly parentSpanId: SpanId | null;
  readonly spanName: string;
  readonly startTimeUnixNano: UnixNano;
  readonly severityNumber: number;
  readonly severityText: string;
  readonly eventType: string;
}

/** Where a line and the attributes in it stand in the bytes that were assembled. */
export interface LinePlace {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  readonly attributesStart: number;
  readonly attributesEnd: number;
}

/** A SpanStart whose line was assembled from OTLP's bytes; its attributes are parsed when somebody asks for them. */
export function wireSpanStart(head: WireSpanHead, place: LinePlace): SpanStart {
  return {
    recordType: 'SpanStart',
    traceId: head.traceId,
    spanId: head.spanId,
    spanName: head.spanName,
    parentSpanId: head.parentSpanId,
    links: null,
    startTimeUnixNano: head.startTimeUnixNano,
    severityNumber: head.severityNumber,
    severityText: head.severityText,
    eventType: head.eventType,
    attributes: Attributes.fromBytes(place.bytes, place.attributesStart, place.attributesEnd),
    lineBytes: place.bytes.subarray(place.start, place.end),
  };
}

/** A SpanEnd, likewise. */
export function wireSpanEnd(
  head: WireSpanHead,
  endTimeUnixNano: UnixNano,
  status: SpanStatus | null,
  links: readonly SpanLink[] | null,
  place: LinePlace,
): SpanEnd {
  return {
    recordType: 'SpanEnd',
    traceId: head.traceId,
    spanId: head.spanId,
    spanName: head.spanName,
    parentSpanId: head.parentSpanId,
    links,
    startTimeUnixNano: head.startTimeUnixNano,
    endTimeUnixNano,
    severityNumber: head.severityNumber,
    severityText: head.severityText,
    status,
    eventType: head.eventType,
    attributes: Attributes.fromBytes(place.bytes, place.attributesStart, place.attributesEnd),
    lineBytes: place.bytes.subarray(place.start, place.end),
  };
}
