import { isJsonObject, type JsonObject, type JsonValue } from '../record/json.js';
import type { EnumType, Field, FieldType, MessageType, ScalarKind } from './message-type.js';
import { SchemaError } from './schema-error.js';

/** A 64-bit integer as protobufjs takes it: its two halves. */
interface Halves {
  readonly low: number;
  readonly high: number;
}

/** A value that protobufjs encodes. */
type WireValue = string | number | boolean | Uint8Array | Halves | readonly WireValue[] | WireObject;

interface WireObject {
  [name: string]: WireValue;
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const INTEGER = /^-?\d{1,20}$/;
const RANGES = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  uint64: [0n, 2n ** 64n - 1n],
} as const;

/**
 * Builds the object that protobufjs encodes as `message` from the engine's JSON of it. Enums may be names or numbers
 * (also numbers that the schema does not name), integers numbers or strings; `null` is unset.
 * @throws SchemaError naming the field that is unknown or does not fit.
 */
export function messageFromJson(json: JsonObject, message: MessageType): WireObject {
  const wire: WireObject = {};
  const oneofs = new Set<string>();
  for (const [name, value] of Object.entries(json)) {
    if (value === null) continue;
    const field = message.field(name);
    if (field === undefined) throw new SchemaError(`${message.fullName} has no field ${JSON.stringify(name)}.`);
    if (field.oneof !== undefined) {
      if (oneofs.has(field.oneof)) throw new SchemaError(`${message.fullName} has several members of ${field.oneof}.`);
      oneofs.add(field.oneof);
    }
    wire[name] = fieldFromJson(value, field, `${message.fullName}.${name}`);
  }
  return wire;
}

function fieldFromJson(value: JsonValue, field: Field, path: string): WireValue {
  if (!field.isRepeated) return valueFromJson(value, field.type, path);
  if (!isList(value)) throw misfit(path, 'a list');
  return value.map((item) => valueFromJson(item, field.type, path));
}

function valueFromJson(value: JsonValue, type: FieldType, path: string): WireValue {
  switch (type.kind) {
    case 'message':
      if (!isJsonObject(value)) throw misfit(path, 'an object');
      return messageFromJson(value, type.message);
    case 'map':
      return mapFromJson(value, type.value, path);
    case 'enum':
      return enumFromJson(value, type.enum, path);
    default:
      return scalarFromJson(value, type.kind, path);
  }
}

function mapFromJson(value: JsonValue, valueType: FieldType, path: string): WireObject {
  if (!isJsonObject(value)) throw misfit(path, 'an object');
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, valueFromJson(item, valueType, path)]));
}

function enumFromJson(value: JsonValue, type: EnumType, path: string): number {
  if (typeof value === 'number') return Number(integerFromJson(value, 'int32', path));
  const number = typeof value === 'string' ? type.numberByName.get(value) : undefined;
  if (number === undefined) throw misfit(path, `a name or number of ${type.fullName}`);
  return number;
}

function scalarFromJson(value: JsonValue, kind: ScalarKind, path: string): WireValue {
  switch (kind) {
    case 'string':
      if (typeof value !== 'string') throw misfit(path, 'a string');
      return value;
    case 'bool':
      if (typeof value !== 'boolean') throw misfit(path, 'true or false');
      return value;
    case 'bytes':
      if (typeof value !== 'string' || !BASE64.test(value)) throw misfit(path, 'bytes in base64');
      return Buffer.from(value, 'base64');
    case 'double':
      return doubleFromJson(value, path);
    case 'int32':
    case 'uint32':
      return Number(integerFromJson(value, kind, path));
    case 'int64':
    case 'uint64':
      return halves(integerFromJson(value, kind, path));
  }
}

function doubleFromJson(value: JsonValue, path: string): number {
  if (typeof value === 'number') return value;
  if (value === 'NaN' || value === 'Infinity' || value === '-Infinity') return Number(value);
  throw misfit(path, 'a number');
}

function integerFromJson(value: JsonValue, kind: keyof typeof RANGES, path: string): bigint {
  const isSpeltRight =
    typeof value === 'number' ? Number.isSafeInteger(value) : typeof value === 'string' && INTEGER.test(value);
  if (isSpeltRight) {
    const integer = BigInt(value as string | number);
    const [min, max] = RANGES[kind];
    if (integer >= min && integer <= max) return integer;
  }
  throw misfit(path, `a whole number of type ${kind}`);
}

function halves(value: bigint): Halves {
  return { low: Number(BigInt.asIntN(32, value)), high: Number(BigInt.asIntN(32, value >> 32n)) };
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function misfit(path: string, expected: string): SchemaError {
  return new SchemaError(`${path} must be ${expected}.`);
}
