import type { Attributes } from '../record/attributes.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../record/json.js';
import { ownText } from '../record/own-text.js';
import type { SpanEnd, SpanStatus, TelemetryRecord } from '../record/telemetry-record.js';
import { eventName } from './event-name.js';
import type { EngineWord, NodeVerdict } from './run-summary.js';

/** LogMessage code of a node whose task was cancelled; carries the node's `unique_id`. */
const TASK_CANCELLED = 1404;
/** LogMessage code of `Operation cancelled`; on the invocation it has no `unique_id`. */
const OPERATION_CANCELED = 8995;
const SPAN_STATUS_ERROR = 2;

/**
 * Evidence that work was interrupted. The engine's node outcomes do not show it (interrupted nodes are reported as errors or as
 * successes); its log messages and queries do.
 */
export interface Interruption {
  /** `query` is the weaker evidence: a node may have continued after one cancelled query. */
  readonly kind: 'task' | 'operation' | 'query';
  /** The interrupted node; `null` where the whole command was. */
  readonly uniqueId: string | null;
}

const TIMED_OUT = /canceling statement due to \w+ timeout/;

/** Whether a query was cancelled; the engine also reports this for a query that the database aborted on a timeout, which is an error. */
export function isCanceledQuery({ attributes }: Pick<SpanEnd, 'attributes'>): boolean {
  if (enumValue(attributes.get('query_outcome'), 'QUERY_OUTCOME_') !== 'CANCELED') return false;
  return !TIMED_OUT.test(attributes.text('query_error_adapter_message') ?? '');
}

/** Whether a record reports that a node, or the command, was interrupted. */
export function interruptionOf(
  record: Pick<TelemetryRecord, 'recordType' | 'eventType' | 'attributes'>,
): Interruption | undefined {
  const name = eventName(record.eventType);
  if (record.recordType === 'LogRecord' && name === 'LogMessage') {
    if (!/1404|8995/.test(record.attributes.json)) return undefined;
    const code = record.attributes.integer('code');
    if (code !== TASK_CANCELLED && code !== OPERATION_CANCELED) return undefined;
    const uniqueId = record.attributes.text('unique_id') ?? null;
    return { kind: code === TASK_CANCELLED ? 'task' : 'operation', uniqueId };
  }
  if (record.recordType === 'SpanEnd' && name === 'QueryExecuted') {
    // Most queries are not cancelled and carry long statements: they are not parsed for this.
    if (!/cancell?ed/i.test(record.attributes.json)) return undefined;
    if (!isCanceledQuery(record)) return undefined;
    const uniqueId = record.attributes.text('unique_id');
    return uniqueId === undefined ? undefined : { kind: 'query', uniqueId };
  }
  return undefined;
}

/** What was seen of a node's interruption: `hard` by a log message, `query` by a cancelled query alone. */
export type InterruptionSign = 'none' | 'query' | 'hard';

/**
 * The verdict of a node from the end of its NodeProcessed (or NodeEvaluated) span and the logs.
 * @param end attributes and status of the span's end; `null` if it never ended.
 */
export function nodeVerdictOf(
  end: { readonly attributes: Attributes; readonly status: SpanStatus | null } | null,
  interruption: InterruptionSign,
): NodeVerdict {
  if (interruption === 'hard') return 'canceled';
  if (end === null) return interruption === 'query' ? 'canceled' : 'unfinished';
  const { attributes, status } = end;
  if (interruption === 'query' && !ranThrough(attributes)) return 'canceled';
  return reportedVerdict(attributes, status);
}

/** The verdict of the span itself, before interruptions are considered. */
function reportedVerdict(attributes: Attributes, status: SpanStatus | null): NodeVerdict {
  const outcome = nodeOutcomeOf(attributes);
  if (outcome === 'success') return checkVerdict(attributes);
  if (outcome === 'error' || outcome === 'canceled' || outcome === 'skipped') return outcome;
  if (status?.code === SPAN_STATUS_ERROR) return 'error';
  return outcome ?? 'unfinished';
}

/** An outcome of a node or a hook in the words of the documentation, or a newer engine's own. */
export type Outcome = 'success' | 'error' | 'skipped' | 'canceled' | EngineWord;

