import { Attributes } from '../record/attributes.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../record/json.js';
import { ownText } from '../record/own-text.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { EVENT_TYPE_PREFIX } from '../schema/public-schema.js';
import {
  type AttributeField,
  type AttributeSchema,
  MAX_OTHER_SPELLINGS,
  MAX_SPELLING_LENGTH,
} from './attribute-schema.js';

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

/** Marks of a record that may be in the spelling of documentation: looked for before anything is parsed. */
const OLD_MARK = /"(?:test_outcome|phase|last_phase|[a-z_]*outcome|[a-z_]*reason)":"[A-Za-z][a-z]/;

/**
 * Reads a record in the spellings of documentation as its modern form: enum values, the span name `Node(<unique_id>)`,
 * a `test_outcome` beside the node's outcome. A record in modern spelling comes back as it is.
 */
export function modernSpelling<T extends TelemetryRecord>(record: T, schema: AttributeSchema): T {
  if (!record.eventType.startsWith(EVENT_TYPE_PREFIX)) return record;
  const isModern = !OLD_MARK.test(record.attributes.json) && !record.attributes.json.includes('"test_outcome":"TEST');
  const attributes = isModern ? undefined : modernAttributes(record.attributes.value, record.eventType, schema);
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

function modernSpanName(record: TelemetryRecord): string | null {
  const uniqueId =
    record.spanName?.startsWith('Node(') !== true ? undefined : DOCUMENTED_NAME.exec(record.spanName)?.[1];
  if (uniqueId === undefined) return record.spanName;
  return `${record.eventType.endsWith('.NodeProcessed') ? 'Node processed' : 'Node evaluated'} (${uniqueId})`;
}

/** The attributes with modern values, in key order; `undefined` where nothing changes. */
function modernAttributes(attributes: JsonObject, eventType: string, schema: AttributeSchema): JsonObject | undefined {
  const changes: Record<string, JsonValue> = {};
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value !== 'string') continue;
    const field = schema.field(eventType, name);
    if (field?.kind !== 'enum') continue;
    const modern = modernEnumName(value, field);
    if (modern !== value) changes[name] = modern;
  }
  const outcome = attributes.test_outcome;
  const isLifted = typeof outcome === 'string' && schema.field(eventType, 'node_test_detail') !== undefined;
  if (isLifted) changes.node_test_detail = testDetail(attributes.node_test_detail, outcome);
  if (Object.keys(changes).length === 0) return undefined;
  const { test_outcome: lifted, ...rest } = { ...attributes, ...changes };
  const all = isLifted || lifted === undefined ? rest : { ...rest, test_outcome: lifted };
  return Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1)));
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
