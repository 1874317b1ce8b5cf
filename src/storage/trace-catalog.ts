import type { TraceId } from '../record/ids.js';

/** A run of one engine command without a registered step, and its place. */
export interface UnnamedRun {
  readonly traceId: TraceId;
  /** Position of the command in its trace, from 1. */
  readonly commandIndex: number;
  readonly runId: number;
  readonly job: string;
  readonly environment: string | null;
  readonly project: string | null;
}

/** The run that a step's telemetry belongs to. */
export interface RunOrigin {
  readonly stepId: string;
  readonly runId: number;
  readonly job: string;
  readonly environment: string | null;
}

/** Which traces are of which runs, as an account sees them: another's are as if they were not there. */
export interface TraceCatalog {
  /** Runs that the trace holds commands of, the earliest first. */
  runsOf(accountId: number, traceId: TraceId): Promise<readonly number[]>;
  /** The runs whose commands the trace holds, of any account. */
  originsOf(traceId: TraceId): Promise<readonly RunOrigin[]>;
  /** All traces of the account's runs, but none that holds a command of another account's run as well. */
  listTraces(accountId: number): Promise<readonly TraceId[]>;
  /** The traces that hold commands of a run. */
  tracesOf(runId: number): Promise<readonly TraceId[]>;
  /** Runs without a registered step whose id is in no file. @param accountId if left out: of all accounts */
  listUnnamed(accountId?: number): Promise<readonly UnnamedRun[]>;
}
