import type { TraceId } from '../record/ids.js';
import type { CommandEnding } from './command-ending.js';
import type { StepPlace, StepStart } from './step-start.js';

/**
 * Whether a run takes further steps (`open`), ends with those that are under way (`closing`), or is over (`finished`).
 */
export type ExecutionState = 'open' | 'closing' | 'finished';

/** A run: one execution of a job, made of steps. */
export interface ExecutionRow {
  readonly runId: number;
  /** The user's name for it (`--run-id`); `null` where there is none. */
  readonly runKey: string | null;
  readonly job: string;
  readonly environment: string | null;
  readonly project: string | null;
  readonly reason: string | null;
  readonly state: ExecutionState;
  readonly startedUnixMs: number;
  /** `null` until it is over. */
  readonly endedUnixMs: number | null;
  /** Steps begun so far. */
  readonly stepCount: number;
  /** Those that ended, and not with exit code 0. */
  readonly failedStepCount: number;
}

/** A run under a name that takes steps and has none under way. */
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
  /** Both `null` while it is under way. */
  readonly endedUnixMs: number | null;
  readonly ending: CommandEnding | null;
  /** Traces that hold records of it, as far as known. */
  readonly traceCount: number;
  /** Who will say how it ends: this very program (`local`), or another one over HTTP (`remote`). */
  readonly teller: StepTeller;
}

/** See `StepRow.teller`. */
export type StepTeller = 'local' | 'remote';

/** What is to be done with a run that is cancelled. */
export interface CancelResult {
  /** Steps of it that are under way; it is over when they have ended. */
  readonly runningCount: number;
}

/** A step that ended. */
export interface EndedStep {
  readonly step: StepRow;
  /** Whether it was not known before. */
  readonly isNew: boolean;
}

/** What became of the wish to finish a run. */
export type FinishResult =
  | { readonly kind: 'finished'; readonly run: ExecutionRow }
  /** Steps of it are under way; it is over when they have ended. */
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
  readonly teller: StepTeller;
}

/** Artifacts that never came. */
export interface MissingArtifacts {
  readonly paths: readonly string[];
  /** Why, in words. */
  readonly reason: string;
}

/** Rows of runs, their steps, and the traces that the steps' telemetry has. */
export interface ExecutionStore {
  /** Adds a step, and its run where there is none that takes it. A step that is known stays where it is. */
  begin(start: StepStart, teller: StepTeller): Promise<StepPlace>;
  /** Adds a step to a run; `undefined` where that takes no more steps: it was cancelled, or is over. */
  beginIn(runId: number, start: StepStart, teller: StepTeller): Promise<StepPlace | undefined>;
  /** Notes that a trace holds records of a step; `false` for an unknown step. */
  attach(stepId: string, traceId: TraceId): Promise<boolean>;
  /**
   * Notes how a step ended, and that its run is over where it was the last. What is known already stays, unless it is
   * that nobody knows. `undefined` for an unknown step.
   */
  end(stepId: string, ending: CommandEnding, endedUnixMs: number): Promise<EndedStep | undefined>;
  /**
   * Notes artifacts that a step is to have: its run is not over before `endArtifacts`. Those that were noted before stay,
   * also where they were given up meanwhile. `false` for an unknown step.
   */
  expectArtifacts(stepId: string, paths: readonly string[]): Promise<boolean>;
  /** What is expected of a step, and no end was noted of; `undefined` where nothing is. */
  expectedArtifacts(stepId: string): Promise<ExpectedArtifacts | undefined>;
  /** Notes that all that was expected can be downloaded (`null`), or what never came; the run may be over with it. */
  endArtifacts(stepId: string, missing: MissingArtifacts | null, nowUnixMs: number): Promise<void>;
  /** Steps whose artifacts are being uploaded. */
  listUploading(): Promise<readonly UploadingStep[]>;
  /** The run takes no more steps, and is over when none is under way. @param accountId default: the first account */
  finish(runKey: string, accountId?: number): Promise<FinishResult>;
  /**
   * Marks a run that is not over as cancelled: it takes no more steps, and ends with that status. `undefined` where the
   * account has no such run that is not over.
   */
  cancel(accountId: number, runId: number, nowUnixMs: number): Promise<CancelResult | undefined>;
  /**
   * Gives runs their status whose commands have ended and whose telemetry was waited for: a trace of which nothing came
   * is waited for no longer.
   */
  settle(nowUnixMs: number): Promise<void>;
  /** Whether the run of a step was cancelled. */
  isCancelled(stepId: string): Promise<boolean>;
  findStep(stepId: string): Promise<StepRow | undefined>;
  /** Steps that somebody told of and a trace holds records of, in the order in which they began. */
  stepsOf(traceId: TraceId): Promise<readonly StepRow[]>;
  /** Traces that hold records of a step. */
  tracesOf(stepId: string): Promise<readonly TraceId[]>;
  /** A run's steps, by their position. */
  listSteps(runId: number): Promise<readonly StepRow[]>;
  /** Steps under way that somebody told of, oldest first. */
  listRunning(): Promise<readonly StepRow[]>;
  /** Notes that whoever runs a step's command was heard of. */
  noteHeard(stepId: string, nowUnixMs: number): Promise<void>;
  /** Steps under way, or uploading artifacts, told of from elsewhere, whose teller was not heard of since that time. */
  listSilent(sinceUnixMs: number): Promise<readonly StepRow[]>;
  /** Runs that take steps and have had none under way since that time, oldest first. */
  listIdle(sinceUnixMs: number): Promise<readonly IdleRun[]>;
}
