import { Attributes } from '../record/attributes.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../record/json.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { EVENT_TYPE_PREFIX } from '../schema/public-schema.js';
import type { AttributeSchema } from './attribute-schema.js';

const TEST_OUTCOMES: ReadonlyMap<number, string> = new Map([
  [0, 'TEST_OUTCOME_PASSED'],
  [1, 'TEST_OUTCOME_WARNED'],
  [2, 'TEST_OUTCOME_FAILED'],
]);
const DOCUMENTED_NAME = /^Node\((.*)\)$/;

/**
 * The modern name of an enum's value. Documentation spells values without their prefix and in lower case (`Run`,
 * `success`, `noop`); a value that the schema does not know stays as it is.
 */
export function modernEnumName(value: string, names: ReadonlyMap<number, string>): string {
  const known = [...names.values()];
  if (known.length === 0 || known.includes(value)) return value;
  const wanted = plain(value);
  const prefix = plain(commonPrefix(known));
  return known.find((name) => plain(name) === wanted || plain(name) === prefix + wanted) ?? value;
}

/**
 * Reads a record in the spellings of documentation as its modern form: enum values, the span name `Node(<unique_id>)`,
 * a `test_outcome` beside the node's outcome. A record in modern spelling comes back as it is.
 */
export function modernSpelling(record: TelemetryRecord, schema: AttributeSchema): TelemetryRecord {
  if (!record.eventType.startsWith(EVENT_TYPE_PREFIX)) return record;
  const attributes = modernAttributes(record.attributes.value, record.eventType, schema);
  const spanName = modernSpanName(record);
  if (attributes === undefined && spanName === record.spanName) return record;
  const { line: _line, ...parts } = record;
  const changed = { ...parts, attributes: attributes === undefined ? record.attributes : Attributes.of(attributes) };
  if (changed.recordType === 'LogRecord') return { ...changed, spanName };
  return { ...changed, spanName: spanName ?? '' };
}

function modernSpanName(record: TelemetryRecord): string | null {
  const uniqueId = record.spanName === null ? undefined : DOCUMENTED_NAME.exec(record.spanName)?.[1];
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
    const modern = modernEnumName(value, field.enumNames);
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
