import {
  type DescribedField,
  type DescribedSchema,
  type DescribedType,
  readSchema,
  type ScalarKind,
} from './read-schema.js';

let loaded: PublicSchema | undefined;

/** The engine's public telemetry schema, version 1.0.615, as the .proto files below `proto/dbtlabs/` say it. */
export class PublicSchema {
  /** That of this thread. @throws Error when a .proto file is missing or damaged, where nothing was built of them */
  static load(): PublicSchema {
    loaded ??= new PublicSchema(readSchema());
    return loaded;
  }

  private readonly messages = new Map<string, MessageType>();
  private readonly enums: ReadonlyMap<string, EnumType>;
  private readonly described: ReadonlyMap<string, readonly DescribedField[]>;

  private constructor({ messages, enums }: DescribedSchema) {
    this.enums = new Map(enums.map(([fullName, values]) => [fullName, enumOf(fullName, values)]));
    this.described = new Map(messages);
    for (const name of this.described.keys()) this.messageOf(name);
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

  private messageOf(fullName: string): MessageType {
    const known = this.messages.get(fullName);
    if (known !== undefined) return known;
    const fields: Field[] = [];
    const byName = new Map<string, Field>();
    const message: MessageType = { fullName, fields, field: (name) => byName.get(name) };
    // Known before its fields are, so that a message may contain itself.
    this.messages.set(fullName, message);
    for (const { type, keyKind, ...described } of this.described.get(fullName) ?? []) {
      const value = this.typeOf(type);
      const field: Field = {
        ...{ oneof: undefined, ...described },
        type: keyKind === undefined ? value : { kind: 'map', keyKind, value },
      };
      fields.push(field);
      byName.set(field.name, field);
    }
    return message;
  }

  private typeOf(type: DescribedType): FieldType {
    switch (type.kind) {
      case 'message':
        return { kind: 'message', message: this.messageOf(type.fullName) };
      case 'enum':
        return { kind: 'enum', enum: this.enums.get(type.fullName) ?? enumOf(type.fullName, []) };
      default:
        return { kind: type.kind };
    }
  }
}

function enumOf(fullName: string, values: readonly (readonly [string, number])[]): EnumType {
  return {
    fullName,
    numberByName: new Map(values),
    nameByNumber: new Map(values.map(([name, number]) => [number, name])),
  };
}

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