/** `node_outcome`; `null` where it is missing or unspecified. */
export function nodeOutcomeOf(attributes: Attributes): Outcome | null {
  return outcomeOf(enumValue(attributes.get('node_outcome'), 'NODE_OUTCOME_'));
}

/** The verdict of a hook, from the end of its span. */
export function hookVerdictOf({ attributes, status }: Pick<SpanEnd, 'attributes' | 'status'>): NodeVerdict {
  const outcome = outcomeOf(enumValue(attributes.get('hook_outcome'), 'HOOK_OUTCOME_'));
  if (outcome === 'success' || outcome === 'canceled') return outcome;
  return status?.code === SPAN_STATUS_ERROR ? 'error' : (outcome ?? 'unfinished');
}

function outcomeOf(value: string | undefined): Outcome | null {
  switch (value) {
    case 'SUCCESS':
      return 'success';
    case 'ERROR':
      return 'error';
    case 'SKIPPED':
      return 'skipped';
    case 'CANCELED':
    case 'CANCELLED':
      return 'canceled';
    case undefined:
    case '':
    case 'UNSPECIFIED':
      return null;
    default:
      return engineWordOf(value);
  }
}

/** Maximum length of an unknown outcome, in characters. */
const MAX_WORD_CHARS = 40;

/** An outcome that this version does not know, as a word for display and counting. */
function engineWordOf(value: string): EngineWord {
  const word = value
    .slice(0, MAX_WORD_CHARS)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_');
  return ownText(word) as EngineWord;
}

/** A test that found something, a unit test that differs, a stale source: all are reported as successes. */
function checkVerdict(attributes: Attributes): NodeVerdict {
  const outcome = testOutcomeOf(attributes) ?? freshnessOutcomeOf(attributes);
  return outcome === undefined || outcome === 'passed' ? 'success' : outcome;
}

/** Result of a data test, a unit test or a freshness check. */
export type CheckOutcome = 'passed' | 'warned' | 'failed';

/** A test's result; `undefined` if the node is not a test. A test without `test_outcome` has passed (enum value 0). */
export function testOutcomeOf(attributes: Attributes): CheckOutcome | undefined {
  const detail = outcomeDetail(attributes, 'node_test_detail', 'NodeTestDetail');
  const outcome = detail?.test_outcome ?? attributes.get('test_outcome');
  if (detail === undefined && outcome === undefined) return undefined;
  return checkOutcome(enumValue(outcome, 'TEST_OUTCOME_'));
}

/** A source's freshness; `undefined` if the node is not a checked source. */
export function freshnessOutcomeOf(attributes: Attributes): CheckOutcome | undefined {
  const detail = outcomeDetail(attributes, 'node_freshness_outcome', 'NodeFreshnessOutcome');
  if (detail === undefined) return undefined;
  return checkOutcome(enumValue(detail.node_freshness_outcome, 'SOURCE_FRESHNESS_OUTCOME_'));
}

function checkOutcome(value: string | undefined): CheckOutcome {
  if (value?.endsWith('FAILED')) return 'failed';
  return value?.endsWith('WARNED') ? 'warned' : 'passed';
}

/** Whether a node's last phase was RUN and it was reported as a success: a cancelled query did not stop it. */
function ranThrough(attributes: Attributes): boolean {
  const phase = enumValue(attributes.get('last_phase') ?? attributes.get('phase'), 'EXECUTION_PHASE_');
  return phase === 'RUN' && enumValue(attributes.get('node_outcome'), 'NODE_OUTCOME_') === 'SUCCESS';
}

/** A detail of a node: a field of its own, or (in Parquet's spelling) inside `node_outcome_detail`. */
export function outcomeDetail(attributes: Attributes, field: string, wrapped: string): JsonObject | undefined {
  const detail = attributes.object(field);
  if (detail !== undefined) return detail;
  const value: JsonValue | undefined = attributes.object('node_outcome_detail')?.[wrapped];
  return isJsonObject(value) ? value : undefined;
}

/** An enum's value without its prefix, in capitals: the schema's spelling and the documented one (`success`) read alike. */
export function enumValue(value: JsonValue | undefined, prefix: string): string | undefined {
  if (typeof value !== 'string') return undefined;
  const capitals = value.toUpperCase();
  return capitals.startsWith(prefix) ? capitals.slice(prefix.length) : capitals;
}
