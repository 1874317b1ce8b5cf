import type { KeyValue } from '../otlp/any-value.js';
import type { OtlpSpan, OtlpSpanLink, OtlpStatus } from '../otlp/export-request.js';
import { Attributes } from '../record/attributes.js';
import { parseSpanId, parseTraceId } from '../record/ids.js';
import type { JsonObject } from '../record/json.js';
import { tryParseRecordLine } from '../record/record-line.js';
import { severityNumberOf } from '../record/severity.js';
import type { SpanEnd, SpanLink, SpanStatus, TelemetryRecord } from '../record/telemetry-record.js';
import { type AttributeWriter, valueJson } from './attribute-json.js';
import type { AttributeSchema } from './attribute-schema.js';
import { BRIDGE_ATTRIBUTE, BRIDGE_PREFIX } from './bridge-attributes.js';
import { shortEventType } from './event-type.js';
import { spanEventType } from './span-event-type.js';
import { spanSeverity } from './span-severity.js';
import { spanStartOf, startParts } from './span-start.js';
import { modernSpelling } from './spelling.js';

/** The largest time that a record can hold. */
export const MAX_UNIX_NANO = 2n ** 63n - 1n;

/** Why a span or log record cannot become a record. */
export type Rejection = 'without a valid trace id and span id' | 'with a time beyond int64';

/**
 * A span of the engine as its SpanStart and SpanEnd, or why it cannot be.
 * OTLP does not carry the event type, the severity and the start; they are told from what it does carry.
 */
export function decodeSpan(
  span: OtlpSpan,
  schema: AttributeSchema,
  writer: AttributeWriter,
): readonly TelemetryRecord[] | Rejection {
  const traceId = parseTraceId(span.traceId);
  const spanId = parseSpanId(span.spanId);
  if (traceId === undefined || spanId === undefined) return 'without a valid trace id and span id';
  if (span.startTimeUnixNano > MAX_UNIX_NANO || span.endTimeUnixNano > MAX_UNIX_NANO) return 'with a time beyond int64';

  const { own, bridge } = splitAttributes(span.attributes);
  const eventType = bridge.get(BRIDGE_ATTRIBUTE.eventType) ?? spanEventType(span.name, () => own, schema.spanShapes);
  const shortType = shortEventType(eventType);
  const parts = writer.parts(own, eventType);
  const severity = spanSeverity(shortType, (name, text) =>
    parts.some((part) => part.name === name && part.json === JSON.stringify(text)),
  );
  const unknownFields = unknownFieldsOf(span, bridge);
  const severityText = bridge.get(BRIDGE_ATTRIBUTE.severityText);
  const severityNumber = Number(bridge.get(BRIDGE_ATTRIBUTE.severityNumber) ?? 0);
  const end = modernSpelling(
    {
      recordType: 'SpanEnd',
      traceId,
      spanId,
      spanName: span.name,
      parentSpanId: parseSpanId(span.parentSpanId) ?? null,
      links: linksOf(span.links),
      startTimeUnixNano: span.startTimeUnixNano,
      endTimeUnixNano: span.endTimeUnixNano,
      severityNumber: severityNumber || severityNumberOf(severityText ?? severity.text),
      severityText: severityText ?? severity.text,
      status: statusOf(span.status),
      eventType,
      attributes: writer.join(parts),
      ...(unknownFields === undefined ? {} : { unknownFields }),
    },
    schema,
  );
  if (bridge.size > 0) return withStart(end, bridge);
  const starting = startParts(parts, shortType);
  return [spanStartOf(end, starting === parts ? end.attributes : writer.join(starting)), end];
}

const NONE: ReadonlyMap<string, string> = new Map();

/** The attributes of the message, and the bridge's own as text by name. */
export function splitAttributes(attributes: readonly KeyValue[]): {
  readonly own: readonly KeyValue[];
  readonly bridge: ReadonlyMap<string, string>;
} {
  if (!attributes.some(({ key }) => key.startsWith(BRIDGE_PREFIX))) return { own: attributes, bridge: NONE };
  const bridge = new Map<string, string>();
  const own: KeyValue[] = [];
  for (const attribute of attributes) {
    if (!attribute.key.startsWith(BRIDGE_PREFIX)) own.push(attribute);
    else bridge.set(attribute.key, typeof attribute.value === 'string' ? attribute.value : valueJson(attribute.value));
  }
  return { own, bridge };
}

/** A JSON object that the bridge itself wrote into an attribute; `undefined` where it is absent or not one. */
export function bridgeObject(text: string | undefined): JsonObject | undefined {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as JsonObject;
  } catch {
    return undefined;
  }
}

function withStart(end: SpanEnd, bridge: ReadonlyMap<string, string>): readonly TelemetryRecord[] {
  if (bridge.get(BRIDGE_ATTRIBUTE.only) === 'ended') return [end];
  const line = bridge.get(BRIDGE_ATTRIBUTE.spanStart);
  const start = line === undefined ? undefined : tryParseRecordLine(line);
  if (bridge.get(BRIDGE_ATTRIBUTE.only) === 'started') return start === undefined ? [] : [start];
  return [start ?? spanStartOf(end), end];
}

/** Span events have no place in the envelope; the engine sends none today. They are kept beside the known keys. */
function unknownFieldsOf(span: OtlpSpan, bridge: ReadonlyMap<string, string>): JsonObject | undefined {
  const kept = bridgeObject(bridge.get(BRIDGE_ATTRIBUTE.unknownFields));
  if (span.events.length === 0) return kept;
  const events = span.events.map(({ name, timeUnixNano, attributes }) => ({
    name,
    time_unix_nano: String(timeUnixNano),
    attributes: JSON.parse(valueJson({ entries: attributes })) as JsonObject,
  }));
  return { ...kept, events };
}

function linksOf(links: readonly OtlpSpanLink[]): readonly SpanLink[] | null {
  const valid = links.flatMap((link) => {
    const traceId = parseTraceId(link.traceId);
    const spanId = parseSpanId(link.spanId);
    if (traceId === undefined || spanId === undefined) return [];
    return [{ traceId, spanId, attributes: Attributes.fromJson(valueJson({ entries: link.attributes })) }];
  });
  return valid.length === 0 ? null : valid;
}

function statusOf(status: OtlpStatus | null): SpanStatus | null {
  if (status === null || (status.code === 0 && status.message === '')) return null;
  return { message: status.message === '' ? null : status.message, code: status.code };
}
