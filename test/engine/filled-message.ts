import type { Field, FieldType, MessageType } from '../../src/otlp/public-schema.js';
import type { JsonObject, JsonValue } from '../../src/record/attributes.js';

/** A number that no enum of the schema names. */
const UNKNOWN_ENUM_NUMBER = 90210;

/** Which values a filled message gets. */
export interface Filling {
  /** Index of the oneof's member that is set, modulo the number of its members. */
  readonly member: number;
  readonly values: 'ordinary' | 'extreme' | 'unknown enums';
}

/** The engine's JSON of a message with every field set. */
export function filledMessage(message: MessageType, filling: Filling): JsonObject {
  const fields = message.fields.filter((field) => isChosen(field, message, filling.member));
  return Object.fromEntries(
    fields.map((field) => {
      if (field.name === 'original_severity_number') return [field.name, 13];
      const value = filledValue(field.type, filling);
      return [field.name, field.isRepeated ? [value, value] : value];
    }),
  );
}

function isChosen(field: Field, message: MessageType, member: number): boolean {
  if (field.oneof === undefined) return true;
  const members = message.fields.filter(({ oneof }) => oneof === field.oneof);
  return members[member % members.length] === field;
}

function filledValue(type: FieldType, filling: Filling): JsonValue {
  const isExtreme = filling.values === 'extreme';
  switch (type.kind) {
    case 'string':
      return isExtreme ? '\u{10ffff}\u0000 ünïcode 龍 " \\ \n' : 'text';
    case 'bool':
      return true;
    case 'int32':
      return isExtreme ? 2 ** 31 - 1 : -1;
    case 'uint32':
      return isExtreme ? 2 ** 32 - 1 : 1;
    case 'int64':
      return isExtreme ? '9223372036854775807' : '-1';
    case 'uint64':
      return isExtreme ? '18446744073709551615' : '9007199254740993';
    case 'double':
      return isExtreme ? 5e-324 : 0.1;
    case 'bytes':
      return isExtreme ? '/////w==' : 'AAEC';
    case 'enum':
      return filling.values === 'unknown enums'
        ? UNKNOWN_ENUM_NUMBER
        : ([...type.enum.numberByName.keys()].at(-1) ?? 0);
    case 'message':
      return filledMessage(type.message, filling);
    case 'map':
      return Object.fromEntries(['a', 'é'].map((key) => [key, filledValue(type.value, filling)]));
  }
}
