import type { LoggedRecord } from '../../../../src/log/record-log.js';
import { Attributes, type JsonObject } from '../../../../src/record/attributes.js';
import { parseTraceId, type TelemetryRecord } from '../../../../src/record/telemetry-record.js';
import { spanId } from './mapped-run.js';
import { ENGINE } from './read-sample.js';

const traceId = parseTraceId('000000000000000000000000000000ab') ?? fail();
const V1 = 'v1.public.events.fusion.';

/** What a made record says; times in milliseconds. */
export interface Made {
  readonly id: number;
  readonly parent?: number;
  readonly type?: string;
  readonly name?: string;
  readonly fromMs?: number;
  readonly atMs: number;
  readonly attributes?: JsonObject;
}

export function start(made: Made): TelemetryRecord {
  return { ...common(made), recordType: 'SpanStart', startTimeUnixNano: nanos(made.atMs) };
}

export function end(made: Made): TelemetryRecord {
  const times = { startTimeUnixNano: nanos(made.fromMs ?? made.atMs), endTimeUnixNano: nanos(made.atMs) };
  return { ...common(made), recordType: 'SpanEnd', ...times, status: { code: 1, message: null } };
}

export function log(made: Made, body = 'error'): TelemetryRecord {
  const { spanId: id, traceId: trace, severityNumber, severityText, attributes } = common(made);
  return {
    recordType: 'LogRecord',
    traceId: trace,
    spanId: id,
    spanName: null,
    eventId: null,
    timeUnixNano: nanos(made.atMs),
    severityNumber,
    severityText,
    eventType: `${V1}${made.type ?? 'log.LogMessage'}`,
    attributes,
    body,
  };
}

/** Records as they would stand in a record log, 100 bytes each. */
export function logged(records: readonly TelemetryRecord[]): readonly LoggedRecord[] {
  return records.map((record, index) => ({
    record,
    resource: ENGINE,
    offset: index * 100,
    endOffset: index * 100 + 100,
  }));
}

/** The span id of a number. */
export function idOf(id: number): string {
  return id.toString(16).padStart(16, '0');
}

function common(made: Made) {
  return {
    traceId,
    spanId: spanId(idOf(made.id)),
    spanName: made.name ?? `Phase: P${made.id}`,
    parentSpanId: made.parent === undefined ? null : spanId(idOf(made.parent)),
    links: null,
    severityNumber: 9,
    severityText: 'INFO',
    eventType: `${V1}${made.type ?? 'phase.PhaseExecuted'}`,
    attributes: Attributes.of(made.attributes ?? {}),
  };
}

function nanos(ms: number): bigint {
  return 1_700_000_000_000_000_000n + BigInt(ms) * 1_000_000n;
}

function fail(): never {
  throw new Error('not a trace id');
}
