/** Limits and times of one destination's worker. */
export interface ExportWorkerOptions {
  /** Items in one request at most. Default 512. */
  readonly maxBatchItems: number;
  /** How long a span is held for events that come after it, once its run is quiet. Default 2,000 ms. */
  readonly eventHoldMs: number;
  /** How long appended records wait for more of them to share a request. Default 200 ms. */
  readonly batchDelayMs: number;
  /** Runs that hold a mapper at once. Others wait, closed; one that was closed reads its log again from the start. Default 64. */
  readonly maxOpenRuns: number;
  /** How long an open run may keep its mapper while others wait for one. Default 30,000 ms. */
  readonly openSliceMs: number;
  /** Appended records kept in memory to save reading them again, over all runs; beyond it they are read from the log. Default 8 MiB. */
  readonly maxLookAheadBytes: number;
  /** Runs that are sent at the same time, each with one request a signal. Default 1. */
  readonly maxConcurrentRuns: number;
}

/** The defaults. */
export const DEFAULT_EXPORT_WORKER_OPTIONS: ExportWorkerOptions = {
  maxBatchItems: 512,
  eventHoldMs: 2_000,
  batchDelayMs: 200,
  maxOpenRuns: 64,
  openSliceMs: 30_000,
  maxLookAheadBytes: 8 * 1024 * 1024,
  maxConcurrentRuns: 1,
};
