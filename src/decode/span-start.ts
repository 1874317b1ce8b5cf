import { Attributes } from '../record/attributes.js';
import { isJsonObject, type JsonValue } from '../record/json.js';
import { fieldTexts } from '../record/record-line.js';
import type { SpanEnd, SpanStart } from '../record/telemetry-record.js';
import type { AttributePart } from './any-value.js';
import { shortEventType } from './span-event-type.js';

/** Attributes that the engine knows only at a span's end, read off its JSONL. */
const END_ONLY: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    'hook.HookProcessed': new Set(['hook_outcome']),
    'invocation.Invocation': new Set(['metrics']),
    'node.NodeEvaluated': new Set([
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
    ]),
    'node.NodeProcessed': new Set([
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
    ]),
    'node.MicrobatchEvaluated': new Set(['idle_time_ms', 'node_outcome']),
    'query.QueryExecuted': new Set([
      'query_error_adapter_message',
      'query_error_vendor_code',
      'query_id',
      'query_outcome',
    ]),
  }),
);

/** JSON texts of values that the engine knows from the start, of attributes that it otherwise knows only at the end. */
const KNOWN_VALUES: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map([
  ['node.NodeProcessed', new Map([['last_phase', '"EXECUTION_PHASE_FRESHNESS_ANALYSIS"']])],
]);

/** JSON texts of values that the engine writes at a span's start and replaces at its end. */
const AT_START: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map([
  ['deps.DepsPackageInstalled', new Map([['dbt_core_event_code', '"M014"']])],
  ['node.NodeProcessed', new Map([['dbt_core_event_code', '"Q024"']])],
  ['query.QueryExecuted', new Map([['dbt_core_event_code', '"E016"']])],
  [
    'phase.PhaseExecuted',
    new Map([
      ['node_count_error', '"0"'],
      ['node_count_skipped', '"0"'],
    ]),
  ],
]);

const TARGET_OPTION = /\s(?:--target|-t)[\s=]/;
const PACKAGE_INSTALLED = 'deps.DepsPackageInstalled';
/** What a package from Git is called, and its commit, is known when it has been cloned. */
const GIT = 'PACKAGE_TYPE_GIT';
const KNOWN_WHEN_CLONED: ReadonlySet<string> = new Set(['package_name', 'package_version']);
const GENERIC_OPERATION = 'generic.GenericOpExecuted';
/** The operation that finds out how many packages there are, and puts the count into its span's name. */
const RESOLVE_PACKAGES = '"deps-compute-package-lock"';
const ITEM_COUNT = / \(\d+ items\)$/;

/** By why its phase does not take place, a node is known not to begin: then its start has all that its end has. */
const SKIP_REASON = 'node_skip_reason';
const SKIPPED_FROM_THE_START: ReadonlySet<string> = new Set([
  '"NODE_SKIP_REASON_UPSTREAM"',
  '"NODE_SKIP_REASON_PHASE_SKIPPED"',
]);
const NODE_EVALUATED = 'node.NodeEvaluated';

/** What differs between a span's start and its end. */
export interface StartRule {
  /** Attributes that only the end has. */
  readonly endOnly: ReadonlySet<string> | undefined;
  /** JSON texts of their values that the start has nevertheless. */
  readonly knownValues: ReadonlyMap<string, string> | undefined;
  /** JSON texts of values that are others at the start. */
  readonly atStart: ReadonlyMap<string, string> | undefined;
  /** The attribute, and JSON texts of its values, with which the start has all that the end has. */
  readonly wholeWith: { readonly name: string; readonly values: ReadonlySet<string> } | undefined;
  /** Whether more than these decides: then `startParts` says it. */
  readonly isSpecial: boolean;
}

/** @param shortType event type without the public prefix */
export function startRuleOf(shortType: string): StartRule {
  const isSpecial =
    shortType === 'invocation.Invocation' || shortType === GENERIC_OPERATION || shortType === PACKAGE_INSTALLED;
  return {
    endOnly: END_ONLY.get(shortType),
    knownValues: KNOWN_VALUES.get(shortType),
    atStart: AT_START.get(shortType),
    wholeWith: shortType === NODE_EVALUATED ? { name: SKIP_REASON, values: SKIPPED_FROM_THE_START } : undefined,
    isSpecial,
  };
}

