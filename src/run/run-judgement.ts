import type { InvocationSummary } from './run-summary.js';

/** A run's invocations at one moment. */
export interface RunJudgement {
  /** With a verdict each where it is over. */
  readonly invocations: readonly InvocationSummary[];
  /** When the next of them is over unless more records come, in monotonic milliseconds; `null` when all are. */
  readonly nextEndMs: number | null;
}

/** Which of a run's invocations are over at one moment; tells nothing else of them, which is what takes time. */
export interface RunEnding {
  readonly count: number;
  readonly overCount: number;
  /** As in `RunJudgement`. */
  readonly nextEndMs: number | null;
}
