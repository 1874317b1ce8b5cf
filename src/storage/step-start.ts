/** A command that begins: one step of a run. */
export interface StepStart {
  /** Made up by whoever runs the command and unique; the command's telemetry carries it as resource attribute `run_bridge.step.id`. */
  readonly stepId: string;
  /** The user's name for the run (`--run-id`), under which several commands are its steps; `null` for a run of this one step. */
  readonly runKey: string | null;
  /** Default `adhoc`. The run keeps what its first step said; the same goes for the next three. */
  readonly job: string;
  readonly environment: string | null;
  readonly project: string | null;
  /** Why the run was started, for people to read. */
  readonly reason: string | null;
  /** A step whose run this one belongs to, whatever `runKey` says; left out where that decides. */
  readonly runOf?: string;
  /** The command and its arguments, with secrets taken out. */
  readonly command: readonly string[];
  readonly startedUnixMs: number;
  /** Whose run it is; default: the first account. */
  readonly accountId?: number;
  /** Whether the run is finished when this step has ended. Steps under way by then end in peace; a further one begins a new run. */
  readonly isLast: boolean;
}

/** The job of runs that nobody named. */
export const DEFAULT_JOB = 'adhoc';

/** Where a step stands. */
export interface StepPlace {
  /** Of the run; a number that is never given again. */
  readonly runId: number;
  /** Position in the run, from 1, in the order in which steps began. */
  readonly stepIndex: number;
  /** The run's job, as its first step said it. */
  readonly job: string;
}
