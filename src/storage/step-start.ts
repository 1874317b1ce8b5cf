/** A command that begins: one step of a run. */
export interface StepStart {
  /** A unique id chosen by the program that runs the command; the command's telemetry has it as resource attribute `run_bridge.step.id`. */
  readonly stepId: string;
  /** The user's name for the run (`--run-id`), under which several commands are its steps; `null` for a run of this one step. */
  readonly runKey: string | null;
  /** Default `adhoc`. The run keeps the value of its first step, like the next three. */
  readonly job: string;
  readonly environment: string | null;
  readonly project: string | null;
  /** Why the run was started, for people to read. */
  readonly reason: string | null;
  /** A step of the same run, whatever `runKey` is; left out if `runKey` decides. */
  readonly runOf?: string;
  /** The command and its arguments, with secrets taken out. */
  readonly command: readonly string[];
  readonly startedUnixMs: number;
  /** Whose run it is; default: the first account. */
  readonly accountId?: number;
  /** Whether the run finishes with this step. Running steps may end; a further one starts a new run. */
  readonly isLast: boolean;
}

/** The job of runs without a name. */
export const DEFAULT_JOB = 'adhoc';

/** Where a step stands. */
export interface StepPosition {
  /** Of the run; a number that is never given again. */
  readonly runId: number;
  /** Position in the run, from 1, in the order in which steps began. */
  readonly stepIndex: number;
  /** The run's job, from its first step. */
  readonly job: string;
  /** Why the run was started, from its first step. */
  readonly reason: string | null;
  readonly accountId: number;
  readonly jobId: number;
  readonly projectId: number;
  readonly environmentId: number;
}
