import { Attributes, isJsonObject, type JsonObject, type JsonValue, ownText } from '../record/attributes.js';
import { ALL_FIELDS, EVENT_TYPE_PREFIX, EVENTS, type FieldKind } from '../record/event-table.js';
import { fieldTexts } from '../record/record-line.js';
import { DEBUG, INFO, type Severity } from '../record/severity.js';
import {
  invocationIdOf,
  type LogRecord,
  type SpanEnd,
  type SpanStart,
  type TelemetryRecord,
} from '../record/telemetry-record.js';
import type { AttributePart } from './any-value.js';
import type { Field, FieldType, MessageType, PublicSchema } from './public-schema.js';

/** Spellings that are remembered for a field; others are looked up each time. */
export const MAX_OTHER_SPELLINGS = 256;
/** The longest of them, in characters. */
export const MAX_SPELLING_LENGTH = 256;

/** A field as decoding needs it. */
export interface AttributeField {
  readonly kind: FieldKind;
  /** Full name of the message in a field that contains a single message. */
  readonly message: string | undefined;
  /** The names of an enum's values by number and as a set; empty for other kinds. */
  readonly nameByNumber: ReadonlyMap<number, string>;
  readonly names: ReadonlySet<string>;
  /** What other spellings of its values were found to mean; filled as they come, at most `MAX_OTHER_SPELLINGS`. */
  readonly otherSpellings: Map<string, string>;
}

/** What decoding needs to know of the public schema. */
export interface AttributeSchema {
  /** `undefined` where the schema does not know the event type or the field. */
  field(eventType: string, name: string): AttributeField | undefined;
  /** The messages that are spans. */
  readonly spanShapes: SpanShapes;
}

/** The one enum that the engine's JSON spells as a number. */
const NUMBERED_ENUM = 'original_severity_number';
const NO_NAMES = { nameByNumber: new Map<number, string>(), names: new Set<string>() };

/** The public schema as decoding asks for it, one look-up a field. */
export class PublicAttributeSchema implements AttributeSchema {
  readonly spanShapes: SpanShapes;
  private readonly fields = new Map<string, ReadonlyMap<string, AttributeField>>();

  constructor(schema: PublicSchema) {
    for (const name of schema.messageNames) {
      const message = schema.message(name);
      if (message !== undefined) this.fields.set(name, fieldsOf(message));
    }
    this.spanShapes = [...EVENTS]
      .filter(([, { span }]) => span !== undefined)
      .map(([eventType]) => ({ eventType, fields: new Set(this.fields.get(eventType)?.keys()) }));
  }

  field(eventType: string, name: string): AttributeField | undefined {
    return this.fields.get(eventType)?.get(name);
  }
}

function fieldsOf(message: MessageType): ReadonlyMap<string, AttributeField> {
  return new Map(
    message.fields.map((field) => [
      field.name,
      {
        kind: kindOf(field),
        message: field.type.kind === 'message' && !field.isRepeated ? field.type.message.fullName : undefined,
        ...namesOf(field.type),
        otherSpellings: new Map(),
      },
    ]),
  );
}

function namesOf(type: FieldType): Pick<AttributeField, 'nameByNumber' | 'names'> {
  if (type.kind !== 'enum') return NO_NAMES;
  const { nameByNumber } = type.enum;
  return { nameByNumber, names: new Set(nameByNumber.values()) };
}

function kindOf(field: Field): FieldKind {
  if (field.isRepeated) return 'nested';
  if (field.name === NUMBERED_ENUM) return 'enumNumber';
  return scalarKind(field.type);
}

function scalarKind(type: FieldType): FieldKind {
  switch (type.kind) {
    case 'string':
    case 'bytes':
      return 'text';
    case 'int32':
    case 'uint32':
      return 'int32';
    case 'int64':
    case 'uint64':
      return 'int64';
    case 'bool':
    case 'double':
    case 'enum':
      return type.kind;
    case 'message':
    case 'map':
      return 'nested';
  }
}

