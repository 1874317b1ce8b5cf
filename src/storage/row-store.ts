import type { TraceId } from '../record/ids.js';
import type { RunStart } from './add-run.js';
import type { CommandEnding } from './command-ending.js';
import type { RunRows } from './run-rows.js';
import type { RunRow } from './run-store.js';

/** A run's rows that are not in its file, or not as they are now. */
export interface UnkeptRun {
  readonly runId: number;
  readonly revision: number;
  readonly rows: RunRows;
}

/** A step of an unfinished run, according to the files of its trace. */
export interface NamedStep extends RunStart {
  readonly runId: number;
  readonly stepId: string;
  readonly stepIndex: number;
  readonly traceId: TraceId;
  readonly command: readonly string[];
  readonly endedUnixMs: number | null;
  /** `null` if it was running. */
  readonly ending: CommandEnding | null;
}

/** Rows of finished runs, for files beside the record logs, and back from there. */
export interface RowStore {
  /** Finished runs whose rows have changed since they were backed up, in the order of their ids. */
  listUnkept(limit: number): Promise<readonly UnkeptRun[]>;
  /** The rows of these runs are backed up as listed. @returns those that were removed meanwhile */
  noteKept(runs: readonly Pick<UnkeptRun, 'runId' | 'revision'>[]): Promise<readonly number[]>;
  /** Whether no run has ever been in this database. */
  isEmpty(): Promise<boolean>;
  /** Has new runs get numbers above this one. */
  giveNumbersAbove(runId: number): Promise<void>;
  /** Puts rows back as they were; what is there already stays. Numbers up to theirs are not given again. */
  restore(runs: readonly RunRows[]): Promise<void>;
  /** Restores steps without a backed-up row, and their runs by their ids. */
  restoreNamed(steps: readonly NamedStep[]): Promise<void>;
  /**
   * Restores traces whose runs were restored: those with only known invocations are not checked again.
   * @returns those that the next start has to check
   */
  restoreTraces(traces: readonly RunRow[]): Promise<readonly TraceId[]>;
}
