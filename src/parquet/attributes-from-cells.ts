import { isDeepStrictEqual } from 'node:util';
import { Attributes } from '../record/attributes.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../record/json.js';
import { isDebugValue } from './debug-value.js';
import { sortedKeys } from './key-order.js';
import type { AttributeColumn } from './leaf-column.js';
import { MESSAGE_LAYOUTS, type MessageLayout, ONEOF_FIELD, ONEOF_MEMBERS } from './message-layout.js';
import { setOwn } from './set-own.js';

/** A cell of a column inside `attributes`. */
export type AttributeCell = string | number | bigint | boolean;

/** The cells of one row's `attributes`; null cells are left out. */
export type AttributeCells = ReadonlyMap<AttributeColumn, AttributeCell>;

const MEMBERS_BY_VARIANT = new Map([...ONEOF_MEMBERS].map(([field, variant]) => [variant, field]));
const NO_LAYOUT: MessageLayout = { columns: [], payload: [], payloadIs: 'any', fields: new Set() };

/**
 * Puts a record's attributes together again as JSONL has them: plain zero values left out, 64-bit integers as strings,
 * keys sorted. A cell in a column that the message does not use (a newer engine's) becomes an attribute of that name.
 */
export function attributesFromCells(eventType: string, cells: AttributeCells): Attributes {
  const layout = MESSAGE_LAYOUTS.get(eventType);
  const text = cells.get('json_payload');
  const payload = typeof text === 'string' ? parsePayload(text) : {};
  if (layout === undefined && cells.size === 1 && typeof text === 'string' && !mayBeParsed(text)) {
    // An unknown message whose numbers JavaScript cannot hold: its own text is kept.
    return Attributes.fromJson(text);
  }
  const attributes: Record<string, JsonValue> = {};
  fromColumns(layout ?? NO_LAYOUT, cells, attributes);
  fromPayload(layout ?? NO_LAYOUT, payload, attributes);
  return Attributes.of(sortedKeys(attributes));
}

function fromColumns(layout: MessageLayout, cells: AttributeCells, attributes: Record<string, JsonValue>): void {
  const used = new Set<AttributeColumn>(['json_payload']);
  for (const { field, column, zero } of layout.columns) {
    used.add(column);
    const cell = cells.get(column);
    if (cell !== undefined && cell !== zero) attributes[field] = jsonOf(cell);
  }
  if (layout.constant !== undefined && cells.get(layout.constant.column) === layout.constant.text) {
    used.add(layout.constant.column);
  }
  for (const [column, cell] of cells) {
    if (!used.has(column)) attributes[column] = jsonOf(cell);
  }
}

function fromPayload(layout: MessageLayout, payload: JsonObject, attributes: Record<string, JsonValue>): void {
  const map: Record<string, JsonValue> = {};
  for (const [key, value] of Object.entries(payload)) {
    if (layout.payloadMap !== undefined && isDebugValue(value)) {
      setOwn(map, key, value);
    } else if (key === ONEOF_FIELD && isJsonObject(value)) {
      unwrapOneof(value, attributes);
    } else if (MEMBERS_BY_VARIANT.has(key)) {
      // Older engines wrote the member itself as the payload.
      unwrapOneof({ [key]: value }, attributes);
    } else {
      const field = layout.payload.find((candidate) => candidate.field === key);
      if (field?.zero !== undefined && isDeepStrictEqual(field.zero, value)) continue;
      setOwn(attributes, key, field?.isUint64 === true && typeof value === 'number' ? String(value) : value);
    }
  }
  if (layout.payloadMap !== undefined && Object.keys(map).length > 0) attributes[layout.payloadMap] = map;
}

function unwrapOneof(value: JsonObject, attributes: Record<string, JsonValue>): void {
  for (const [variant, detail] of Object.entries(value)) {
    setOwn(attributes, MEMBERS_BY_VARIANT.get(variant) ?? variant, detail);
  }
}

function parsePayload(text: string): JsonObject {
  const value = parse(text);
  // Not the engine's writing; kept under the column's name.
  return isJsonObject(value) ? value : { json_payload: value ?? text };
}

/** Whether nothing is lost when the text is parsed and written again, or it cannot be kept as it is. */
function mayBeParsed(text: string): boolean {
  const value = parse(text);
  // Text on several lines cannot be kept: a record is one line.
  return !isJsonObject(value) || JSON.stringify(value) === text || /[\r\n]/.test(text);
}

function parse(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

function jsonOf(cell: AttributeCell): JsonValue {
  return typeof cell === 'bigint' ? String(cell) : cell;
}
