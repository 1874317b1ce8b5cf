import type { JsonField, SchemaJson } from './schema-json.js';

type Schema = Pick<SchemaJson, 'messages' | 'enums'>;

/**
 * What a later schema broke of an earlier one: whatever was removed, renumbered, renamed or retyped, one sentence each.
 * Additions break nothing. A field is known by its number, as on the wire, and by its name, as in JSON.
 */
export function brokenPromises(earlier: Schema, later: Schema): string[] {
  return [
    ...Object.entries(earlier.messages).flatMap(([name, fields]) => messageFaults(name, fields, later.messages[name])),
    ...Object.entries(earlier.enums).flatMap(([name, values]) => enumFaults(name, values, later.enums[name])),
  ];
}

function messageFaults(name: string, fields: readonly JsonField[], later: readonly JsonField[] | undefined): string[] {
  if (later === undefined) return [`message ${name} was removed`];
  return fields.flatMap((field) => {
    const sameName = later.find((candidate) => candidate.name === field.name);
    if (sameName === undefined) return [`${name}.${field.name} was removed`];
    if (sameName.number !== field.number) return [`${name}.${field.name} was renumbered to ${sameName.number}`];
    return describeType(sameName) === describeType(field)
      ? []
      : [`${name}.${field.name} was retyped from ${describeType(field)} to ${describeType(sameName)}`];
  });
}

function enumFaults(
  name: string,
  values: Readonly<Record<string, number>>,
  later: Readonly<Record<string, number>> | undefined,
): string[] {
  if (later === undefined) return [`enum ${name} was removed`];
  return Object.entries(values).flatMap(([value, number]) => {
    const now = later[value];
    if (now === undefined) return [`${name}.${value} was removed`];
    return now === number ? [] : [`${name}.${value} was renumbered to ${now}`];
  });
}

function describeType({ type, optional, repeated, oneof }: JsonField): string {
  const label = repeated ? 'repeated ' : optional ? 'optional ' : '';
  return `${label}${type}${oneof === undefined ? '' : ` of oneof ${oneof}`}`;
}
