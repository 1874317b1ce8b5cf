import type { TraceId } from '../record/telemetry-record.js';
import type { CommandEnding } from './command-ending.js';
import type { StepPosition, StepStart } from './step-start.js';

/**
 * Whether a run accepts further steps (`open`), ends with the running ones (`closing`), or has ended (`finished`).
 */
export type ExecutionState = 'open' | 'closing' | 'finished';

/** A run: one execution of a job, made of steps. */
export interface ExecutionRow {
  readonly runId: number;
  /** The user's name for it (`--run-id`); `null` if there is none. */
  readonly runKey: string | null;
  readonly job: string;
  readonly environment: string | null;
  readonly project: string | null;
  readonly reason: string | null;
  readonly state: ExecutionState;
  readonly startedUnixMs: number;
  /** `null` until it is over. */
  readonly endedUnixMs: number | null;
  /** Steps registered so far. */
  readonly stepCount: number;
  /** Those that ended, and not with exit code 0. */
  readonly failedStepCount: number;
}

/** A run with a name that accepts steps and has none running. */
export interface IdleRun {
  readonly runKey: string;
  /** Whose it is: accounts have names of their own. */
  readonly accountId: number;
}

/** A step: one command of a run. */
export interface StepRow {
  readonly stepId: string;
  readonly stepIndex: number;
  readonly run: ExecutionRow;
  readonly command: readonly string[];
  readonly startedUnixMs: number;
  /** Both `null` while it is running. */
  readonly endedUnixMs: number | null;
  readonly ending: CommandEnding | null;
  /** Traces that contain its records, as far as known. */
  readonly traceCount: number;
  /** The program that will report its end: this one (`local`), or another one over HTTP (`remote`). */
  readonly reporter: StepReporter;
}

/** See `StepRow.reporter`. */
export type StepReporter = 'local' | 'remote';

/** What is to be done with a run that is cancelled. */
export interface CancelResult {
  /** Its running steps; it ends with them. */
  readonly runningCount: number;
}

/** A step that ended. */
export interface EndedStep {
  readonly step: StepRow;
  /** Whether it is new. */
  readonly isNew: boolean;
}

/** The outcome of finishing a run. */
export type FinishResult =
  | { readonly kind: 'finished'; readonly run: ExecutionRow }
  /** Steps of it are running; it ends with them. */
  | { readonly kind: 'closing'; readonly run: ExecutionRow; readonly runningCount: number }
  | { readonly kind: 'alreadyFinished'; readonly run: ExecutionRow }
  | { readonly kind: 'unknownRun' };

/** Artifacts that a step is to have before its run is over. */
export interface ExpectedArtifacts {
  readonly runId: number;
  readonly stepIndex: number;
  readonly paths: readonly string[];
}

/** A step whose artifacts are being uploaded. */
export interface UploadingStep {
  readonly stepId: string;
  readonly reporter: StepReporter;
}

/** Artifacts that never arrived. */
export interface MissingArtifacts {
  readonly paths: readonly string[];
  /** Why, in words. */
  readonly reason: string;
}

/** Rows of runs, their steps, and the traces that the steps' telemetry has. */
export interface ExecutionStore {
  /** Adds a step, and its run if none accepts it. A known step stays unchanged. */
  begin(start: StepStart, reporter: StepReporter): Promise<StepPosition>;
  /** Adds a step to a run; `undefined` where that takes no more steps: it was cancelled, or is over. */
  beginIn(runId: number, start: StepStart, reporter: StepReporter): Promise<StepPosition | undefined>;
  /** Records that a trace contains records of a step; `false` for an unknown step. */
  attach(stepId: string, traceId: TraceId): Promise<boolean>;
  /**
   * Records how a step ended, and the end of its run if it was the last one. A known end is not overwritten, unless it is
   * unknown how it ended. `undefined` for an unknown step.
   */
  end(stepId: string, ending: CommandEnding, endedUnixMs: number): Promise<EndedStep | undefined>;
  /**
   * Records expected artifacts of a step: its run does not end before `endArtifacts`. Earlier ones stay expected,
   * also if they were given up meanwhile. `false` for an unknown step.
   */
  expectArtifacts(stepId: string, paths: readonly string[]): Promise<boolean>;
  /** The expected artifacts of a step while its upload has not ended; `undefined` if there are none. */
  expectedArtifacts(stepId: string): Promise<ExpectedArtifacts | undefined>;
  /** Records that all expected artifacts can be downloaded (`null`), or which never arrived; the run may end with it. */
  endArtifacts(stepId: string, missing: MissingArtifacts | null, nowUnixMs: number): Promise<void>;
  /** Steps whose artifacts are being uploaded. */
  listUploading(): Promise<readonly UploadingStep[]>;
  /** The run accepts no more steps, and ends when none is running. @param accountId default: the first account */
  finish(runKey: string, accountId?: number): Promise<FinishResult>;
  /**
   * Marks a run that is not over as cancelled: it takes no more steps, and ends with that status. `undefined` where the
   * account has no such run that is not over.
   */
  cancel(accountId: number, runId: number, nowUnixMs: number): Promise<CancelResult | undefined>;
  /**
   * Sets the status of runs whose commands have ended and whose telemetry was awaited: a trace without any records
   * is no longer awaited.
   */
  settle(nowUnixMs: number): Promise<void>;
  /** Whether the run of a step was cancelled. */
  isCancelled(stepId: string): Promise<boolean>;
  findStep(stepId: string): Promise<StepRow | undefined>;
  /** Registered steps with records in a trace, in the order in which they started. */
  stepsOf(traceId: TraceId): Promise<readonly StepRow[]>;
  /** Traces that hold records of a step. */
  tracesOf(stepId: string): Promise<readonly TraceId[]>;
  /** A run's steps, by their position. */
  listSteps(runId: number): Promise<readonly StepRow[]>;
  /** Registered running steps, oldest first. */
  listRunning(): Promise<readonly StepRow[]>;
  /** Records a sign of life of the program that runs a step. */
  noteHeard(stepId: string, nowUnixMs: number): Promise<void>;
  /** Remote steps that are running or uploading artifacts, without a sign of life since that time. */
  listSilent(sinceUnixMs: number): Promise<readonly StepRow[]>;
  /** Runs that accept steps and have had none running since that time, oldest first. */
  listIdle(sinceUnixMs: number): Promise<readonly IdleRun[]>;
}