const TEST_OUTCOMES = {
  names: new Set(['TEST_OUTCOME_PASSED', 'TEST_OUTCOME_WARNED', 'TEST_OUTCOME_FAILED']),
  otherSpellings: new Map<string, string>(),
};
const DOCUMENTED_NAME = /^Node\((.*)\)$/;

/**
 * The modern name of an enum's value. Documentation spells values without their prefix and in lower case (`Run`,
 * `success`, `noop`); a value that the schema does not know stays as it is.
 */
export function modernEnumName(value: string, field: Pick<AttributeField, 'names' | 'otherSpellings'>): string {
  if (field.names.has(value) || field.names.size === 0) return value;
  const remembered = field.otherSpellings.get(value);
  if (remembered !== undefined) return remembered;
  const known = [...field.names];
  const wanted = plain(value);
  const prefix = plain(commonPrefix(known));
  const modern = known.find((name) => plain(name) === wanted || plain(name) === prefix + wanted) ?? value;
  if (field.otherSpellings.size < MAX_OTHER_SPELLINGS && value.length <= MAX_SPELLING_LENGTH) {
    field.otherSpellings.set(ownText(value), modern === value ? ownText(value) : modern);
  }
  return modern;
}

/** Fields of the schema with an enum, at any depth; a number stands in the one that is not here. */
export const ENUM_FIELDS: ReadonlySet<string> = new Set(
  ALL_FIELDS.flatMap(([name, { kind }]) => (kind === 'enum' ? [name] : [])),
);
/** An enum's value that does not begin as names of the schema do (`NODE_OUTCOME_…`). */
const OTHER_SPELLING = new RegExp(`"(?:${[...ENUM_FIELDS].join('|')})":"(?![A-Z]+_[A-Z])`);

/** Whether attributes as JSON may spell an enum's value as documentation does: asked before anything is parsed. */
export function mayBeSpeltOtherwise(json: string): boolean {
  return OTHER_SPELLING.test(json);
}

/**
 * Reads a record in the spellings of documentation as its modern form: enum values, the span name `Node(<unique_id>)`,
 * a `test_outcome` beside the node's outcome, the `phase` of a processed node, whose message calls it `last_phase`. A
 * record in modern spelling comes back as it is.
 */
export function modernSpelling<T extends TelemetryRecord>(record: T, schema: AttributeSchema): T {
  if (!mayNeedSpelling(record)) return record;
  const attributes = modernAttributes(record.attributes.value, record.eventType, schema);
  const spanName = modernSpanName(record);
  if (attributes === undefined && spanName === record.spanName) return record;
  const { line: _line, ...parts } = record;
  // Of the same type still: only texts in it have changed.
  return {
    ...parts,
    spanName,
    attributes: attributes === undefined ? record.attributes : Attributes.of(attributes),
  } as T;
}

/** Whether `modernSpelling` has to look at a record; most need only this. */
export function mayNeedSpelling({ eventType, attributes, spanName }: TelemetryRecord): boolean {
  if (!eventType.startsWith(EVENT_TYPE_PREFIX)) return false;
  const { json } = attributes;
  const isPhaseMisplaced = eventType.endsWith('.NodeProcessed') && json.includes('"phase":"');
  const isNamedOtherwise = spanName?.startsWith('Node(') === true;
  return isNamedOtherwise || isPhaseMisplaced || json.includes('"test_outcome":"TEST') || mayBeSpeltOtherwise(json);
}

function modernSpanName(record: TelemetryRecord): string | null {
  const uniqueId =
    record.spanName?.startsWith('Node(') !== true ? undefined : DOCUMENTED_NAME.exec(record.spanName)?.[1];
  if (uniqueId === undefined) return record.spanName;
  return `${record.eventType.endsWith('.NodeProcessed') ? 'Node processed' : 'Node evaluated'} (${uniqueId})`;
}

