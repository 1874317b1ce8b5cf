import type { TraceId } from '../record/telemetry-record.js';
import type { FinishResult } from '../storage/execution-store.js';
import type { CommandEnding, StepPosition, StepStart } from '../storage/steps.js';

/**
 * Registers the steps of runs: the run of each command, the traces of its telemetry, and how it ended.
 * Every call can be repeated (a response may be lost); repetitions have no effect.
 */
export interface StepRegistry {
  /** Registers a command before it is started; a command that cannot be started ends as `notStarted`. @throws StepRegistryError */
  register(start: StepStart): Promise<StepPosition>;
  /**
   * Attaches a trace to this step. Not needed if the records' resource has
   * `run_bridge.step.id`; else call it before they arrive. @throws StepRegistryError
   */
  attach(stepId: string, traceId: TraceId): Promise<void>;
  /**
   * Announces artifacts that are about to be uploaded: the run does not end before `endArtifacts`. Call it
   * before `end`. Earlier announcements stay. @throws StepRegistryError
   */
  expectArtifacts(stepId: string, paths: readonly string[]): Promise<void>;
  /**
   * Ends the upload of artifacts. Announced ones that cannot be downloaded are recorded as missing.
   * @param reason why artifacts were not uploaded; `null` if all were. @throws StepRegistryError
   */
  endArtifacts(stepId: string, reason: string | null): Promise<void>;
  /**
   * Records that a command has ended and all its records were handed over: its traces are judged at once.
   * @throws StepRegistryError
   */
  end(stepId: string, ending: CommandEnding, endedUnixMs: number): Promise<void>;
  /** Closes a run, which takes no more steps. @throws StepRegistryError */
  finish(runKey: string): Promise<FinishResult>;
  /**
   * Returns whether the run of a running step was cancelled, so that its command has to be interrupted. `null` if the
   * registry does not know: further calls are useless. @throws StepRegistryError
   */
  isCancelled(stepId: string): Promise<boolean | null>;
}

/**
 * Why the registry refused a call.
 * - `unknownStep`: the step is not registered.
 * - `refused`: the call is invalid; repeating it does not help.
 * - `unavailable`: the registry cannot be written or reached at the moment; the call can be repeated.
 */
export type StepRegistryErrorCode = 'unknownStep' | 'refused' | 'unavailable';

/** The registry refused a call; the message is a line for the user. */
export class StepRegistryError extends Error {
  override readonly name = 'StepRegistryError';
  constructor(
    readonly code: StepRegistryErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
