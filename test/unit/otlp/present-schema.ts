import { type Field, type FieldType, PublicSchema } from '../../../src/otlp/public-schema.js';
import type { JsonField, SchemaJson } from './schema-json.js';

/** The .proto files' messages and enums in the schema JSON's spelling. */
export function presentSchema(): Pick<SchemaJson, 'messages' | 'enums'> {
  const schema = PublicSchema.load();
  return {
    messages: Object.fromEntries(
      schema.messageNames.map((name) => [name, (schema.message(name)?.fields ?? []).map(fieldJson)]),
    ),
    enums: Object.fromEntries(
      schema.enumNames.map((name) => [name, Object.fromEntries(schema.enum(name)?.numberByName ?? [])]),
    ),
  };
}

function fieldJson(field: Field): JsonField {
  return {
    number: field.number,
    name: field.name,
    type: typeName(field.type),
    ...(field.isOptional ? { optional: true } : {}),
    ...(field.isRepeated ? { repeated: true } : {}),
    ...(field.oneof === undefined ? {} : { oneof: field.oneof }),
  };
}

function typeName(type: FieldType): string {
  switch (type.kind) {
    case 'map':
      return `map<${type.keyKind},${typeName(type.value)}>`;
    case 'message':
      return type.message.fullName;
    case 'enum':
      return type.enum.fullName;
    default:
      return type.kind;
  }
}
