import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import { FIXED32, FIXED64, LENGTH, tagOf, VARINT } from '../../otlp/wire-type.js';
import { encodeAttributes, encodeValue } from './encode-attributes.js';
import { RECORD } from './encode-span.js';
import type { WireWriter } from './wire-writer.js';

const TIME = tagOf(1, FIXED64);
const SEVERITY_NUMBER = tagOf(2, VARINT);
const SEVERITY_TEXT = tagOf(3, LENGTH);
const BODY = tagOf(5, LENGTH);
const ATTRIBUTES = tagOf(6, LENGTH);
const DROPPED_ATTRIBUTES_COUNT = tagOf(7, VARINT);
const FLAGS = tagOf(8, FIXED32);
const TRACE_ID = tagOf(9, LENGTH);
const SPAN_ID = tagOf(10, LENGTH);
const OBSERVED_TIME = tagOf(11, FIXED64);
const EVENT_NAME = tagOf(12, LENGTH);

/**
 * Writes a log record as it stands in a ScopeLogs, its tag and length included: the same bytes as OpenTelemetry's
 * serialiser. A body is a text here, as the mapping makes it.
 */
export function encodeLog(out: WireWriter, log: ReadableLogRecord): void {
  const { spanContext: context, hrTime, hrTimeObserved } = log;
  out.tag(RECORD);
  const start = out.open();
  out.tag(TIME);
  out.time(hrTime[0], hrTime[1]);
  if (log.severityNumber !== undefined && log.severityNumber !== 0) {
    out.tag(SEVERITY_NUMBER);
    out.int64(log.severityNumber);
  }
  optionalText(out, SEVERITY_TEXT, log.severityText);
  if (log.body !== undefined) {
    out.tag(BODY);
    encodeValue(out, typeof log.body === 'string' ? log.body : JSON.stringify(log.body));
  }
  encodeAttributes(out, ATTRIBUTES, log.attributes as Parameters<typeof encodeAttributes>[2]);
  out.tag(DROPPED_ATTRIBUTES_COUNT);
  out.varint(log.droppedAttributesCount);
  if (context !== undefined) {
    if (context.traceFlags !== 0) {
      out.tag(FLAGS);
      out.fixed32(context.traceFlags);
    }
    out.tag(TRACE_ID);
    out.hex(context.traceId);
    out.tag(SPAN_ID);
    out.hex(context.spanId);
  }
  out.tag(OBSERVED_TIME);
  out.time(hrTimeObserved[0], hrTimeObserved[1]);
  optionalText(out, EVENT_NAME, log.eventName);
  out.close(start);
}

function optionalText(out: WireWriter, tag: number, text: string | undefined): void {
  if (text === undefined || text === '') return;
  out.tag(tag);
  out.text(text);
}