/** The attributes with modern values, in key order; `undefined` where nothing changes. */
function modernAttributes(attributes: JsonObject, message: string, schema: AttributeSchema): JsonObject | undefined {
  const changes = new Map<string, JsonValue | undefined>();
  for (const [name, value] of Object.entries(attributes)) {
    const field = schema.field(message, name);
    const modern = field === undefined ? value : modernValue(value, field, schema);
    if (modern !== value) changes.set(name, modern);
  }
  const { test_outcome: outcome, phase, last_phase: present } = attributes;
  if (typeof outcome === 'string' && schema.field(message, 'node_test_detail') !== undefined) {
    changes.set('node_test_detail', testDetail(attributes.node_test_detail, outcome));
    changes.set('test_outcome', undefined);
  }
  const lastPhase = schema.field(message, 'last_phase');
  if (typeof phase === 'string' && present === undefined && lastPhase !== undefined) {
    changes.set('last_phase', modernEnumName(phase, lastPhase));
    changes.set('phase', undefined);
  }
  if (changes.size === 0) return undefined;
  const all = new Map<string, JsonValue | undefined>([...Object.entries(attributes), ...changes]);
  const kept = [...all].flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  return Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A field's value with the names of the schema, those of messages within it too; the value itself where it has them. */
function modernValue(value: JsonValue, field: AttributeField, schema: AttributeSchema): JsonValue {
  if (field.kind === 'enum' && typeof value === 'string') return modernEnumName(value, field);
  if (field.message === undefined || !isJsonObject(value)) return value;
  return modernAttributes(value, field.message, schema) ?? value;
}

/** The engine leaves a passed test's outcome out: it is the enum's zero. */
function testDetail(present: JsonValue | undefined, outcome: string): JsonObject {
  const modern = modernEnumName(outcome, TEST_OUTCOMES);
  const detail = isJsonObject(present) ? present : {};
  return modern === 'TEST_OUTCOME_PASSED' ? detail : { ...detail, test_outcome: modern };
}

function plain(text: string): string {
  return text.replaceAll(/[^a-z0-9]/gi, '').toUpperCase();
}

function commonPrefix(names: readonly string[]): string {
  const first = names[0] ?? '';
  let length = first.length;
  for (const name of names) while (!name.startsWith(first.slice(0, length))) length--;
  return first.slice(0, first.lastIndexOf('_', length - 1) + 1);
}

/** Prefixes of span names that determine the full event type. */
export const NAME_BEGINNINGS = namesOfSpans().flatMap(([beginning, eventType]) =>
  typeof beginning === 'string' ? [{ beginning, eventType }] : [],
);

/** What other names fit. */
const NAME_PATTERNS = namesOfSpans().flatMap(([pattern, eventType]) =>
  typeof pattern === 'string' ? [] : [{ pattern, eventType }],
);

function namesOfSpans(): (readonly [string | RegExp, string])[] {
  return [...EVENTS].flatMap(([eventType, { span }]) => (span?.names ?? []).map((name) => [name, eventType] as const));
}

/** The spelling of a node's span in documentation; its attributes determine whether it was processed or evaluated. */
const DOCUMENTED_NODE = /^Node\(/;
const ONLY_PROCESSED = new Set(['last_phase', 'duration_ms', 'in_selection', 'node_index', 'group', 'source_name']);

/** Messages that are spans, by the fields that they can have: spans with other names are recognised by them. */
export type SpanShapes = readonly { readonly eventType: string; readonly fields: ReadonlySet<string> }[];

/** An attribute, as far as its name goes. */
interface Named {
  readonly key: string;
}

/** The event type of an unrecognised span: the engine's own word for a span that it cannot name. */
const UNKNOWN = `${EVENT_TYPE_PREFIX}dev.Unknown`;

/**
 * Determines a span's event type, which OTLP does not carry, from its name and attribute set. A name that is not known is
 * matched by its attributes (asked for only then): the one message that has them all (the one with the fewest fields, if it is alone with that).
 */
export function spanEventType(name: string, attributesOf: () => readonly Named[], shapes: SpanShapes): string {
  const eventType = eventTypeByName(name);
  if (eventType !== undefined) return eventType;
  if (DOCUMENTED_NODE.test(name)) {
    const isProcessed = attributesOf().some(({ key }) => ONLY_PROCESSED.has(key));
    return EVENT_TYPE_PREFIX + (isProcessed ? 'node.NodeProcessed' : 'node.NodeEvaluated');
  }
  return byAttributes(attributesOf(), shapes) ?? UNKNOWN;
}

/** The event type of a span whose name is one that the engine makes; `undefined` for any other name. */
export function eventTypeByName(name: string): string | undefined {
  for (const { beginning, eventType } of NAME_BEGINNINGS) if (name.startsWith(beginning)) return eventType;
  return NAME_PATTERNS.find(({ pattern }) => pattern.test(name))?.eventType;
}

function byAttributes(attributes: readonly Named[], shapes: SpanShapes): string | undefined {
  if (attributes.length === 0) return undefined;
  const fitting = shapes.filter(({ fields }) => attributes.every(({ key }) => fields.has(key)));
  const fewest = Math.min(...fitting.map(({ fields }) => fields.size));
  const best = fitting.filter(({ fields }) => fields.size === fewest);
  return best.length === 1 ? best[0]?.eventType : undefined;
}

/** The event type without the public prefix, for example `node.NodeProcessed`; other types come back whole. */
export function shortEventType(eventType: string): string {
  return eventType.startsWith(EVENT_TYPE_PREFIX) ? eventType.slice(EVENT_TYPE_PREFIX.length) : eventType;
}

/** By event type without the prefix. */
const SEVERITIES: ReadonlyMap<string, Severity> = new Map(
  [...EVENTS].flatMap(([eventType, { span }]) =>
    span === undefined ? [] : [[shortEventType(eventType), span.severity]],
  ),
);

/** The operations that are DEBUG; the others are INFO. */
const DEBUG_OPERATION = 'hydrate_relation_cache';

/** Whether a span's attribute is this text. The only question that the rules ask, so that each decoder can answer it. */
export type IsText = (name: string, text: string) => boolean;

/**
 * The severity of a span, which OTLP does not carry.
 * @param shortType event type without the public prefix
 * @param isText its attributes; the phase decides for evaluated nodes: INFO in RUN, else DEBUG; what is done, for generic operations
 */
export function spanSeverity(shortType: string, isText: IsText): Severity {
  switch (shortType) {
    case 'node.NodeEvaluated':
      return isText('phase', 'EXECUTION_PHASE_RUN') ? INFO : DEBUG;
    case 'generic.GenericOpExecuted':
      return isText('operation_id', DEBUG_OPERATION) ? DEBUG : INFO;
    default:
      return SEVERITIES.get(shortType) ?? INFO;
  }
}

/**
 * The name of the span that a log record belongs to, determined from the record alone; `null` if it cannot be.
 * OTLP carries only the span's id, and a span that never ends never comes. Read off real runs: what names a node is
 * logged in the node's `Node evaluated` span, what names a file while parsing in the file's `Asset parsed` span,
 * progress in its phase's span, and the rest in the invocation span.
 */
export function inferLogSpanName(record: LogRecord): string | null {
  const type = shortEventType(record.eventType);
  if (type === 'query.AdapterConnectionOpen' || type === 'query.AdapterConnectionClose') return null;
  const { attributes } = record;
  const uniqueId = attributes.text('unique_id');
  if (uniqueId !== undefined) return `Node evaluated (${uniqueId})`;
  const phase = attributes.text('phase')?.replace('EXECUTION_PHASE_', '');
  if (phase === undefined) return `dbt invocation (${invocationIdOf(record.traceId)})`;
  const path = attributes.text('relative_path');
  if (type === 'log.UserLogMessage' && path !== undefined) return `Asset parsed (${path})`;
  return `Phase: ${phase}`;
}

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

/** Attributes of a record from their parts, in this order. */
export function attributesOf(parts: readonly AttributePart[]): Attributes {
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
