import type { UnixNano } from '../../record/unix-nano.js';
import type { EngineOutcome } from './engine-outcome.js';

/** A node in one of its phases: a NodeEvaluated span, and the queries with the same node and phase. */
export interface NodePhase extends EngineOutcome {
  /** NodeEvaluated `phase` without its prefix, for example `RUN`. */
  readonly phase: string;
  readonly startTimeUnixNano: UnixNano;
  /** `null` if the span never ended; then everything that its end would contain is `null`, too. */
  readonly endTimeUnixNano: UnixNano | null;
  /** NodeEvaluated `end_time_unix_nano` − `start_time_unix_nano`: includes waiting for a connection. */
  readonly lifetimeNano: bigint | null;
  /** NodeEvaluated `idle_time_ms`, in milliseconds; `null` where the engine gives none. */
  readonly idleTimeMs: number | null;
  /** NodeEvaluated `rows_affected`. */
  readonly rows: number | null;
  /** Sum of the lengths of the QueryExecuted spans with this `unique_id` and `phase`. */
  readonly warehouseTimeNano: bigint;
}
