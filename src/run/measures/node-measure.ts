import { startOf } from '../../core/text.js';
import { type Attributes, ownText } from '../../record/attributes.js';
import type { UnixNano } from '../../record/telemetry-record.js';
import {
  type CheckOutcome,
  enumValue,
  freshnessOutcomeOf,
  nodeOutcomeOf,
  type Outcome,
  outcomeDetail,
  testOutcomeOf,
} from '../node-outcome.js';
import type { NodeVerdict } from '../verdict.js';
import type { FailedSql } from './failed-sql.js';
import type { Interval, TimeShare } from './time-split.js';

/** A status as the run results of the previous major version have it. */
export type PreviousStatus = 'success' | 'error' | 'skipped' | 'pass' | 'warn' | 'fail';

const TEST_STATUS = { passed: 'pass', warned: 'warn', failed: 'fail' } as const;

/**
 * The previous major version's status of a node, by the mapping table of the telemetry's documentation: `node_outcome`,
 * for tests that ran `test_outcome`, for skipped nodes `node_skip_reason`.
 * @returns `null` for what the table does not have: canceled nodes, nodes without an outcome, and those that were skipped
 *   for another reason than `upstream`; `cached` has no equivalent there.
 */
export function previousStatusOf({
  outcome,
  skipReason,
  testOutcome,
}: Pick<EngineOutcome, 'outcome' | 'skipReason' | 'testOutcome'>): PreviousStatus | null {
  switch (outcome) {
    case 'success':
      return testOutcome === null ? 'success' : TEST_STATUS[testOutcome];
    case 'error':
      return 'error';
    case 'skipped':
      return skipReason === 'upstream' ? 'skipped' : null;
    default:
      return null;
  }
}

/** The outcome of a node from the end of its NodeProcessed or NodeEvaluated span, in the words of the documentation. */
export interface EngineOutcome {
  /** `node_outcome`; an unknown one in the engine's own word; `null` if missing or unspecified. */
  readonly outcome: Outcome | null;
  /**
   * `node_skip_reason` of a skipped node: `upstream`, `cached`, `phase_disabled`, `phase_skipped` or `noop`; a reason
   * added to the schema later is in lower case.
   */
  readonly skipReason: string | null;
  /** `node_skip_upstream_detail.upstream_unique_id`. */
  readonly skipUpstream: string | null;
  /** `node_test_detail.test_outcome` of a test that ran; one without it has passed, since that is the enum's zero. */
  readonly testOutcome: CheckOutcome | null;
  /** `node_test_detail.failing_rows`. */
  readonly failingRows: number | null;
  /** `node_test_detail.diff_table` of a unit test: expected and actual rows. */
  readonly diffTable: string | null;
  /** `node_freshness_outcome` of a checked source: its freshness, and its age if the engine could determine it. */
  readonly freshness: Freshness | null;
}

export interface Freshness {
  readonly outcome: CheckOutcome;
  /** `age_seconds`. */
  readonly ageSeconds: number | null;
}

/** Of a node whose span has not ended. */
export const UNKNOWN_OUTCOME: EngineOutcome = {
  outcome: null,
  skipReason: null,
  skipUpstream: null,
  testOutcome: null,
  failingRows: null,
  diffTable: null,
  freshness: null,
};

/** Maximum length of a table of differences, in characters. */
const MAX_DIFF_CHARS = 4_000;

