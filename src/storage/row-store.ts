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

/** A step of a run that was not over, as the files of its trace tell of it. */
export interface NamedStep extends RunStart {
  readonly runId: number;
  readonly stepId: string;
  readonly stepIndex: number;
  readonly traceId: TraceId;
  readonly command: readonly string[];
  readonly endedUnixMs: number | null;
  /** `null` where it was under way. */
  readonly ending: CommandEnding | null;
}

/** Rows of runs that are over, for files beside the record logs, and back from there. */
export interface RowStore {
  /** Runs that are over and whose rows have changed since they were kept, in the order of their numbers. */
  listUnkept(limit: number): Promise<readonly UnkeptRun[]>;
  /** The rows of these runs are kept as they were when they were listed. @returns those that are gone meanwhile */
  noteKept(runs: readonly Pick<UnkeptRun, 'runId' | 'revision'>[]): Promise<readonly number[]>;
  /** Whether no run has ever been in this database. */
  isEmpty(): Promise<boolean>;
  /** Has new runs get numbers above this one. */
  giveNumbersAbove(runId: number): Promise<void>;
  /** Puts rows back as they were; what is there already stays. Numbers up to theirs are not given again. */
  restore(runs: readonly RunRows[]): Promise<void>;
  /** Puts steps back that no kept row tells of, and their runs by their numbers. */
  restoreNamed(steps: readonly NamedStep[]): Promise<void>;
  /**
   * Puts traces back whose runs were: those of which every invocation is known need not be looked at again.
   * @returns those that the next start has to look at
   */
  restoreTraces(traces: readonly RunRow[]): Promise<readonly TraceId[]>;
}
