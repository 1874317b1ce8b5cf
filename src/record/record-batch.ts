import type { TraceId } from './ids.js';
import type { Resource } from './resource.js';
import type { TelemetryRecord } from './telemetry-record.js';

/** Records of one trace from one resource, in the order in which they came. */
export interface RecordBatch {
  readonly traceId: TraceId;
  readonly resource: Resource;
  readonly records: readonly TelemetryRecord[];
}

/**
 * Telemetry of another service: kept as it came and forwarded unchanged.
 * `body` is one OTLP JSON message (`{"resourceSpans":[…]}` or `{"resourceLogs":[…]}`) on one line.
 */
export interface ForeignBatch {
  readonly signal: Signal;
  readonly body: string;
  readonly recordCount: number;
}

/** OTLP's signals that the bridge carries. */
export type Signal = 'traces' | 'logs';
