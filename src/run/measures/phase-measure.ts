import type { UnixNano } from '../../record/unix-nano.js';

/** One phase of a command. The engine works on nodes of several phases at once, so their times overlap and do not add up. */
export interface PhaseMeasure {
  /** PhaseExecuted `phase` without its prefix, for example `PARSE`. */
  readonly phase: string;
  readonly startTimeUnixNano: UnixNano;
  /** `null` where the span never ended. */
  readonly endTimeUnixNano: UnixNano | null;
  /** Sum of the lengths of its PhaseExecuted spans that ended; one in all commands seen. */
  readonly spanTimeNano: bigint;
  /** Nodes with a NodeEvaluated span in it. */
  readonly nodeCount: number;
  /** Sum of the lengths of these spans: time of all threads together. */
  readonly nodeTimeNano: bigint;
  /** Sum of NodeEvaluated `idle_time_ms`, in milliseconds. */
  readonly idleTimeMs: number;
  /** Sum of the lengths of QueryExecuted spans that name the phase and a node. */
  readonly warehouseTimeNano: bigint;
  /** What of the command's length fell to it: the time in which no query ran and no node or hook was worked on. */
  readonly shareNano: bigint;
}
