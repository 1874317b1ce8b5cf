import type { Clock } from '../core/clock.js';
import type { Logger } from '../core/logger.js';
import type { RecordLogReader } from '../log/record-log.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { RunStore } from '../storage/run-store.js';
import type { RunListener } from './run-event.js';
import type { StepReader } from './trace-steps.js';
import type { RunSummary } from './verdict.js';

/** How a tracker judges and what it holds. */
export interface RunTrackerConfig {
  /**
   * Quiet period after both the invocation span and the process span ended, in milliseconds. Default 500: the engine sends its last
   * log records beside its last spans, in a separate request.
   */
  readonly quietAfterProcessMs: number;
  /**
   * Quiet period after only one of the two ended, in milliseconds. Default 2,000. After a process span alone (fail-fast, an interrupt)
   * the last log records show how it ended.
   */
  readonly quietAfterInvocationMs: number;
  /** Silence after which an invocation without an end is lost, in milliseconds. Default 600,000. */
  readonly silenceMs: number;
  /** Runs whose records are summed up in memory; beyond it the one idle longest is dropped and read again when needed. Default 200. */
  readonly maxOpenRuns: number;
  /**
   * Memory of all runs, in bytes; beyond it those idle longest are evicted too, except runs that
   * were active in the last seconds. Default 24 MiB.
   */
  readonly maxMemoryBytes: number;
  /** The same of runs whose end was reported: all that comes to them is what is late. Default 4 MiB. */
  readonly maxSettledBytes: number;
  /** How often the end of a run is notified again after a listener failed (full disk), before the next start does it. Default 30, about half an hour. */
  readonly maxRetries: number;
  /** How long a finished run is kept in memory for late records, in milliseconds. Default 60,000. */
  readonly evictAfterMs: number;
}

/** The default settings. */
export const RUN_TRACKER_DEFAULTS: RunTrackerConfig = {
  quietAfterProcessMs: 500,
  quietAfterInvocationMs: 2_000,
  silenceMs: 600_000,
  maxOpenRuns: 200,
  maxMemoryBytes: 24 * 1024 * 1024,
  maxSettledBytes: 4 * 1024 * 1024,
  maxRetries: 30,
  evictAfterMs: 60_000,
};

/** What a tracker works with. */
export interface RunTrackerDeps {
  readonly reader: RecordLogReader;
  readonly store: RunStore;
  /** Notified in this order, one event of a run at a time. */
  readonly listeners: readonly RunListener[];
  /** Maps the records of a trace to steps; left out if no commands run here. */
  readonly steps?: StepReader;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Maintains `run.json` beside the log; if left out, none is written. */
  readonly file?: { write(run: RunSummary): Promise<void> };
  /**
   * Traces that have a record log. At the start those without a row, or with a log longer than their row says, are read
   * too: the process may have died between an append and the row. If left out, only the rows count.
   */
  readonly listTraces?: () => Promise<readonly TraceId[]>;
}
