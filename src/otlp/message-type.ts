/** The kinds of protobuf's scalar fields that the public schema uses. */
export type ScalarKind = 'string' | 'bool' | 'int32' | 'uint32' | 'int64' | 'uint64' | 'double' | 'bytes';

/** What a field holds. Narrow by `kind`. */
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
