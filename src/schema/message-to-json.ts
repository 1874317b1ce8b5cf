import type { JsonObject, JsonValue } from '../record/json.js';
import type { Field, FieldType, MessageType } from './message-type.js';

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
