import type { TraceId } from '../record/ids.js';
import type { InvocationSummary, RunSummary } from './run-summary.js';

/** What happens to a run, told after it is durable. */
export type RunEvent =
  /** The run's first record came; told again, with `isRepeated`, when it is known while it goes on of which steps it is. */
  | { readonly type: 'started'; readonly run: RunSummary; readonly isRepeated?: boolean }
  /** An invocation has a verdict; told again, with `isRevision`, when late records changed what it says. */
  | {
      readonly type: 'invocationEnded';
      readonly run: RunSummary;
      readonly invocation: InvocationSummary;
      readonly isRevision: boolean;
    }
  /**
   * Every invocation of the run has a verdict and the run was quiet; told again when late records reopened it, and, with
   * `isRepeated`, when a listener did not take it.
   */
  | { readonly type: 'finished'; readonly run: RunSummary; readonly isRepeated?: boolean };

/** Is told what happens to runs: Parquet, exporter, later webhooks and metrics. A rejection is logged, and the event is told again a while later. */
export interface RunListener {
  onRunEvent(event: RunEvent): Promise<void>;
}

/** Is told that more is known of steps: which traces are theirs, how they ended. Must not throw and must not wait. */
export interface StepListener {
  /** @param traceIds traces that hold records of the step */
  onStepChanged(traceIds: readonly TraceId[]): void;
}
