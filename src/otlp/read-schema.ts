import { readdirSync } from 'node:fs';
import protobuf from 'protobufjs';
import { loadProtoFiles, PROTO_FOLDER } from './proto-files.js';

/** The kinds of protobuf's scalar fields that the public schema uses. */
export type ScalarKind = 'string' | 'bool' | 'int32' | 'uint32' | 'int64' | 'uint64' | 'double' | 'bytes';

/** The schema in plain values, which JSON can hold. */
export interface DescribedSchema {
  /** Messages by their full names, with their fields in the order of the .proto file. */
  readonly messages: readonly (readonly [string, readonly DescribedField[]])[];
  readonly enums: readonly (readonly [string, readonly (readonly [string, number])[]])[];
}

/** One field, as `Field` of the public schema. */
export interface DescribedField {
  readonly name: string;
  readonly number: number;
  readonly isRepeated: boolean;
  readonly isOptional: boolean;
  /** Of a map that of its values. */
  readonly type: DescribedType;
  /** Of a map's keys; left out where it is none. */
  readonly keyKind?: ScalarKind;
  /** Left out where it is a member of none. */
  readonly oneof?: string;
}

/** The type of a field, what it refers to by its full name. */
export type DescribedType =
  | { readonly kind: ScalarKind }
  | { readonly kind: 'enum' | 'message'; readonly fullName: string };

const FOLDER = 'dbtlabs/proto/public/';
const SCALARS: ReadonlySet<string> = new Set<ScalarKind>([
  'string',
  'bool',
  'int32',
  'uint32',
  'int64',
  'uint64',
  'double',
  'bytes',
]);

/**
 * Reads the engine's public schema from its .proto files, about 15 ms in a fresh process. The build calls it once and puts what it
 * returns in its place (`build/bundle.mjs`): no start reads the files.
 * @throws Error when one is missing or damaged.
 */
export function readSchema(): DescribedSchema {
  const paths = readdirSync(PROTO_FOLDER + FOLDER, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.proto'))
    .sort()
    .map((path) => FOLDER + path.replaceAll('\\', '/'));
  const messages: [string, DescribedField[]][] = [];
  const enums: [string, [string, number][]][] = [];
  const collect = (namespace: protobuf.NamespaceBase) => {
    for (const object of namespace.nestedArray) {
      if (object instanceof protobuf.Enum) enums.push([nameOf(object), Object.entries(object.values)]);
      if (object instanceof protobuf.Type) messages.push([nameOf(object), object.fieldsArray.map(describe)]);
      if (object instanceof protobuf.Namespace) collect(object);
    }
  };
  collect(loadProtoFiles(paths, { keepCase: true }));
  return { messages, enums };
}

function describe(field: protobuf.Field): DescribedField {
  // `optional` is a oneof of one field, which protobufjs names with a leading underscore.
  const isOptional = field.partOf?.isProto3Optional === true;
  const oneof = isOptional ? undefined : field.partOf?.name;
  return {
    name: field.name,
    number: field.id,
    type: typeOf(field),
    isRepeated: field.repeated,
    isOptional,
    ...(field instanceof protobuf.MapField && { keyKind: scalarKind(field.keyType) }),
    ...(oneof !== undefined && { oneof }),
  };
}

function typeOf(field: protobuf.Field): DescribedType {
  const resolved = field.resolve().resolvedType;
  if (resolved === null) return { kind: scalarKind(field.type) };
  return { kind: resolved instanceof protobuf.Type ? 'message' : 'enum', fullName: nameOf(resolved) };
}

/** Without the dot in front. */
function nameOf({ fullName }: protobuf.ReflectionObject): string {
  return fullName.slice(1);
}

function scalarKind(type: string): ScalarKind {
  if (isScalar(type)) return type;
  throw new Error(`The schema uses the protobuf type ${type}, for which src/otlp/public-schema.ts has no kind yet.`);
}

function isScalar(type: string): type is ScalarKind {
  return SCALARS.has(type);
}
