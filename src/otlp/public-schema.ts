import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';
import { packageFile } from '../core/package-file.js';

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

let loaded: PublicSchema | undefined;

/** The engine's public telemetry schema, version 1.0.615, as the .proto files below `proto/dbtlabs/` say it. */
export class PublicSchema {
  /** That of this thread; the first time it reads the .proto files, about 15 ms in a fresh process. @throws Error when one is missing or damaged. */
  static load(): PublicSchema {
    loaded ??= PublicSchema.read();
    return loaded;
  }

  private static read(): PublicSchema {
    const paths = readdirSync(PROTO_FOLDER + FOLDER, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.proto'))
      .sort()
      .map((path) => FOLDER + path.replaceAll('\\', '/'));
    return new PublicSchema(loadProtoFiles(paths, { keepCase: true }));
  }

  private readonly messages = new Map<string, MessageType>();
  private readonly enums = new Map<string, EnumType>();
  private readonly wireTypes = new Map<string, protobuf.Type>();

  private constructor(root: protobuf.Root) {
    this.collect(root);
    for (const name of this.wireTypes.keys()) this.messageOf(name);
  }

  /** Full names of all messages: events and the parts that they are made of. */
  get messageNames(): readonly string[] {
    return [...this.messages.keys()];
  }

  get enumNames(): readonly string[] {
    return [...this.enums.keys()];
  }

  /** @param fullName for example an `event_type`; `undefined` for one that this version does not know. */
  message(fullName: string): MessageType | undefined {
    return this.messages.get(fullName);
  }

  enum(fullName: string): EnumType | undefined {
    return this.enums.get(fullName);
  }

  private collect(namespace: protobuf.NamespaceBase): void {
    for (const object of namespace.nestedArray) {
      const fullName = object.fullName.slice(1);
      if (object instanceof protobuf.Enum) this.enums.set(fullName, enumOf(fullName, object));
      if (object instanceof protobuf.Type) this.wireTypes.set(fullName, object);
      if (object instanceof protobuf.Namespace) this.collect(object);
    }
  }

  private messageOf(fullName: string): MessageType {
    const known = this.messages.get(fullName);
    if (known !== undefined) return known;
    const fields: Field[] = [];
    const byName = new Map<string, Field>();
    const message: MessageType = { fullName, fields, field: (name) => byName.get(name) };
    // Known before its fields are, so that a message may contain itself.
    this.messages.set(fullName, message);
    for (const wireField of this.wireTypes.get(fullName)?.fieldsArray ?? []) {
      const field = this.fieldOf(wireField);
      fields.push(field);
      byName.set(field.name, field);
    }
    return message;
  }

  private fieldOf(field: protobuf.Field): Field {
    const value = this.typeOf(field);
    const isMap = field instanceof protobuf.MapField;
    // `optional` is a oneof of one field, which protobufjs names with a leading underscore.
    const isOptional = field.partOf?.isProto3Optional === true;
    return {
      name: field.name,
      number: field.id,
      type: isMap ? { kind: 'map', keyKind: scalarKind(field.keyType), value } : value,
      isRepeated: field.repeated,
      isOptional,
      oneof: isOptional ? undefined : field.partOf?.name,
    };
  }

  private typeOf(field: protobuf.Field): FieldType {
    const resolved = field.resolve().resolvedType;
    if (resolved === null) return { kind: scalarKind(field.type) };
    const fullName = resolved.fullName.slice(1);
    if (resolved instanceof protobuf.Type) return { kind: 'message', message: this.messageOf(fullName) };
    return { kind: 'enum', enum: this.enums.get(fullName) ?? enumOf(fullName, resolved) };
  }
}

function enumOf(fullName: string, type: protobuf.Enum): EnumType {
  const entries = Object.entries(type.values);
  return {
    fullName,
    numberByName: new Map(entries),
    nameByNumber: new Map(entries.map(([name, number]) => [number, name])),
  };
}

function scalarKind(type: string): ScalarKind {
  if (isScalar(type)) return type;
  throw new Error(`The schema uses the protobuf type ${type}, for which src/otlp/message-type.ts has no kind yet.`);
}

function isScalar(type: string): type is ScalarKind {
  return SCALARS.has(type);
}

/** The package's `proto/` folder. */
export const PROTO_FOLDER = fileURLToPath(packageFile('proto/'));

/**
 * Reads .proto files and what they import; takes about 10 ms for OTLP's.
 * Field names come out in lowerCamelCase, JSON's spelling of them, unless `keepCase` is set.
 * @param paths below `proto/`, spelt as `import` statements spell them.
 * @throws Error when a file is missing or is not proto3.
 */
export function loadProtoFiles(paths: readonly string[], options: { readonly keepCase?: boolean } = {}): protobuf.Root {
  const root = new protobuf.Root();
  // protobufjs carries Google's well-known types itself; everything else is found from the folder, never from the importer.
  root.resolvePath = (_importer, path) => (path.startsWith('google/protobuf/') ? path : PROTO_FOLDER + path);
  root.loadSync([...paths], { keepCase: options.keepCase ?? false });
  root.resolveAll();
  return root;
}

/** The kinds of protobuf's scalar fields that the public schema uses. */
export type ScalarKind = 'string' | 'bool' | 'int32' | 'uint32' | 'int64' | 'uint64' | 'double' | 'bytes';

/** The type of a field. Narrow by `kind`. */
export type FieldType =
  | { readonly kind: ScalarKind }
  | { readonly kind: 'enum'; readonly enum: EnumType }
  | { readonly kind: 'message'; readonly message: MessageType }
  | { readonly kind: 'map'; readonly keyKind: ScalarKind; readonly value: FieldType };

/** One field of a message. */
export interface Field {
  /** In snake_case, as in the .proto file and in the engine's JSON. */
  readonly name: string;
  readonly number: number;
  readonly type: FieldType;
  /** A list; maps are none. */
  readonly isRepeated: boolean;
  /** Declared `optional`: zero and unset differ. Members of a oneof and messages differ as well, without being so declared. */
  readonly isOptional: boolean;
  /** Name of the oneof that the field is a member of. */
  readonly oneof: string | undefined;
}

/** A message of the public schema. */
export interface MessageType {
  /** For example `v1.public.events.fusion.node.NodeProcessed`: the `event_type` of its records. */
  readonly fullName: string;
  /** In the order of the .proto file. */
  readonly fields: readonly Field[];
  field(name: string): Field | undefined;
}

/** An enum of the public schema; values that it does not name may still occur, as numbers. */
export interface EnumType {
  readonly fullName: string;
  readonly numberByName: ReadonlyMap<string, number>;
  readonly nameByNumber: ReadonlyMap<number, string>;
}
