import type { Delivery } from '../record/record-batch.js';

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

/** A stretch of a source. */
export interface SourceChunk {
  /** The records in the source's order; a batch is a stretch of one trace and resource. */
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
export class SourceError extends Error {
  override readonly name = 'SourceError';
  constructor(
    readonly code: SourceErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
