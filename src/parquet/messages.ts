import type { ParquetJob } from './parquet-job.js';

/** What the thread is started with. */
export interface ParquetThreadSetup {
  readonly dataFolder: string;
}

/** A job; the thread gets the next one when it has answered. */
export type ToParquetThread = ParquetJob;

/** What it answers. */
export type FromParquetThread =
  /** A line of the record log is no record; at its number or, where the log was read in records, its offset in bytes. */
  | { readonly type: 'damaged'; readonly traceId: string; readonly at: LinePlace; readonly reason: string }
  /** The job is done, or failed: then `error` says why. */
  | { readonly type: 'done'; readonly error: string | null };

/** Where a line is. */
export type LinePlace = { readonly line: number } | { readonly offset: number };
