import type { TraceId } from '../record/ids.js';

/** A run that is over. */
export interface EndedRun {
  readonly runId: number;
  readonly finishedUnixMs: number;
}

/** Runs that go together, since traces hold records of several of them; mostly one run with the traces of its steps. */
export interface RunGroup {
  readonly runIds: readonly number[];
  readonly traceIds: readonly TraceId[];
  /** When the last part of it ended, or its last record arrived, whichever is later. */
  readonly endedUnixMs: number;
  /** Whether any part of it is active: a run, a trace without a verdict, or one that a process owns. */
  readonly isLive: boolean;
  /** Whether one of the destinations has not got all of it, and has not given it up. */
  readonly isPending: boolean;
}

/**
 * Files to remove, whose rows are gone: those of a trace; its folder if that has already been
 * moved (`moved`); an object in the shared bucket; all files of a run by its id, or only its artifacts.
 */
export interface Removal {
  readonly kind: 'trace' | 'moved' | 'object' | 'run' | 'artifacts';
  readonly id: string;
}

/** What something takes. */
export interface RetainedSize {
  readonly fileCount: number;
  readonly sizeBytes: number;
}

/** Where files of traces are: they are counted and removed there. */
export interface TelemetryPlace {
  /** What all of them take, in bytes. */
  totalBytes(signal: AbortSignal): Promise<number>;
  usageOf(traceIds: readonly TraceId[]): Promise<RetainedSize>;
  /** Moves files of a removal out of the way of listings; new files under the same names are not affected. */
  hide(removals: readonly Removal[]): Promise<void>;
  /** Removes files of a trace. False if they cannot be reached from here: they stay recorded. Can be repeated. */
  remove(removal: Removal): Promise<boolean>;
}

/**
 * Expired data, and removals in progress. Rows go first, in one transaction that records the files; then the files;
 * then the record of them. So the next start knows everything that a crash leaves.
 */
export interface RetentionStore {
  /**
   * Runs that are over, of all accounts, the oldest end first.
   * @param what `artifacts` leaves out those whose artifacts were removed
   * @param after the last one of the page before
   */
  listEnded(
    what: 'telemetry' | 'artifacts',
    beforeUnixMs: number,
    after: EndedRun | null,
    limit: number,
  ): Promise<readonly EndedRun[]>;
  /** Everything removed together with a run. `undefined` if the run is gone, or more belongs to it than is removed at a time. */
  groupOf(runId: number, destinations: readonly string[]): Promise<RunGroup | undefined>;
  /**
   * Removes all rows of runs and their traces, and records their files as removals.
   * @returns the removals; `undefined` if the group has changed, and nothing was done.
   */
  removeRuns(
    group: RunGroup,
    destinations: readonly string[],
    nowUnixMs: number,
  ): Promise<readonly Removal[] | undefined>;
  /** Records that a run's artifacts are removed. `undefined` if it is gone. */
  removeArtifacts(runId: number, nowUnixMs: number): Promise<Removal | undefined>;
  /** Removals that are not over, oldest first. */
  listRemovals(): Promise<readonly Removal[]>;
  /** Removals of traces are ones of folders that were moved away: one of the same name that comes now is another. @returns the removals as they are now */
  noteMoved(removals: readonly Removal[]): Promise<readonly Removal[]>;
  /** The files of a removal are gone. */
  endRemoval(removal: Removal): Promise<void>;
}
