import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { ExportGroup } from '../../src/export/wire/export-group.js';
import { type ItemRange, WindowWriter } from '../../src/export/wire/item-window.js';
import {
  encodeAttributes,
  encodeEvent,
  encodeLink,
  encodeSpanEnd,
  encodeValue,
  LOG,
  optionalText,
  RECORD,
  SPAN,
  type WireWriter,
} from '../../src/export/wire/wire-writer.js';

/** Writes a span that is made up, as the mapping writes spans. */
export function addSpan(windows: WindowWriter, span: ReadableSpan, anchorOffset = 0, group = groupOf(span)): void {
  encodeSpan(windows.begin(), span);
  windows.add('traces', group, anchorOffset);
}

/** As `addSpan`, of a log record. */
export function addLog(windows: WindowWriter, log: ReadableLogRecord, anchorOffset = 0, group = groupOf(log)): void {
  encodeLog(windows.begin(), log);
  windows.add('logs', group, anchorOffset);
}

/** Spans that are made up, as the mapping gives them. */
export function encodedSpans(...spans: readonly ReadableSpan[]): readonly ItemRange[] {
  const windows = new WindowWriter();
  for (const span of spans) addSpan(windows, span);
  return windows.take().traces;
}

function groupOf({ resource, instrumentationScope }: ReadableSpan | ReadableLogRecord): ExportGroup {
  return new ExportGroup(resource.attributes, instrumentationScope);
}

/** Writes a span as it stands in a ScopeSpans, its tag and length included: the same bytes as OpenTelemetry's serialiser. */
function encodeSpan(out: WireWriter, span: ReadableSpan): void {
  const context = span.spanContext();
  const parent = span.parentSpanContext;
  out.tag(RECORD);
  const start = out.open();
  out.tag(SPAN.traceId);
  out.hex(context.traceId);
  out.tag(SPAN.spanId);
  out.hex(context.spanId);
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
  for (const { context: to, attributes = {} } of span.links) encodeLink(out, to.traceId, to.spanId, attributes);
  out.tag(SPAN.droppedLinksCount);
  out.varint(span.droppedLinksCount);
  encodeSpanEnd(out, span.status);
  out.close(start);
}

/**
 * Writes a log record as it stands in a ScopeLogs, its tag and length included: the same bytes as OpenTelemetry's
 * serialiser. A body is a text here, as the mapping makes it.
 */
function encodeLog(out: WireWriter, log: ReadableLogRecord): void {
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
