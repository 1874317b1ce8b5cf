import type { TraceId } from '../record/ids.js';

/** What state.db remembers of a run, so that a start need not read all record logs. */
export interface RunRow {
  readonly traceId: TraceId;
  readonly firstSeenUnixMs: number;
  readonly lastSeenUnixMs: number;
  readonly state: 'open' | 'finished';
  /** Length of the record log that the row speaks of. */
  readonly logBytes: number;
  /** The run model's summary as JSON text. */
  readonly summary: string;
  /** Parquet files are written for the log up to this length; `null` before the first. */
  readonly parquetBytes: number | null;
}

/** Rows of runs. */
export interface RunStore {
  find(traceId: TraceId): Promise<RunRow | undefined>;
  save(rows: readonly RunRow[]): Promise<void>;
  /** Runs that are open, or whose Parquet lags behind their log. */
  listUnfinished(): Promise<readonly RunRow[]>;
  /** Newest first. */
  list(limit: number): Promise<readonly RunRow[]>;
}
