import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import { FIXED32, FIXED64, LENGTH, tagOf, VARINT } from '../../otlp/wire-type.js';
import { encodeAttributes, encodeValue } from './encode-attributes.js';
import { RECORD } from './encode-span.js';
import type { WireWriter } from './wire-writer.js';

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
