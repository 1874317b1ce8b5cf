import type { JsonValue } from '../record/attributes.js';
import { ALL_FIELDS, EVENTS, type EventRow, fieldsOfMessage } from '../record/event-table.js';
import { fieldTexts, itemTexts } from '../record/record-line.js';
import { type AttributeColumn, isAttributeColumn } from './schema.js';

/** A field of a message that has a column. */
interface ColumnField {
  readonly field: string;
  readonly column: AttributeColumn;
  /** What the column holds when the field is left out in JSON; without one (an optional field) it is null then. */
  readonly zero?: string | number;
}

/** A field of a message that is kept in `json_payload`. */
interface PayloadField {
  readonly field: string;
  /** What the payload holds when the field is left out in JSON; without one the key is left out as well. */
  readonly zero?: JsonValue;
  /** A 64-bit integer: a string in JSONL, a number in the payload. */
  readonly isUint64?: boolean;
}

/** Where the fields of one message go. */
export interface MessageLayout {
  readonly columns: readonly ColumnField[];
  /** In the payload's order. A field named in no list follows them. */
  readonly payload: readonly PayloadField[];
  /** `always`: the payload is written even when it is `{}`. `any`: it is null when no field of it is set. */
  readonly payloadIs: 'always' | 'any';
  /** Names of the fields that are in one of the lists. */
  readonly fields: ReadonlySet<string>;
  /**
   * The message's field of type `map<string, DebugValue>` that is the payload itself. A field that the message does not
   * know stands beside its entries; one that is named like an entry takes its place.
   */
  readonly payloadMap?: string;
  /** A column that holds the same text for every message of this type. */
  readonly constant?: { readonly column: AttributeColumn; readonly text: string };
}

/** The oneof whose member is wrapped in the payload: `{"node_outcome_detail":{"NodeTestDetail":{…}}}`. */
export const ONEOF_FIELD = 'node_outcome_detail';

/** Members of the oneof, by their field name; in the payload they bear the name in CamelCase. */
export const ONEOF_MEMBERS: ReadonlyMap<string, string> = new Map(
  ALL_FIELDS.flatMap(([name, { isOutcomeDetail }]) => (isOutcomeDetail === true ? [[name, camelCase(name)]] : [])),
);

function camelCase(name: string): string {
  return name.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * The layout of every message that the engine writes with columns of its own, by full name. An event type that is not
 * here goes into `json_payload` as it is. Source: the engine's public code and `parquet-layout.json`.
 */
export const MESSAGE_LAYOUTS: ReadonlyMap<string, MessageLayout> = new Map(
  [...EVENTS].flatMap(([eventType, row]) => {
    const layout = layoutOf(row);
    return layout === undefined ? [] : [[eventType, layout]];
  }),
);

function layoutOf({ parquet, fields }: EventRow): MessageLayout | undefined {
  if (parquet === undefined) return undefined;
  const columns: ColumnField[] = [];
  const payload: PayloadField[] = [];
  for (const [field, { kind, column, isInPayload, isOutcomeDetail, zero }] of Object.entries(fields)) {
    if (column !== undefined) {
      const hasZero = typeof zero === 'string' || typeof zero === 'number';
      columns.push({ field, column: attributeColumn(column), ...(hasZero && { zero }) });
    } else if (isInPayload === true) {
      payload.push({ field, ...(zero !== undefined && { zero }), ...(kind === 'int64' && { isUint64: true }) });
    } else if (isOutcomeDetail === true && payload.at(-1)?.field !== ONEOF_FIELD) payload.push({ field: ONEOF_FIELD });
  }
  const { payload: payloadIs, map, constant } = parquet;
  return {
    columns,
    payload,
    payloadIs,
    fields: new Set([...columns, ...payload].map(({ field }) => field)),
    ...(map !== undefined && { payloadMap: map }),
    ...(constant !== undefined && { constant: { ...constant, column: attributeColumn(constant.column) } }),
  };
}

function attributeColumn(name: string): AttributeColumn {
  if (!isAttributeColumn(name)) throw new Error(`The event table names a column ${name}, which Parquet does not have.`);
  return name;
}

/** The fields of a message in the order in which the engine writes them into `json_payload`. */
export interface KeyOrder {
  readonly [field: string]: KeyOrder | null;
}

// JSONL sorts keys; in `json_payload` they stand as the message declares them. `null`: a value without an order of its own.
function orderOf(fields: EventRow['fields']): KeyOrder {
  return Object.fromEntries(
    Object.entries(fields).map(([name, { message }]) => {
      const inner = message === undefined ? {} : fieldsOfMessage(message);
      return [name, Object.keys(inner).length < 2 ? null : orderOf(inner)];
    }),
  );
}

/** Orders by full message name, for messages that are in `json_payload` whole. */
export const MESSAGE_KEY_ORDERS: ReadonlyMap<string, KeyOrder> = new Map<string, KeyOrder>([
  ...[...EVENTS].flatMap(([eventType, { fields }]): [string, KeyOrder][] => {
    const layout = MESSAGE_LAYOUTS.get(eventType);
    const isWhole = layout !== undefined && layout.fields.size === 0 && layout.payloadMap === undefined;
    return isWhole && Object.keys(fields).length > 1 ? [[eventType, orderOf(fields)]] : [];
  }),
  ['v1.events.fusion.group.Groups', { groups: { name: null, owner: { name: null, emails: null } } }],
]);

/** Orders of the members of `node_outcome_detail`, by field name; members with one field need none. */
export const ONEOF_KEY_ORDERS: ReadonlyMap<string, KeyOrder> = new Map<string, KeyOrder>(
  ALL_FIELDS.flatMap(([name, { isOutcomeDetail, message }]): [string, KeyOrder][] => {
    const inner = isOutcomeDetail === true && message !== undefined ? fieldsOfMessage(message) : {};
    return Object.keys(inner).length < 2 ? [] : [[name, orderOf(inner)]];
  }),
);

/**
 * A JSON text without blanks whose objects have their keys in an order; those that the order does not know follow as they came. What
 * is no object, nor a list of some, is as it was.
 */
export function orderedJson(json: string, order: KeyOrder): string {
  if (json.startsWith('['))
    return `[${itemTexts(json)
      .map((item) => orderedObject(item, order))
      .join()}]`;
  return orderedObject(json, order);
}

function orderedObject(json: string, order: KeyOrder): string {
  if (!json.startsWith('{')) return json;
  const known = new Map<string, string>();
  const others: string[] = [];
  for (const { name, json: value } of fieldTexts(json)) {
    if (Object.hasOwn(order, name)) known.set(name, value);
    else others.push(`${JSON.stringify(name)}:${value}`);
  }
  const ordered = Object.entries(order).flatMap(([name, inner]) => {
    const value = known.get(name);
    if (value === undefined) return [];
    return [`${JSON.stringify(name)}:${inner === null ? value : orderedJson(value, inner)}`];
  });
  return `{${[...ordered, ...others].join()}}`;
}

/** What a `DebugValue` may hold, which its field is named after. */
export const DEBUG_TYPES: readonly string[] = ['string', 'float64', 'bool', 'bytes'];

/** Whether a JSON text is an object that maps names to `DebugValue`s, each an object with at most one field, named after its type. */
export function isDebugMap(json: string): boolean {
  return (
    json.startsWith('{') &&
    fieldTexts(json).every(({ json: value }) => {
      const fields = value.startsWith('{') ? fieldTexts(value) : undefined;
      return fields !== undefined && fields.length < 2 && fields.every(({ name }) => DEBUG_TYPES.includes(name));
    })
  );
}
