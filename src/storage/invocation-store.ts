import type { TraceId } from '../record/telemetry-record.js';
import type { RunRow } from './run-store.js';

/** The names for an invocation without a registered step; `null` for the default. */
export interface RunScope {
  readonly job: string;
  readonly environment: string | null;
  readonly project: string | null;
}

/** The saved state of an invocation. */
export interface InvocationNote {
  /** Position in the trace, from 1. */
  readonly index: number;
  /** Whose it is; `null` for the first account. */
  readonly accountId: number | null;
  /** The registered step; `null` if the invocation is a run by itself. */
  readonly stepId: string | null;
  /** The step in its telemetry, whether or not it is registered; `null` if there is none. */
  readonly namedStepId: string | null;
  /** When the import that read it began, in milliseconds since 1970; left out if its telemetry arrived live. */
  readonly importBeganUnixMs?: number;
  /** The command line; `null` until known. */
  readonly command: string | null;
  readonly verdict: 'success' | 'error' | 'canceled' | 'lost' | null;
  readonly statusMessage: string | null;
  readonly startedUnixMs: number;
  /** Of its last record. */
  readonly endedUnixMs: number;
  /** Whether its Parquet can be read. */
  readonly isSaved: boolean;
  /** File name in the trace's folder. */
  readonly parquetFile: string;
  readonly engineVersion: string | null;
  readonly gitBranch: string | null;
  readonly gitSha: string | null;
  /** The place of its run, if it is a run by itself. */
  readonly place: RunScope;
}

/** All invocations of a trace. */
export interface TraceNote {
  readonly traceId: TraceId;
  readonly invocations: readonly InvocationNote[];
}

/** The invocations and the step of each. Saving them creates and updates runs. */
export interface InvocationStore {
  /**
   * Saves traces, in one transaction: an invocation without a registered step gets a run with one step, and the statuses
   * of steps and runs are updated. Final values stay. Can be repeated.
   */
  note(notes: readonly TraceNote[], nowUnixMs: number): Promise<void>;
  /** Traces whose invocations can never be saved: they are skipped, and counted. */
  setAside(traceIds: readonly TraceId[]): Promise<void>;
  countSetAside(): Promise<number>;
  /** Those of them that were seen last, the latest first. */
  listSetAside(limit: number): Promise<readonly RunRow[]>;
  /** Traces with a row whose invocations were never saved, oldest first. */
  listUnnoted(limit: number): Promise<readonly RunRow[]>;
}
