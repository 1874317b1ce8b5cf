import { Attributes, ownText } from '../record/attributes.js';
import { ALL_FIELDS, EVENT_TYPE_PREFIX, EVENTS, type FieldKind } from '../record/event-table.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../record/json.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { type Field, type FieldType, type MessageType, PublicSchema } from './public-schema.js';
import type { SpanShapes } from './span-event-type.js';

/** Spellings that are remembered for a field; others are looked up each time. */
export const MAX_OTHER_SPELLINGS = 256;
/** The longest of them, in characters. */
export const MAX_SPELLING_LENGTH = 256;

/** A field as decoding needs it. */
export interface AttributeField {
  readonly kind: FieldKind;
  /** Full name of the message that a field of a single message holds. */
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

/** Fields of the schema that hold an enum, at any depth; a number stands in the one that is not here. */
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

let schema: PublicAttributeSchema | undefined;

/** As `modernSpelling`, by the public schema, which is loaded for the first record that may not be in modern spelling. */
export function modernRecord<T extends TelemetryRecord>(record: T): T {
  if (!mayNeedSpelling(record)) return record;
  schema ??= new PublicAttributeSchema(PublicSchema.load());
  return modernSpelling(record, schema);
}
