import type { Clock } from '../component/clock.js';
import type { Logger } from '../component/logger.js';
import type { RetryPolicy } from '../delivery/retry-policy.js';
import type { TraceId } from '../record/ids.js';
import type { RunSummary } from '../run/run-summary.js';
import type { ForeignLogReader } from '../sink/foreign-log.js';
import type { RecordLogReader } from '../sink/record-log.js';
import type { CursorStore } from '../store/cursor-store.js';
import type { TraceCatalog } from '../store/trace-catalog.js';
import type { Destination } from './destination.js';
import type { LineSource } from './record-log-lines.js';
import type { RunMapper } from './run-mapper.js';

/** What a worker works with. */
export interface ExportWorkerDeps {
  readonly destination: Destination;
  readonly cursors: CursorStore;
  /** How long logs are, and the records of those that are given up, to be counted. */
  readonly reader: RecordLogReader;
  /** The same logs as lines: what is exported. */
  readonly lines: LineSource;
  /** The telemetry of other services; left out where it is not forwarded. */
  readonly foreign?: ForeignLogReader;
  /** Finds a run's summary, for runs that were finished before the worker started. */
  readonly runs: { find(traceId: TraceId): Promise<RunSummary | undefined> };
  /** Tells which runs a trace's commands belong to; left out where nobody knows. */
  readonly origins?: Pick<TraceCatalog, 'originsOf'>;
  /** Makes an empty mapper with the destination's options. */
  readonly createMapper: () => RunMapper;
  /** When a destination that takes nothing is tried again. */
  readonly retryPolicy: RetryPolicy;
  /** When a single request that failed is tried again while others succeed. */
  readonly requestRetryPolicy: RetryPolicy;
  readonly clock: Clock;
  readonly logger: Logger;
}
