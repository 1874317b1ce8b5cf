import { Attributes, isJsonObject, type JsonValue } from './attributes.js';
import {
  parseSpanId,
  parseTraceId,
  parseUnixNano,
  type SpanId,
  type SpanLink,
  type TelemetryRecord,
  type TraceId,
  type UnixNano,
} from './telemetry-record.js';

// Sources of patterns: JSON strings and scalars, and fields as the engine writes them.
const TEXT = String.raw`"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"`;
const SCALAR = String.raw`(?:${TEXT}|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)`;
const TRACE_ID = '"((?!0{32})[0-9a-f]{32})"';
const SPAN_ID = '"((?!0{16})[0-9a-f]{16})"';
const TIME = String.raw`"(\d{1,19})"`;
const SEVERITY = String.raw`"severity_number":(0|-?[1-9]\d{0,9}),"severity_text":(${TEXT})`;
const TYPE = `"event_type":(${TEXT}),"attributes":`;

/** The line of a span up to its attributes; what only a span's end has is optional. */
const SPAN_HEAD = new RegExp(
  `^{"record_type":"(SpanStart|SpanEnd)","trace_id":${TRACE_ID},"span_id":${SPAN_ID},"span_name":(${TEXT}),` +
    String.raw`"parent_span_id":(?:null|${SPAN_ID}),"links":(null|\[[^]*?\]),"start_time_unix_nano":${TIME}` +
    String.raw`(?:,"end_time_unix_nano":${TIME})?,${SEVERITY},(?:"status":(?:(null)|\{"message":(null|${TEXT}),"code":(0|-?[1-9]\d{0,9})\}),)?${TYPE}`,
);
/** The line of a log record up to its attributes. */
const LOG_HEAD = new RegExp(
  `^{"record_type":"LogRecord","trace_id":${TRACE_ID},"span_id":(?:null|${SPAN_ID}),"span_name":(null|${TEXT}),` +
    `"event_id":(null|${TEXT}),"time_unix_nano":${TIME},${SEVERITY},"body":(${TEXT}),${TYPE}`,
);
/** An object whose values are scalars, or objects and lists nested at most two further levels. */
const SHALLOW = new RegExp(`^${objectOf(anyOf(anyOf(SCALAR)))}$`);

function objectOf(value: string): string {
  return String.raw`\{(?:${TEXT}:${value}(?:,${TEXT}:${value})*)?\}`;
}

function anyOf(inner: string): string {
  return String.raw`(?:${SCALAR}|${objectOf(inner)}|\[(?:${inner}(?:,${inner})*)?\])`;
}

/** Thrown for a line in another layout than the engine's; shared, because it is thrown often and needs no stack. */
const OTHERWISE = new Error('not the layout of the engine');

/**
 * Reads a line in exactly the layout that the engine writes: its order of keys, no white space, nothing else. One pattern splits the line at its keys and another checks the attributes, which are
 * parsed when a value is first needed: patterns are fast from the first line on, and most commands end before V8 has compiled much. The text of the attributes is kept, so that the spelling of
 * numbers survives.
 * @returns `undefined` for any other line
 */
export function parseCanonicalLine(line: string): TelemetryRecord | undefined {
  try {
    const span = SPAN_HEAD.exec(line);
    return span === null ? readLog(line) : readSpan(line, span);
  } catch {
    return undefined;
  }
}

function readSpan(line: string, found: RegExpExecArray): TelemetryRecord {
  const [head, recordType, traceId, spanId, name, parentSpanId, links, start, end, number, severity, ...behind] = found;
  const [noStatus, message, code, type] = behind;
  const hasStatus = noStatus !== undefined || code !== undefined;
  const span = {
    traceId: traceId as TraceId,
    spanId: spanId as SpanId,
    spanName: textOf(name),
    parentSpanId: (parentSpanId ?? null) as SpanId | null,
    links: linksOf(jsonOf(links)),
    startTimeUnixNano: timeOf(start),
  };
  const severityText = severityOf(number, severity);
  const rest = { severityNumber: Number(number), severityText };
  const eventType = textOf(type);
  const attributes = attributesOf(line, head);
  if (recordType === 'SpanStart') {
    if (end !== undefined || hasStatus) throw OTHERWISE;
    return { recordType, ...span, ...rest, eventType, attributes, line };
  }
  if (recordType !== 'SpanEnd' || !hasStatus) throw OTHERWISE;
  const endTimeUnixNano = timeOf(end);
  return {
    recordType,
    ...span,
    endTimeUnixNano,
    ...rest,
    status: code === undefined ? null : { message: message === 'null' ? null : textOf(message), code: Number(code) },
    eventType,
    attributes,
    line,
  };
}

function readLog(line: string): TelemetryRecord {
  const [head, traceId, spanId, spanName, eventId, time, number, severity, body, type] =
    LOG_HEAD.exec(line) ?? otherwise();
  return {
    recordType: 'LogRecord',
    traceId: traceId as TraceId,
    spanId: (spanId ?? null) as SpanId | null,
    spanName: spanName === 'null' ? null : textOf(spanName),
    eventId: eventId === 'null' ? null : textOf(eventId),
    timeUnixNano: timeOf(time),
    severityNumber: Number(number),
    severityText: severityOf(number, severity),
    body: textOf(body),
    eventType: textOf(type),
    attributes: attributesOf(line, head),
    line,
  };
}

/** Parses a JSON string. @param quoted missing only for optional groups of a pattern */
function textOf(quoted = ''): string {
  return quoted.includes('\\') ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);
}

function timeOf(digits = ''): UnixNano {
  return parseUnixNano(digits) ?? otherwise();
}

function jsonOf(json = ''): JsonValue {
  return json === 'null' ? null : (JSON.parse(json) as JsonValue);
}

/** Reads the severity's text; without a number it has to be empty. */
function severityOf(number: string | undefined, quoted: string | undefined): string {
  const text = textOf(quoted);
  if (number === '0' && text !== '') throw OTHERWISE;
  return text;
}

/** Reads the attributes, which end the line. */
function attributesOf(line: string, { length }: string): Attributes {
  if (!line.endsWith('}')) throw OTHERWISE;
  const json = line.slice(length, -1);
  if (SHALLOW.test(json)) return Attributes.fromJson(json);
  const value = JSON.parse(json) as JsonValue;
  if (!isJsonObject(value)) throw OTHERWISE;
  return Attributes.parsed(json, value);
}

function linksOf(value: JsonValue): readonly SpanLink[] | null {
  if (value === null) return null;
  if (!Array.isArray(value)) throw OTHERWISE;
  return (value as readonly JsonValue[]).map((link) => {
    if (!isJsonObject(link) || Object.keys(link).join() !== 'trace_id,span_id,attributes') throw OTHERWISE;
    const { trace_id: trace, span_id: span, attributes } = link;
    if (typeof trace !== 'string' || typeof span !== 'string' || !isJsonObject(attributes)) throw OTHERWISE;
    return {
      traceId: parseTraceId(trace) ?? otherwise(),
      spanId: parseSpanId(span) ?? otherwise(),
      attributes: Attributes.of(attributes),
    };
  });
}

function otherwise(): never {
  throw OTHERWISE;
}
