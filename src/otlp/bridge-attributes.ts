import { isNestedTooDeep, type JsonObject } from '../record/attributes.js';
import { tryParseRecordLine } from '../record/record-line.js';
import { severityNumberOf } from '../record/severity.js';
import type { LogRecord, SpanEnd, TelemetryRecord } from '../record/telemetry-record.js';
import { spanStartOf } from './attribute-schema.js';

/**
 * Attributes that the bridge itself puts on OTLP when it converts records, for what OTLP has no place for; reading them
 * gives the records back whole. The engine sends none of them.
 */
export const BRIDGE_ATTRIBUTE = {
  eventType: 'run_bridge.event_type',
  severityNumber: 'run_bridge.severity_number',
  severityText: 'run_bridge.severity_text',
  eventId: 'run_bridge.event_id',
  spanName: 'run_bridge.span_name',
  unknownFields: 'run_bridge.unknown_fields',
  /** The SpanStart's line, where it is not what `spanStartOf` makes of the end. */
  spanStart: 'run_bridge.span_start',
  /** `ended` and `started`: the records contain only that half of the span. */
  only: 'run_bridge.only',
  /** A whole record as its line, on a log record that represents it: sent to a bridge while spans are still under way. */
  record: 'run_bridge.record',
} as const;

/** What all of them begin with. */
export const BRIDGE_PREFIX = 'run_bridge.';

/** What a bridge put beside the attributes of a span or log record: texts by name. */
export type BridgeAttributes = ReadonlyMap<string, string>;

/** The records of a span that another bridge sent. @param end as decoded without the attributes of the bridge */
export function recordsOfSpan(end: SpanEnd, bridge: BridgeAttributes): readonly TelemetryRecord[] {
  const severityText = bridge.get(BRIDGE_ATTRIBUTE.severityText) ?? end.severityText;
  const severityNumber = Number(bridge.get(BRIDGE_ATTRIBUTE.severityNumber) ?? 0) || severityNumberOf(severityText);
  const whole = withUnknownFields({ ...end, severityNumber, severityText }, bridge);
  const only = bridge.get(BRIDGE_ATTRIBUTE.only);
  if (only === 'ended') return [whole];
  const line = bridge.get(BRIDGE_ATTRIBUTE.spanStart);
  const start = line === undefined ? undefined : tryParseRecordLine(line);
  if (only === 'started') return start === undefined ? [] : [start];
  return [start ?? spanStartOf(whole), whole];
}

/** The record that a log record stands for; only one of the trace that the log record names. */
export function carriedRecord(bridge: BridgeAttributes, traceId: string): TelemetryRecord | undefined {
  const line = bridge.get(BRIDGE_ATTRIBUTE.record);
  const carried = line === undefined || isNestedTooDeep(line) ? undefined : tryParseRecordLine(line);
  return carried?.traceId === traceId ? carried : undefined;
}

/** The record of a log record that another bridge sent. @param log as decoded without the attributes of the bridge */
export function recordOfLog(log: LogRecord, bridge: BridgeAttributes): LogRecord {
  const spanName = bridge.get(BRIDGE_ATTRIBUTE.spanName) ?? null;
  const eventId = bridge.get(BRIDGE_ATTRIBUTE.eventId) ?? null;
  return withUnknownFields({ ...log, spanName, eventId }, bridge);
}

function withUnknownFields<T extends TelemetryRecord>(record: T, bridge: BridgeAttributes): T {
  const kept = jsonObject(bridge.get(BRIDGE_ATTRIBUTE.unknownFields));
  return kept === undefined ? record : { ...record, unknownFields: { ...kept, ...record.unknownFields } };
}

/** A JSON object that a bridge wrote into an attribute; `undefined` where it is absent or not one. */
function jsonObject(text: string | undefined): JsonObject | undefined {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as JsonObject;
  } catch {
    return undefined;
  }
}
