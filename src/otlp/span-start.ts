import { Attributes } from '../record/attributes.js';
import { EVENT_TYPE_PREFIX, EVENTS } from '../record/event-table.js';
import { isJsonObject, type JsonValue } from '../record/json.js';
import { fieldTexts } from '../record/record-line.js';
import type { SpanEnd, SpanStart } from '../record/telemetry-record.js';
import type { AttributePart } from './any-value.js';
import { shortEventType } from './span-event-type.js';

const TARGET_OPTION = /\s(?:--target|-t)[\s=]/;
const PACKAGE_INSTALLED = 'deps.DepsPackageInstalled';
/** What a package from Git is called, and its commit, is known when it has been cloned. */
const GIT = 'PACKAGE_TYPE_GIT';
const KNOWN_WHEN_CLONED: ReadonlySet<string> = new Set(['package_name', 'package_version']);
const GENERIC_OPERATION = 'generic.GenericOpExecuted';
/** The operation that finds out how many packages there are, and puts the count into its span's name. */
const RESOLVE_PACKAGES = '"deps-compute-package-lock"';
const ITEM_COUNT = / \(\d+ items\)$/;

/** What differs between a span's start and its end. */
export interface StartRule {
  /** Attributes that only the end has. */
  readonly endOnly: ReadonlySet<string>;
  /** JSON texts of their values that the start has nevertheless. */
  readonly knownValues: ReadonlyMap<string, string>;
  /** JSON texts of values that are others at the start. */
  readonly atStart: ReadonlyMap<string, string>;
  /** The attribute, and JSON texts of its values, with which the start has all that the end has. */
  readonly wholeWith: { readonly name: string; readonly values: ReadonlySet<string> } | undefined;
  /** Whether more than these decides: then `startParts` says it. */
  readonly isSpecial: boolean;
}

const RULES = new Map<string, StartRule>();

/** @param shortType event type without the public prefix */
export function startRuleOf(shortType: string): StartRule {
  const known = RULES.get(shortType);
  if (known !== undefined) return known;
  const endOnly = new Set<string>();
  const knownValues = new Map<string, string>();
  const atStart = new Map<string, string>();
  let wholeWith: StartRule['wholeWith'];
  const fields = Object.entries(EVENTS.get(EVENT_TYPE_PREFIX + shortType)?.fields ?? {});
  for (const [name, { start, wholeWith: values }] of fields) {
    if (values !== undefined) wholeWith = { name, values: new Set(values.map((value) => JSON.stringify(value))) };
    if (start === undefined) continue;
    if (start === 'none' || 'known' in start) endOnly.add(name);
    else atStart.set(name, start.value);
    if (start !== 'none' && 'known' in start) knownValues.set(name, start.known);
  }
  const isSpecial =
    shortType === 'invocation.Invocation' || shortType === GENERIC_OPERATION || shortType === PACKAGE_INSTALLED;
  const rule: StartRule = { endOnly, knownValues, atStart, wholeWith, isSpecial };
  if (EVENTS.has(EVENT_TYPE_PREFIX + shortType)) RULES.set(shortType, rule);
  return rule;
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
  const { endOnly, knownValues, atStart, wholeWith } = startRuleOf(shortType);
  const isKnown = ({ name, json }: AttributePart) => !endOnly.has(name) || knownValues.get(name) === json;
  if (shortType === 'invocation.Invocation') {
    const known = parts.filter(isKnown);
    return parts.some(namesTarget) ? known : known.map(withoutTarget);
  }
  if (shortType === GENERIC_OPERATION) return parts.some(isResolving) ? parts.filter(isNoCount) : parts;
  if (endOnly.size === 0 && atStart.size === 0) return parts;
  if (parts.some(({ name, json }) => name === wholeWith?.name && wholeWith.values.has(json))) return parts;
  const isCloned = shortType === PACKAGE_INSTALLED && parts.some(isFromGit);
  const known = parts.filter(isCloned ? isKnownBeforeCloning : isKnown);
  if (atStart.size === 0) return known;
  return known.map((part) => ({ name: part.name, json: atStart.get(part.name) ?? part.json }));
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
