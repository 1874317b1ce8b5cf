import type { TraceId } from '../record/ids.js';
import type { CommandEnding } from '../storage/command-ending.js';
import type { FinishResult } from '../storage/execution-store.js';
import type { StepPlace, StepStart } from '../storage/step-start.js';

/**
 * Registers the steps of runs: which run a command is a step of, which traces its telemetry has, and how it ended.
 * Everything may be said again (an answer may be lost on the way); it counts once.
 */
export interface StepRegistry {
  /** A command begins. To be said before it is started; what cannot be started ends as `notStarted`. @throws StepRegistryError */
  register(start: StepStart): Promise<StepPlace>;
  /**
   * A trace's records are, or will be, of this step. Need not be said where the records' resource carries
   * `run_bridge.step.id`; else it is to be said before they come. @throws StepRegistryError
   */
  attach(stepId: string, traceId: TraceId): Promise<void>;
  /**
   * The command left these artifacts, which are about to be uploaded: the run is not over before `endArtifacts`. To be said
   * before `end`. What was expected before stays expected. @throws StepRegistryError
   */
  expectArtifacts(stepId: string, paths: readonly string[]): Promise<void>;
  /**
   * No more artifacts are uploaded. Those that were expected and cannot be downloaded are noted as missing.
   * @param reason why not all were uploaded, in words; `null` where all were. @throws StepRegistryError
   */
  endArtifacts(stepId: string, reason: string | null): Promise<void>;
  /**
   * The command has ended, and all its records were handed over: its traces are judged at once.
   * @throws StepRegistryError
   */
  end(stepId: string, ending: CommandEnding, endedUnixMs: number): Promise<void>;
  /** The run takes no more steps. @throws StepRegistryError */
  finish(runKey: string): Promise<FinishResult>;
  /**
   * Whether the run of a step under way was cancelled, so that whoever runs the command is to interrupt it. `null` where the
   * registry knows nothing of that: asking again is no use. @throws StepRegistryError
   */
  isCancelled(stepId: string): Promise<boolean | null>;
}

/**
 * Why the registry did not take it.
 * - `unknownStep`: nothing was said of this step's beginning.
 * - `refused`: something is wrong with what was said; saying it again does not help.
 * - `unavailable`: the registry cannot be written or reached just now; it may be tried again.
 */
export type StepRegistryErrorCode = 'unknownStep' | 'refused' | 'unavailable';

/** The registry did not take what was said; the message is a line for the user. */
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
