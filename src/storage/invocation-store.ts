import type { TraceId } from '../record/ids.js';
import type { RunRow } from './run-store.js';

/** The names of what an invocation that nobody ran under a name belongs to; `null` for the default. */
export interface RunPlace {
  readonly job: string;
  readonly environment: string | null;
  readonly project: string | null;
}

/** What is known of an invocation. */
export interface InvocationNote {
  /** Position in the trace, from 1. */
  readonly index: number;
  /** Whose it is; `null` for the first account. */
  readonly accountId: number | null;
  /** The step that somebody told of; `null` where the invocation is a run of its own. */
  readonly stepId: string | null;
  /** The step that its telemetry says it is of, whether or not somebody has told of it yet; `null` where it says none. */
  readonly namedStepId: string | null;
  /** When the import began that brought it, in milliseconds since 1970; left out where its telemetry came as it happened. */
  readonly importBeganUnixMs?: number;
  /** As it was typed; `null` until it is known. */
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
  /** Where its run belongs, if it is one of its own. */
  readonly place: RunPlace;
}

/** All invocations of a trace, as they are known now. */
export interface TraceNote {
  readonly traceId: TraceId;
  readonly invocations: readonly InvocationNote[];
}

/** Which invocations there are, and of which step each is. Whoever notes them brings runs into being and up to date. */
export interface InvocationStore {
  /**
   * Notes traces, in one transaction: an invocation of nobody's step gets a run of its own with one step, and the statuses
   * of steps and runs follow. What is final stays final. Everything may be noted again.
   */
  note(notes: readonly TraceNote[], nowUnixMs: number): Promise<void>;
  /** Traces whose invocations can never be noted: they are not looked at again, and are counted. */
  setAside(traceIds: readonly TraceId[]): Promise<void>;
  countSetAside(): Promise<number>;
  /** Those of them that were seen last, the latest first. */
  listSetAside(limit: number): Promise<readonly RunRow[]>;
  /** Traces with a row whose invocations were never noted, oldest first. */
  listUnnoted(limit: number): Promise<readonly RunRow[]>;
}
