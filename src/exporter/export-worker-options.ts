/** Limits and times of one destination's worker. */
export interface ExportWorkerOptions {
  /** Items in one request at most: of usual spans less than a megabyte. Default 1,024. */
  readonly maxBatchItems: number;
  /** How long a span is held for events that come after it, once its run is quiet. Default 2,000 ms. */
  readonly eventHoldMs: number;
  /** How long appended records wait for more of them to share a request. Default 200 ms. */
  readonly batchDelayMs: number;
  /** Requests of a signal at the same time; a destination may allow fewer. Default 4. */
  readonly maxInFlight: number;
  /** Mapped items of a signal that wait for a request; beyond it nothing more is read. Default 4,096. */
  readonly maxWaitingItems: number;
  /** Runs that hold a mapper at once. Others wait, closed; one that was closed reads its log again from the start. Default 1,024. */
  readonly maxOpenRuns: number;
  /** Memory that the mappers of all open runs may take together, as estimated. Default 64 MiB. */
  readonly maxOpenBytes: number;
  /** How long an open run may keep its mapper while others wait for one. Default 30,000 ms. */
  readonly openSliceMs: number;
  /** What waits longer than this is given up. Default 7 days; `null`: nothing is. */
  readonly maxBacklogAgeMs: number | null;
}

/** The defaults. */
export const DEFAULT_EXPORT_WORKER_OPTIONS: ExportWorkerOptions = {
  maxBatchItems: 1_024,
  eventHoldMs: 2_000,
  batchDelayMs: 200,
  maxInFlight: 4,
  maxWaitingItems: 4_096,
  maxOpenRuns: 1_024,
  maxOpenBytes: 64 * 1024 * 1024,
  openSliceMs: 30_000,
  maxBacklogAgeMs: 7 * 86_400_000,
};
