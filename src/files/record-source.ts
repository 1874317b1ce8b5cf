import { CliError, EXIT } from '../cli/command.js';
import { resourceKey, UNKNOWN_RESOURCE } from '../record/attributes.js';
import type { Delivery, RecordBatch } from '../record/record-batch.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';

/** A part of a file that is no telemetry and was skipped. */
export interface Reject {
  /** Its location, for example `line 12` or `row 7`; lines count from 1, rows from 0. */
  readonly place: string;
  readonly reason: string;
  /** The number of records: 1 for a line or row, more for a request that was accepted in part. */
  readonly count: number;
  /** Offset of the line in the file, in bytes; omitted if the format has no lines. */
  readonly offset?: number;
  /** The first 4 KiB of the line. */
  readonly text?: string;
}

/** A part of a source. */
export interface SourceChunk {
  /** The records in order; a batch is a part of one trace and resource. */
  readonly delivery: Delivery;
  readonly rejects: readonly Reject[];
  /** Bytes of the source read by the end of this chunk; for Parquet in proportion to its rows. */
  readonly bytesRead: number;
}

/** A file or pipe with telemetry. */
export interface RecordSource {
  readonly path: string;
  /** Length of the file in bytes; 0 for a pipe, whose length is unknown. */
  readonly sizeBytes: number;
  /**
   * Reads it from the beginning, in chunks of about 1 MiB of lines or 10,000 rows.
   * @throws SourceError if it cannot be read further
   */
  read(signal: AbortSignal): AsyncIterable<SourceChunk>;
}

/** Why a source cannot be read. */
export type SourceErrorCode = 'notFound' | 'unknownFormat' | 'unreadable';

/** A source cannot be read; the message names it and says what to do. */
export class SourceError extends CliError {
  override readonly name = 'SourceError';
  constructor(
    readonly code: SourceErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(EXIT.failed, message, options);
  }
}

/** Splits records without a resource into batches of one trace each, in order. */
export function batchesOf(records: readonly TelemetryRecord[]): RecordBatch[] {
  const batches: { traceId: RecordBatch['traceId']; resource: RecordBatch['resource']; records: TelemetryRecord[] }[] =
    [];
  for (const record of records) {
    const last = batches.at(-1);
    if (last?.traceId === record.traceId) last.records.push(record);
    else batches.push({ traceId: record.traceId, resource: UNKNOWN_RESOURCE, records: [record] });
  }
  return batches;
}

/** Joins batches of the same trace and resource; the order within each stays. */
export function joinBatches({ batches, passthrough }: Delivery): Delivery {
  const joined = new Map<string, RecordBatch & { readonly records: TelemetryRecord[] }>();
  for (const batch of batches) {
    const key = batch.traceId + resourceKey(batch.resource);
    const known = joined.get(key);
    if (known === undefined) joined.set(key, { ...batch, records: [...batch.records] });
    else for (const record of batch.records) known.records.push(record);
  }
  return { batches: [...joined.values()], passthrough };
}
