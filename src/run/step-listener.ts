import type { TraceId } from '../record/ids.js';

/** Is told that more is known of steps: which traces are theirs, how they ended. Must not throw and must not wait. */
export interface StepListener {
  /** @param traceIds traces that hold records of the step */
  onStepChanged(traceIds: readonly TraceId[]): void;
}
