import type { Resource } from './attributes.js';
import type { TelemetryRecord, TraceId } from './telemetry-record.js';

/** Records of one trace from one resource, in the order in which they arrived. */
export interface RecordBatch {
  readonly traceId: TraceId;
  readonly resource: Resource;
  readonly records: readonly TelemetryRecord[];
}

/**
 * Telemetry of another service, which is stored as received and forwarded unchanged.
 * `body` is one OTLP JSON message (`{"resourceSpans":[…]}` or `{"resourceLogs":[…]}`) on one line.
 */
export interface PassthroughBatch {
  readonly signal: Signal;
  readonly body: string;
  readonly recordCount: number;
}

/** The OTLP signals that the bridge accepts. */
export type Signal = 'traces' | 'logs';

/** The contents of one request, or of one part of a file. */
export interface Delivery {
  readonly batches: readonly RecordBatch[];
  readonly passthrough: readonly PassthroughBatch[];
  /** Releases borrowed memory. To be called after the delivery was consumed or rejected; nothing of it may be read afterwards. */
  release?(): void;
  /** Called when all of it is durable, by consumers that know that before they resolve; must not throw. */
  onDurable?(): void;
}

/** Stores records durably. */
export interface RecordConsumer {
  /**
   * Resolves when every record is durable, or was already known.
   * @throws ConsumeError if not everything could be stored; sending the same again is safe
   */
  consume(delivery: Delivery): Promise<void>;
}

/** Why records were not accepted: `overloaded` and `unavailable` are temporary, `refused` is final. */
export type ConsumeErrorCode = 'overloaded' | 'unavailable' | 'refused';

/** Records were not accepted. */
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
