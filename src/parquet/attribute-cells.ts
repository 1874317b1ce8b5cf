import type { JsonObject, JsonValue } from '../record/json.js';
import { isJsonObject } from '../record/json.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { isDebugValue } from './debug-value.js';
import { inKeyOrder, MESSAGE_KEY_ORDERS, ONEOF_KEY_ORDERS } from './key-order.js';
import { ATTRIBUTE_KINDS, type AttributeColumn } from './leaf-column.js';
import {
  MESSAGE_LAYOUTS,
  type MessageLayout,
  ONEOF_FIELD,
  ONEOF_MEMBERS,
  type PayloadField,
} from './message-layout.js';
import { setOwn } from './set-own.js';

/** A cell of a column inside `attributes`. */
export type AttributeCell = string | number | bigint | boolean;

/** Takes the cells of one record's attributes; columns that it is not told of are null. */
export type CellTarget = (column: AttributeColumn, cell: AttributeCell) => void;

/**
 * Spreads a record's attributes over the columns of its message. Whatever has no column, or does not fit its column
 * (a text where a number belongs), is kept in `json_payload` under its own name; an unknown event type goes there whole.
 */
export function spreadAttributes(record: TelemetryRecord, target: CellTarget): void {
  const layout = MESSAGE_LAYOUTS.get(record.eventType);
  const order = MESSAGE_KEY_ORDERS.get(record.eventType);
  if (layout === undefined || layout.columns.length + layout.payload.length === 0) {
    target(
      'json_payload',
      order === undefined ? record.attributes.json : JSON.stringify(inKeyOrder(record.attributes.value, order)),
    );
    return;
  }
  const attributes = record.attributes.value;
  const rest = spreadColumns(layout, attributes, target);
  const payload = payloadOf(layout, attributes, rest);
  if (payload !== undefined) target('json_payload', JSON.stringify(payload));
}

/** The cell for a JSON value in a column; `undefined` when it does not fit there. */
function cellFor(column: AttributeColumn, value: JsonValue): AttributeCell | undefined {
  switch (ATTRIBUTE_KINDS[column]) {
    case 'text':
      return typeof value === 'string' ? value : undefined;
    case 'boolean':
      return typeof value === 'boolean' ? value : undefined;
    case 'uint32':
      return isIntegerWithin(value, 0, 2 ** 32 - 1) ? value : undefined;
    case 'int32':
      return isIntegerWithin(value, -(2 ** 31), 2 ** 31 - 1) ? value : undefined;
    case 'uint64':
      return uint64(value);
  }
}

/** Fills the columns; returns the fields whose values do not fit theirs. */
function spreadColumns(layout: MessageLayout, attributes: JsonObject, target: CellTarget): readonly string[] {
  const misfits: string[] = [];
  for (const { field, column, zero } of layout.columns) {
    const value = attributes[field];
    if (value === undefined || value === null) {
      if (zero !== undefined) target(column, zero);
      continue;
    }
    const cell = cellFor(column, value);
    if (cell === undefined) misfits.push(field);
    else target(column, cell);
  }
  if (layout.constant !== undefined) target(layout.constant.column, layout.constant.text);
  return misfits;
}

/** What is left for the payload; `undefined` when there is nothing and the message then has none. */
function payloadOf(layout: MessageLayout, attributes: JsonObject, misfits: readonly string[]): JsonObject | undefined {
  const payload: Record<string, JsonValue> = {};
  const spread = [spreadMap(layout, attributes, payload)];
  for (const field of layout.payload) {
    if (field.field === ONEOF_FIELD) spread.push(wrapOneof(attributes, payload));
    else addPayloadField(field, attributes, payload);
  }
  for (const field of misfits) payload[field] = attributes[field] ?? null;
  for (const field of Object.keys(attributes)) {
    if (layout.fields.has(field) || spread.includes(field)) continue;
    setOwn(payload, field, attributes[field] ?? null);
  }
  return layout.payloadIs === 'any' && Object.keys(payload).length === 0 ? undefined : payload;
}

/** Puts the entries of the message's map into the payload itself; returns the map's name if it was one. */
function spreadMap(
  { payloadMap }: MessageLayout,
  attributes: JsonObject,
  payload: Record<string, JsonValue>,
): string | undefined {
  const map = payloadMap === undefined ? undefined : attributes[payloadMap];
  if (!isJsonObject(map) || !Object.values(map).every(isDebugValue)) return undefined;
  for (const [key, value] of Object.entries(map)) setOwn(payload, key, value);
  return payloadMap;
}

function addPayloadField(
  { field, zero, isUint64 }: PayloadField,
  attributes: JsonObject,
  payload: Record<string, JsonValue>,
): void {
  const value = attributes[field] ?? zero;
  if (value !== undefined) payload[field] = isUint64 === true ? numberOf(value) : value;
}

/** Wraps the member that is set and returns its name; a second one (no message can hold it) stays under its own. */
function wrapOneof(attributes: JsonObject, payload: Record<string, JsonValue>): string | undefined {
  for (const [field, variant] of ONEOF_MEMBERS) {
    const value = attributes[field];
    if (!isJsonObject(value)) continue;
    payload[ONEOF_FIELD] = { [variant]: inKeyOrder(value, ONEOF_KEY_ORDERS.get(field)) };
    return field;
  }
  return undefined;
}

/** A string of digits as a number where that is exact; readers take both. */
function numberOf(value: JsonValue): JsonValue {
  if (typeof value !== 'string' || !/^\d{1,16}$/.test(value)) return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

function uint64(value: JsonValue): bigint | undefined {
  if (isIntegerWithin(value, 0, Number.MAX_SAFE_INTEGER)) return BigInt(value);
  if (typeof value !== 'string' || !/^(0|[1-9]\d{0,19})$/.test(value)) return undefined;
  const number = BigInt(value);
  return number < 2n ** 64n ? number : undefined;
}

function isIntegerWithin(value: JsonValue, least: number, greatest: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= greatest;
}
