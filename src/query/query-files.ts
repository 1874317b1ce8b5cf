import type { UnnamedRun } from '../store/trace-catalog.js';

/** The files that a query sees, and nothing else; paths are relative to the folder of runs. */
export interface QueryFiles {
  /** Folder of the runs, absolute. */
  readonly runsFolder: string;
  /** `<trace id>/telemetry.parquet`, `<trace id>/telemetry-2.parquet` … */
  readonly parquet: readonly string[];
  /** `<trace id>/run.json` */
  readonly summaries: readonly string[];
  /** Runs of commands that nobody named: their `run.json` does not tell the number. */
  readonly unnamed: readonly UnnamedRun[];
  /** Runs beyond the limit of files, which the query does not see: those written to longest ago. */
  readonly leftOutCount: number;
}
