import { Attributes } from '../record/attributes.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../record/json.js';
import type { SpanEnd, SpanStart } from '../record/telemetry-record.js';
import { shortEventType } from './event-type.js';

/** Attributes that the engine knows only at a span's end, read off its JSONL. */
const END_ONLY: Readonly<Record<string, readonly string[]>> = {
  'hook.HookProcessed': ['hook_outcome'],
  'invocation.Invocation': ['metrics'],
  'node.NodeEvaluated': [
    'idle_time_ms',
    'node_cache_detail',
    'node_cancel_reason',
    'node_error_type',
    'node_evaluation_detail',
    'node_freshness_outcome',
    'node_outcome',
    'node_skip_reason',
    'node_skip_upstream_detail',
    'node_test_detail',
    'rows_affected',
    'state_decision_id',
  ],
  'node.NodeProcessed': [
    'duration_ms',
    'idle_time_ms',
    'last_phase',
    'node_cache_detail',
    'node_cancel_reason',
    'node_error_type',
    'node_evaluation_detail',
    'node_freshness_outcome',
    'node_outcome',
    'node_skip_reason',
    'node_skip_upstream_detail',
    'node_test_detail',
    'rows_affected',
  ],
  'node.MicrobatchEvaluated': ['idle_time_ms', 'node_outcome'],
  'query.QueryExecuted': ['query_error_adapter_message', 'query_error_vendor_code', 'query_id', 'query_outcome'],
};

/** Values that the engine writes at a span's start and replaces at its end. */
const AT_START: Readonly<Record<string, Readonly<Record<string, JsonValue>>>> = {
  'node.NodeProcessed': { dbt_core_event_code: 'Q024' },
  'query.QueryExecuted': { dbt_core_event_code: 'E016' },
  'phase.PhaseExecuted': { node_count_error: '0', node_count_skipped: '0' },
};

const UPSTREAM = 'NODE_SKIP_REASON_UPSTREAM';

/**
 * The SpanStart that OTLP leaves out, made of the span's end: what the engine knows when a span begins. The name and
 * `eval_args.target` may differ from what the engine wrote then (it fills them in later, and does not say from what).
 */
export function spanStartOf(end: SpanEnd): SpanStart {
  const { endTimeUnixNano: _end, status: _status, unknownFields: _unknown, line: _line, ...span } = end;
  return { ...span, recordType: 'SpanStart', links: null, attributes: startAttributes(end) };
}

function startAttributes({ attributes, eventType }: SpanEnd): Attributes {
  const type = shortEventType(eventType);
  const atStart = AT_START[type];
  const endOnly = END_ONLY[type];
  // A node that is skipped because of its upstream is known to be from the start.
  if (endOnly === undefined && atStart === undefined) return attributes;
  if (type === 'node.NodeEvaluated' && attributes.text('node_skip_reason') === UPSTREAM) return attributes;
  const start: Record<string, JsonValue> = {};
  for (const [name, value] of Object.entries(attributes.value)) {
    if (endOnly?.includes(name) === true) continue;
    start[name] = name === 'eval_args' ? withoutTarget(value) : (atStart?.[name] ?? value);
  }
  return Attributes.of(start);
}

/** The target is read from the profile after the command has begun, unless the command line names it. */
function withoutTarget(evalArgs: JsonValue): JsonValue {
  if (!isJsonObject(evalArgs)) return evalArgs;
  const { target: _target, ...rest }: JsonObject = evalArgs;
  return rest as JsonObject;
}
