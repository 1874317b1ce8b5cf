import type { InvocationSummary } from '../run-summary.js';
import type { CriticalPath } from './critical-path.js';
import type { HookMeasure, NodeMeasure } from './node-measure.js';
import type { PhaseMeasure } from './phase-measure.js';
import type { RunTotals } from './run-totals.js';
import type { LengthSplit } from './time-split.js';

/** All measures of one command of a run. */
export interface CommandMeasures {
  readonly invocation: InvocationSummary;
  readonly totals: RunTotals;
  readonly split: LengthSplit;
  /** In the order in which they began. */
  readonly phases: readonly PhaseMeasure[];
  readonly criticalPath: CriticalPath;
  /** Those that the command was asked for, in the order in which they began; the first 100,000. */
  readonly nodes: readonly NodeMeasure[];
  /** Nodes that were processed without being selected and did not fail: in none of the counts. */
  readonly unselectedNodes: readonly NodeMeasure[];
  /** In the order in which they began. */
  readonly hooks: readonly HookMeasure[];
  /** Nodes beyond the first 100,000, of which nothing is measured. */
  readonly omittedNodeCount: number;
  /** First log records of severity ERROR that name no node, at most 20 of at most 4,000 characters each. */
  readonly messages: readonly string[];
}
