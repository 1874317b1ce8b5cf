import type { Resource } from './attributes.js';
import type { TelemetryRecord, TraceId } from './telemetry-record.js';

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

/** What one request, or one part of a file, brought. */
export interface Delivery {
  readonly batches: readonly RecordBatch[];
  readonly foreign: readonly ForeignBatch[];
  /** Gives back memory that its maker lends: to be called when it was consumed (or not), and nothing of it is read after. */
  release?(): void;
  /** Is called when all of it is durable, by consumers that know it before they resolve; it must not throw. */
  onDurable?(): void;
}

/** Takes records for good. */
export interface RecordConsumer {
  /**
   * Resolves when every record is durable (or was known already).
   * @throws ConsumeError when nothing, or not everything, could be taken; sending the same again is safe.
   */
  consume(delivery: Delivery): Promise<void>;
}

/** Why records were not taken: `overloaded` and `unavailable` pass, `refused` does not. */
export type ConsumeErrorCode = 'overloaded' | 'unavailable' | 'refused';

/** Records were not taken. */
export class ConsumeError extends Error {
  override readonly name = 'ConsumeError';
  constructor(
    readonly code: ConsumeErrorCode,
    message: string,
    /** How long the sender should wait before it tries again, in milliseconds. */
    readonly retryAfterMs: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