/**
 * The SpanStart that OTLP leaves out, made of the span's end: what the engine knows when a span begins. A name with counts and
 * `eval_args.target` may differ from what the engine wrote then (it fills them in later, and does not say from what).
 */
export function spanStartOf(end: SpanEnd): SpanStart {
  const { eventType, spanName } = end;
  const shortType = shortEventType(eventType);
  const parts = fieldTexts(end.attributes.json);
  const start = startParts(parts, shortType);
  return {
    recordType: 'SpanStart',
    traceId: end.traceId,
    spanId: end.spanId,
    spanName: start === parts ? spanName : startName(shortType, spanName, parts),
    parentSpanId: end.parentSpanId,
    links: null,
    startTimeUnixNano: end.startTimeUnixNano,
    severityNumber: end.severityNumber,
    severityText: end.severityText,
    eventType,
    attributes: start === parts ? end.attributes : attributesOf(start),
  };
}

function attributesOf(parts: readonly AttributePart[]): Attributes {
  return Attributes.fromJson(`{${parts.map(({ name, json }) => `${JSON.stringify(name)}:${json}`).join(',')}}`);
}

/**
 * The attributes of a span's start, made of its end's; the same list where they do not differ.
 * @param shortType event type without the public prefix
 */
export function startParts(parts: readonly AttributePart[], shortType: string): readonly AttributePart[] {
  if (shortType === 'invocation.Invocation') {
    const known = parts.filter(isKnownAtStart(shortType));
    return parts.some(namesTarget) ? known : known.map(withoutTarget);
  }
  if (shortType === GENERIC_OPERATION) return parts.some(isResolving) ? parts.filter(isNoCount) : parts;
  const atStart = AT_START.get(shortType);
  if (END_ONLY.get(shortType) === undefined && atStart === undefined) return parts;
  if (shortType === NODE_EVALUATED && parts.some(isSkippedFromTheStart)) return parts;
  const isCloned = shortType === PACKAGE_INSTALLED && parts.some(isFromGit);
  const known = parts.filter(isCloned ? isKnownBeforeCloning : isKnownAtStart(shortType));
  if (atStart === undefined) return known;
  return known.map((part) => ({ name: part.name, json: atStart.get(part.name) ?? part.json }));
}

function isKnownAtStart(shortType: string): (part: AttributePart) => boolean {
  const endOnly = END_ONLY.get(shortType);
  const knownValues = KNOWN_VALUES.get(shortType);
  return ({ name, json }) => endOnly?.has(name) !== true || knownValues?.get(name) === json;
}

function isSkippedFromTheStart({ name, json }: AttributePart): boolean {
  return name === SKIP_REASON && SKIPPED_FROM_THE_START.has(json);
}

function isResolving({ name, json }: AttributePart): boolean {
  return name === 'operation_id' && json === RESOLVE_PACKAGES;
}

function isNoCount({ name }: AttributePart): boolean {
  return name !== 'item_count_total';
}

function isFromGit({ name, json }: AttributePart): boolean {
  return name === 'package_type' && json === `"${GIT}"`;
}

function isKnownBeforeCloning({ name }: AttributePart): boolean {
  return !KNOWN_WHEN_CLONED.has(name);
}

/**
 * What a span is called at its start, where its start has other attributes than its end.
 * @param parts the attributes of its end
 */
export function startName(shortType: string, spanName: string, parts: readonly AttributePart[]): string {
  if (shortType === GENERIC_OPERATION) return spanName.replace(ITEM_COUNT, '');
  if (shortType !== PACKAGE_INSTALLED || !parts.some(isFromGit)) return spanName;
  const json = parts.find(({ name }) => name === 'package_url_or_path')?.json ?? 'null';
  const url = JSON.parse(json) as JsonValue;
  return typeof url === 'string' ? `Package "${url}" installed` : spanName;
}

function namesTarget({ name, json }: AttributePart): boolean {
  return name === 'raw_command' && TARGET_OPTION.test(json);
}

/** The target is read from the profile after the command has begun, unless the command line names it. */
function withoutTarget({ name, json }: AttributePart): AttributePart {
  if (name !== 'eval_args') return { name, json };
  const value = JSON.parse(json) as JsonValue;
  if (!isJsonObject(value)) return { name, json };
  const { target: _target, ...rest } = value;
  return { name, json: JSON.stringify(rest) };
}
