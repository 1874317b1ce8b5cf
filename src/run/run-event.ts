import type { TraceId } from '../record/telemetry-record.js';
import type { InvocationSummary, RunSummary } from './verdict.js';

/** A change of a run, published after it is durable. */
export type RunEvent =
  /** The run's first record arrived; repeated, with `isRepeated`, when its steps become known later. */
  | { readonly type: 'started'; readonly run: RunSummary; readonly isRepeated?: boolean }
  /** An invocation has a verdict; repeated, with `isRevision`, when late records changed it. */
  | {
      readonly type: 'invocationEnded';
      readonly run: RunSummary;
      readonly invocation: InvocationSummary;
      readonly isRevision: boolean;
    }
  /**
   * Every invocation of the run has a verdict and the run was quiet; repeated after late records and, with
   * `isRepeated`, after a listener failed.
   */
  | { readonly type: 'finished'; readonly run: RunSummary; readonly isRepeated?: boolean };

/** Listens to changes of runs: Parquet, exporter, webhooks, metrics. A rejection is logged, and the event is repeated later. */
export interface RunListener {
  onRunEvent(event: RunEvent): Promise<void>;
}

/** Is notified of changed steps: their traces, how they ended. Must not throw and must not wait. */
export interface StepListener {
  /** @param traceIds traces that hold records of the step */
  onStepChanged(traceIds: readonly TraceId[]): void;
}

/** Finds runs as they are known now. */
export interface RunFinder {
  find(traceId: TraceId): Promise<RunSummary | undefined>;
}