/** Reads the attributes of the end of a node's span. */
export function engineOutcomeOf(attributes: Attributes): EngineOutcome {
  const outcome = nodeOutcomeOf(attributes);
  const upstream = outcomeDetail(attributes, 'node_skip_upstream_detail', 'NodeSkipUpstreamDetail');
  const upstreamId = upstream?.upstream_unique_id;
  const test = outcomeDetail(attributes, 'node_test_detail', 'NodeTestDetail');
  return {
    outcome,
    skipReason: outcome === 'skipped' ? skipReasonOf(attributes) : null,
    skipUpstream: typeof upstreamId === 'string' && upstreamId !== '' ? ownText(upstreamId) : null,
    testOutcome: outcome === 'success' ? (testOutcomeOf(attributes) ?? null) : null,
    failingRows: typeof test?.failing_rows === 'number' ? test.failing_rows : null,
    diffTable: typeof test?.diff_table === 'string' ? ownText(startOf(test.diff_table, MAX_DIFF_CHARS)) : null,
    freshness: outcome === 'success' ? freshnessOf(attributes) : null,
  };
}

function freshnessOf(attributes: Attributes): Freshness | null {
  const outcome = freshnessOutcomeOf(attributes);
  if (outcome === undefined) return null;
  const age = outcomeDetail(attributes, 'node_freshness_outcome', 'SourceFreshnessDetail')?.age_seconds;
  const ageSeconds = age === undefined || age === null || age === '' ? Number.NaN : Number(age);
  return { outcome, ageSeconds: Number.isFinite(ageSeconds) ? ageSeconds : null };
}

function skipReasonOf(attributes: Attributes): string | null {
  const reason = enumValue(attributes.get('node_skip_reason'), 'NODE_SKIP_REASON_');
  if (reason === undefined || reason === 'UNSPECIFIED') return null;
  return reason === 'NO_OP' ? 'noop' : ownText(reason.toLowerCase());
}

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
  /** What of the command's length fell to it: the time in which no query ran, no node or hook was worked on and none waited. */
  readonly shareNano: bigint;
}

/** A node in one of its phases: a NodeEvaluated span, and the queries with the same node and phase. */
export interface NodePhase extends EngineOutcome {
  /** NodeEvaluated `phase` without its prefix, for example `RUN`. */
  readonly phase: string;
  readonly startTimeUnixNano: UnixNano;
  /** `null` if the span never ended; then everything that its end would contain is `null`, too. */
  readonly endTimeUnixNano: UnixNano | null;
  /** NodeEvaluated `end_time_unix_nano` − `start_time_unix_nano`: includes its waits. */
  readonly lifetimeNano: bigint | null;
  /** Parts of it in which it waited for a thread or a connection: in order, inside it, none over another. */
  readonly waits: readonly Interval[];
  /** NodeEvaluated `idle_time_ms`, in milliseconds, or the length of its waits where that is more; `null` where there is neither. */
  readonly idleTimeMs: number | null;
  /** NodeEvaluated `rows_affected`. */
  readonly rows: number | null;
  /** Sum of the lengths of the QueryExecuted spans with this `unique_id` and `phase`. */
  readonly warehouseTimeNano: bigint;
}

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
  /** The phase in which it ended, without its prefix: NodeProcessed `last_phase`, else that of its last NodeEvaluated. */
  readonly lastPhase: string | null;
  /** Whether the command executed it, to an outcome: only then does it make history. */
  readonly isExecuted: boolean;
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
  /** NodeProcessed `idle_time_ms`, in milliseconds, or the length of the waits in its phases where that is more: the time of waiting. */
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
  /** Of a node that failed; `null` where the telemetry has no SQL of it. */
  readonly failedSql: FailedSql | null;
  /** In the order in which they began. */
  readonly phases: readonly NodePhase[];
}

/** A hook (HookProcessed). */
export interface HookMeasure {
  readonly uniqueId: string;
  readonly verdict: NodeVerdict;
  /** Without its prefix, for example `ON_RUN_START`. */
  readonly phase: string;
  /** Why it did not succeed: its span's status message, at most 4,000 characters. The engine's log record of it names no hook. */
  readonly message: string | null;
  readonly startTimeUnixNano: UnixNano;
  /** `null` where it never ended. */
  readonly endTimeUnixNano: UnixNano | null;
  /** What of the command's length fell to it. */
  readonly share: TimeShare;
}
