import type { Clock } from '../component/clock.js';
import type { Logger } from '../component/logger.js';
import type { TraceId } from '../record/ids.js';
import type { RecordLogReader } from '../sink/record-log.js';
import type { RunStore } from '../store/run-store.js';
import type { RunListener } from './run-event.js';
import type { RunSummary } from './run-summary.js';
import type { StepReader } from './trace-steps.js';

/** What a tracker works with. */
export interface RunTrackerDeps {
  readonly reader: RecordLogReader;
  readonly store: RunStore;
  /** Told in this order, one event of a run at a time. */
  readonly listeners: readonly RunListener[];
  /** Whose step a trace's records are; left out where nobody runs commands here. */
  readonly steps?: StepReader;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Keeps `run.json` beside the log; left out, none is written. */
  readonly file?: { write(run: RunSummary): Promise<void> };
  /**
   * Traces that have a record log. At the start those without a row, or whose log is longer than their row knows, are read
   * too: the process may have died between an append and the row. Left out, only the rows count.
   */
  readonly listTraces?: () => Promise<readonly TraceId[]>;
}
