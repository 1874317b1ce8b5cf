import { type Attributes, ownText } from '../../record/attributes.js';
import {
  type CheckOutcome,
  enumValue,
  freshnessOutcomeOf,
  nodeOutcomeOf,
  type Outcome,
  outcomeDetail,
  testOutcomeOf,
} from '../node-outcome.js';

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
    diffTable: typeof test?.diff_table === 'string' ? ownText(test.diff_table.slice(0, MAX_DIFF_CHARS)) : null,
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
