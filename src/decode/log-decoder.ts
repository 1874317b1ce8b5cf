import type { OtlpLogRecord } from '../otlp/export-request.js';
import { parseSpanId, parseTraceId, type TraceId } from '../record/ids.js';
import { isNestedTooDeep } from '../record/json.js';
import { tryParseRecordLine } from '../record/record-line.js';
import { DEBUG, ERROR, INFO, severityNumberOf, TRACE, WARN } from '../record/severity.js';
import type { LogRecord, TelemetryRecord } from '../record/telemetry-record.js';
import { EVENT_TYPE_PREFIX } from '../schema/public-schema.js';
import { type AttributeWriter, valueJson } from './attribute-json.js';
import type { AttributeSchema } from './attribute-schema.js';
import { BRIDGE_ATTRIBUTE } from './bridge-attributes.js';
import { bridgeObject, MAX_UNIX_NANO, type Rejection, splitAttributes } from './span-decoder.js';
import { modernSpelling } from './spelling.js';

/** The type of a log record that names none. */
const UNNAMED = `${EVENT_TYPE_PREFIX}log.LogMessage`;

/**
 * A log record of the engine as its record, or why it cannot be. OTLP brings the event type in `event_name` and neither
 * `event_id` nor the span's name; the record log fills in the name when the span is known.
 */
export function decodeLog(
  log: OtlpLogRecord,
  schema: AttributeSchema,
  writer: AttributeWriter,
): TelemetryRecord | Rejection {
  const traceId = parseTraceId(log.traceId);
  if (traceId === undefined) return 'without a valid trace id and span id';
  const timeUnixNano = log.timeUnixNano === 0n ? log.observedTimeUnixNano : log.timeUnixNano;
  if (timeUnixNano > MAX_UNIX_NANO) return 'with a time beyond int64';

  const { own, bridge } = splitAttributes(log.attributes);
  const whole = wholeRecord(bridge.get(BRIDGE_ATTRIBUTE.record), traceId);
  if (whole !== undefined) return whole;
  const eventType = log.eventName === '' ? UNNAMED : log.eventName;
  const unknownFields = bridgeObject(bridge.get(BRIDGE_ATTRIBUTE.unknownFields));
  return modernSpelling<LogRecord>(
    {
      recordType: 'LogRecord',
      traceId,
      spanId: parseSpanId(log.spanId) ?? null,
      spanName: bridge.get(BRIDGE_ATTRIBUTE.spanName) ?? null,
      eventId: bridge.get(BRIDGE_ATTRIBUTE.eventId) ?? null,
      timeUnixNano,
      severityNumber: log.severityNumber === 0 ? severityNumberOf(log.severityText) : log.severityNumber,
      severityText: log.severityText === '' ? severityText(log.severityNumber) : log.severityText,
      body: typeof log.body === 'string' ? log.body : log.body === null ? '' : valueJson(log.body),
      eventType,
      attributes: writer.join(writer.parts(own, eventType)),
      ...(unknownFields === undefined ? {} : { unknownFields }),
    },
    schema,
  );
}

/** The record that another bridge handed over as its line; only one of the trace that the log record names. */
function wholeRecord(line: string | undefined, traceId: TraceId): TelemetryRecord | undefined {
  if (line === undefined || isNestedTooDeep(line)) return undefined;
  const record = tryParseRecordLine(line);
  return record?.traceId === traceId ? record : undefined;
}

/** OTel's ranges: four numbers a severity. */
function severityText(number: number): string {
  if (number >= ERROR.number) return ERROR.text;
  if (number >= WARN.number) return WARN.text;
  if (number >= INFO.number) return INFO.text;
  if (number >= DEBUG.number) return DEBUG.text;
  return number >= TRACE.number ? TRACE.text : '';
}
