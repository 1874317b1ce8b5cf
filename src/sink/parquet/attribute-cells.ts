import type { JsonObject, JsonValue } from '../../record/json.js';
import { isJsonObject } from '../../record/json.js';
import type { TelemetryRecord } from '../../record/telemetry-record.js';
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
  const taken = spreadColumns(layout, attributes, target);
  const payload = payloadOf(layout, attributes, taken);
  if (layout.payloadIs === 'always' || Object.keys(payload).length > 0) {
    target('json_payload', JSON.stringify(payload));
  }
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

/** Fills the columns; returns the fields that need no place in the payload any more. */
function spreadColumns(layout: MessageLayout, attributes: JsonObject, target: CellTarget): Set<string> {
  const taken = new Set<string>();
  for (const { field, column, zero } of layout.columns) {
    const value = attributes[field];
    if (value === undefined || value === null) {
      if (zero !== undefined) target(column, zero);
      taken.add(field);
      continue;
    }
    const cell = cellFor(column, value);
    if (cell === undefined) continue;
    target(column, cell);
    taken.add(field);
  }
  if (layout.constant !== undefined) target(layout.constant.column, layout.constant.text);
  return taken;
}

function payloadOf(layout: MessageLayout, attributes: JsonObject, taken: Set<string>): JsonObject {
  const payload: Record<string, JsonValue> = {};
  if (layout.payloadMap !== undefined) {
    const map = attributes[layout.payloadMap];
    if (isJsonObject(map)) {
      for (const [key, value] of Object.entries(map)) setOwn(payload, key, value);
      taken.add(layout.payloadMap);
    }
  }
  for (const field of layout.payload) addPayloadField(field, attributes, taken, payload);
  for (const [field, value] of Object.entries(attributes)) {
    if (!taken.has(field)) setOwn(payload, field, value);
  }
  return payload;
}

function addPayloadField(
  { field, zero, isUint64 }: PayloadField,
  attributes: JsonObject,
  taken: Set<string>,
  payload: Record<string, JsonValue>,
): void {
  if (field === ONEOF_FIELD) {
    addOneof(attributes, taken, payload);
    return;
  }
  const value = attributes[field] ?? zero;
  taken.add(field);
  if (value === undefined) return;
  payload[field] = isUint64 === true ? numberOf(value) : value;
}

/** Wraps the member that is set; a second one (no message can hold it) stays under its own name. */
function addOneof(attributes: JsonObject, taken: Set<string>, payload: Record<string, JsonValue>): void {
  for (const [field, variant] of ONEOF_MEMBERS) {
    const value = attributes[field];
    if (!isJsonObject(value)) continue;
    payload[ONEOF_FIELD] = { [variant]: inKeyOrder(value, ONEOF_KEY_ORDERS.get(field)) };
    taken.add(field);
    return;
  }
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
