import type { Clock, RetryPolicy } from '../core/clock.js';
import type { Logger } from '../core/logger.js';
import type { ForeignLogReader } from '../log/foreign-segments.js';
import type { RecordLogReader } from '../log/record-log.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { RunSummary } from '../run/verdict.js';
import type { CursorStore } from '../storage/cursor-store.js';
import type { TraceCatalog } from '../storage/trace-catalog.js';
import type { Destination } from './destination.js';
import type { LineSource } from './record-log-lines.js';
import type { RunMapper } from './run-mapper.js';
import type { ExportTurns } from './run-schedule.js';

/** Limits and times of one destination's worker. */
export interface ExportWorkerOptions {
  /** Items in one request at most: of usual spans less than a megabyte. Default 1,024. */
  readonly maxBatchItems: number;
  /** How long a span waits for events that come after it, once its run is quiet. Default 2,000 ms. */
  readonly eventHoldMs: number;
  /** How long appended records wait for more of them to share a request. Default 500 ms. */
  readonly batchDelayMs: number;
  /** Requests of a signal at the same time; a destination may allow fewer. Default 4. */
  readonly maxInFlight: number;
  /** Mapped items of a signal that wait for a request; beyond it nothing more is read. Default 4,096. */
  readonly maxWaitingItems: number;
  /** Runs with a mapper at once. Others wait, closed; one that was closed reads its log again from the start. Default 1,024. */
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
  batchDelayMs: 500,
  maxInFlight: 4,
  maxWaitingItems: 4_096,
  maxOpenRuns: 1_024,
  maxOpenBytes: 64 * 1024 * 1024,
  openSliceMs: 30_000,
  maxBacklogAgeMs: 7 * 86_400_000,
};

/** The parts of the program that all workers share. */
export interface ExportDeps {
  readonly cursors: CursorStore;
  /** How long logs are, and the records of those that are given up, to be counted. */
  readonly reader: RecordLogReader;
  /** The same logs as lines: what is exported. */
  readonly lines: LineSource;
  /** Finds a run's summary, for runs that were finished before the worker started. */
  readonly runs: { find(traceId: TraceId): Promise<RunSummary | undefined> };
  /** Finds the runs that a trace's commands belong to; left out if unknown. */
  readonly origins?: Pick<TraceCatalog, 'originsOf'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly turns: ExportTurns;
}

/** The parts of one destination's worker. */
export interface ExportWorkerDeps extends ExportDeps {
  readonly destination: Destination;
  /** The telemetry of other services; left out where it is not forwarded. */
  readonly foreign?: ForeignLogReader;
  /** Makes an empty mapper with the destination's options. */
  readonly createMapper: () => RunMapper | Promise<RunMapper>;
  /** The same without waiting for anything: `undefined` until that can be. Left out: no run is taken live from its first record on. */
  readonly createMapperNow?: () => RunMapper | undefined;
  /** When a destination that takes nothing is tried again. */
  readonly retryPolicy: RetryPolicy;
  /** When a single request that failed is tried again while others succeed. */
  readonly requestRetryPolicy: RetryPolicy;
  /** Receives an error that nothing handled, once: the worker does nothing more. */
  readonly onFailed: (error: unknown) => void;
}
