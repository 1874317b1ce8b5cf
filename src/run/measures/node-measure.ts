import type { UnixNano } from '../../record/unix-nano.js';
import type { NodeVerdict } from '../run-summary.js';
import type { EngineOutcome } from './engine-outcome.js';
import type { NodePhase } from './node-phase.js';
import type { PreviousStatus } from './previous-status.js';
import type { TimeShare } from './time-split.js';

/** All measures of one node of a command. Outcome and reasons come from its NodeProcessed span, else from its last phase. */
export interface NodeMeasure extends EngineOutcome {
  readonly uniqueId: string;
  /** `node_type` without its prefix, in lower case, for example `model`. */
  readonly nodeType: string | null;
  /** `name`, which of sources is that of the table; `null` where only phases or messages name it. */
  readonly name: string | null;
  /** `relative_path`: the file in the project that defines it, and `defined_at_line` in it, from 1. */
  readonly relativePath: string | null;
  readonly definedAtLine: number | null;
  /** `group`, which the engine sends since version 2.0. */
  readonly group: string | null;
  /** Its verdict, which also considers interruptions that `outcome` does not show. */
  readonly verdict: NodeVerdict;
  /** By the mapping table; `null` for what it does not have, and for nodes that were interrupted. */
  readonly previousStatus: PreviousStatus | null;
  /** Whether the command was asked for it: NodeProcessed `in_selection`; `null` where no NodeProcessed span was seen. */
  readonly isSelected: boolean | null;
  /** What of the command's length fell to it. What ranks nodes. */
  readonly share: TimeShare;
  /** Earliest start among its NodeProcessed and NodeEvaluated spans; `null` where only queries or messages name it. */
  readonly startTimeUnixNano: UnixNano | null;
  /** End of its NodeProcessed span; `null` where it never ended. */
  readonly endTimeUnixNano: UnixNano | null;
  /**
   * NodeProcessed `duration_ms`, in milliseconds: the engine's time of working on it. It includes waiting for a processor, so
   * the sum over nodes may be a hundred times the command's length.
   */
  readonly durationMs: number | null;
  /** NodeProcessed `idle_time_ms`, in milliseconds: the time of waiting. */
  readonly idleTimeMs: number | null;
  /** NodeProcessed `end_time_unix_nano` − `start_time_unix_nano`: with busy threads mostly queueing. */
  readonly lifetimeNano: bigint | null;
  /** Sum of the durations of the QueryExecuted spans with its `unique_id`, whatever their outcome. */
  readonly warehouseTimeNano: bigint;
  readonly queryCount: number;
  /** NodeProcessed `rows_affected`. */
  readonly rows: number | null;
  /** First log record of severity ERROR with its `unique_id`, at most 4,000 characters. */
  readonly message: string | null;
  /** In the order in which they began. */
  readonly phases: readonly NodePhase[];
}

/** A hook (HookProcessed). */
export interface HookMeasure {
  readonly uniqueId: string;
  readonly verdict: NodeVerdict;
  readonly startTimeUnixNano: UnixNano;
  /** `null` where it never ended. */
  readonly endTimeUnixNano: UnixNano | null;
  /** What of the command's length fell to it. */
  readonly share: TimeShare;
}
