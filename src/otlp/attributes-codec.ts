import { reasonOf } from '../core/errors.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../record/attributes.js';
import type { EnumType, Field, FieldType, MessageType, PublicSchema, ScalarKind } from './public-schema.js';

/**
 * Turns a record's attributes (the engine's JSON: snake_case names, enums by name, 64-bit integers as strings) into the
 * protobuf bytes of its message and back. What JSON cannot distinguish from its absence (a plain zero) is left out both ways.
 */
export class AttributesCodec {
  constructor(private readonly schema: PublicSchema) {}

  /**
   * @throws SchemaError for an event type, field or enum name that the schema does not know, and for a value that does
   * not fit its field: bytes cannot carry it, and nothing is dropped in silence.
   */
  encode(eventType: string, attributes: JsonObject): Uint8Array {
    const { message, wireType } = this.typesOf(eventType);
    return wireType.encode(messageFromJson(attributes, message)).finish();
  }

  /** @throws SchemaError for an event type that the schema does not know, and for bytes that are not its message. */
  decode(eventType: string, bytes: Uint8Array): JsonObject {
    const { message, wireType } = this.typesOf(eventType);
    try {
      const decoded: unknown = wireType.decode(bytes);
      return messageToJson(decoded as Readonly<Record<string, unknown>>, message);
    } catch (cause) {
      const reason = reasonOf(cause);
      throw new SchemaError(`These ${bytes.byteLength} bytes are not a ${eventType}: ${reason}.`, { cause });
    }
  }

  private typesOf(eventType: string) {
    const message = this.schema.message(eventType);
    const wireType = this.schema.wireType(eventType);
    if (message !== undefined && wireType !== undefined) return { message, wireType };
    throw new SchemaError(`The public schema does not know the message ${eventType}; a newer schema may.`);
  }
}

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

/** The one enum field that the engine writes as a number. */
const ENUM_AS_NUMBER = 'v1.public.events.fusion.log.LogMessage.original_severity_number';

/**
 * The engine's JSON of a message that protobufjs decoded: unset fields and plain zeros left out, set optional zeros
 * written, keys sorted, enums by name (a number where the schema has none), 64-bit integers as strings, bytes in base64.
 */
export function messageToJson(decoded: Readonly<Record<string, unknown>>, message: MessageType): JsonObject {
  const set = message.fields.filter((field) => isSet(decoded, field));
  return sorted(set.map((field) => [field.name, fieldToJson(decoded[field.name], field, message)]));
}

/** protobufjs gives a message its own empty lists and maps, and finds every other default on the prototype. */
function isSet(decoded: Readonly<Record<string, unknown>>, field: Field): boolean {
  if (!Object.hasOwn(decoded, field.name)) return false;
  if (!field.isRepeated && field.type.kind !== 'map') return true;
  return Object.keys(decoded[field.name] as object).length > 0;
}

function fieldToJson(value: unknown, field: Field, message: MessageType): JsonValue {
  if (field.type.kind === 'enum' && `${message.fullName}.${field.name}` === ENUM_AS_NUMBER) return value as number;
  if (!field.isRepeated) return valueToJson(value, field.type);
  return (value as readonly unknown[]).map((item) => valueToJson(item, field.type));
}

// The casts say what protobufjs decodes a field of each kind to.
function valueToJson(value: unknown, type: FieldType): JsonValue {
  switch (type.kind) {
    case 'string':
    case 'bool':
    case 'int32':
    case 'uint32':
      return value as string | boolean | number;
    case 'int64':
    case 'uint64':
      return (value as { toString(): string }).toString();
    case 'double':
      return Number.isFinite(value) ? (value as number) : String(value);
    case 'bytes': {
      const bytes = value as Uint8Array;
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
    }
    case 'enum':
      return type.enum.nameByNumber.get(value as number) ?? (value as number);
    case 'message':
      return messageToJson(value as Readonly<Record<string, unknown>>, type.message);
    case 'map':
      return mapToJson(value as Readonly<Record<string, unknown>>, type.value);
  }
}

function mapToJson(map: Readonly<Record<string, unknown>>, valueType: FieldType): JsonObject {
  return sorted(Object.entries(map).map(([key, value]) => [key, valueToJson(value, valueType)]));
}

function sorted(entries: [string, JsonValue][]): JsonObject {
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Attributes do not fit the message that they claim to be. The message names the field, never its value. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError';
}
