import { CliError, EXIT } from '../cli/command.js';
import { resourceKey, UNKNOWN_RESOURCE } from '../record/attributes.js';
import type { Delivery, RecordBatch } from '../record/record-batch.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';

/** Something in a file that is no telemetry and was passed over. */
export interface Reject {
  /** Where it stands, for example `line 12` or `row 7`; lines count from 1, rows from 0. */
  readonly place: string;
  readonly reason: string;
  /** How many records that were: 1 for a line or row, more where a request was kept in part. */
  readonly count: number;
  /** Where the line begins, in bytes from the file's beginning; not for what has no lines. */
  readonly offset?: number;
  /** The line, or as much of it as is kept: at most 4 KiB. */
  readonly text?: string;
}

/** A part of a source. */
export interface SourceChunk {
  /** The records in the source's order; a batch is a part of one trace and resource. */
  readonly delivery: Delivery;
  readonly rejects: readonly Reject[];
  /** How much of the source was read by the end of this chunk, in bytes; for Parquet in proportion to its rows. */
  readonly bytesRead: number;
}

/** A file, or the like, that holds telemetry. */
export interface RecordSource {
  readonly path: string;
  /** Length of the file in bytes; 0 for a pipe, whose length nobody knows. */
  readonly sizeBytes: number;
  /**
   * Reads it from the beginning, in chunks of about 1 MiB of lines or 10,000 rows.
   * @throws SourceError when it cannot be read any further.
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

/** Cuts records without a resource into batches of one trace each; the order stays. */
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

/** Joins the parts of one trace and resource; in each the order stays. */
export function joinBatches({ batches, foreign }: Delivery): Delivery {
  const joined = new Map<string, RecordBatch & { readonly records: TelemetryRecord[] }>();
  for (const batch of batches) {
    const key = batch.traceId + resourceKey(batch.resource);
    const known = joined.get(key);
    if (known === undefined) joined.set(key, { ...batch, records: [...batch.records] });
    else for (const record of batch.records) known.records.push(record);
  }
  return { batches: [...joined.values()], foreign };
}
