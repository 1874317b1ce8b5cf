import { EVENTS, type FieldKind } from '../record/event-table.js';
import type { Field, FieldType, MessageType } from './message-type.js';
import type { PublicSchema } from './public-schema.js';
import type { SpanShapes } from './span-event-type.js';

/** Spellings that are remembered for a field; others are looked up each time. */
export const MAX_OTHER_SPELLINGS = 256;
/** The longest of them, in characters. */
export const MAX_SPELLING_LENGTH = 256;

/** A field as decoding needs it. */
export interface AttributeField {
  readonly kind: FieldKind;
  /** Full name of the message that a field of a single message holds. */
  readonly message: string | undefined;
  /** The names of an enum's values by number and as a set; empty for other kinds. */
  readonly nameByNumber: ReadonlyMap<number, string>;
  readonly names: ReadonlySet<string>;
  /** What other spellings of its values were found to mean; filled as they come, at most `MAX_OTHER_SPELLINGS`. */
  readonly otherSpellings: Map<string, string>;
}

/** What decoding needs to know of the public schema. */
export interface AttributeSchema {
  /** `undefined` where the schema does not know the event type or the field. */
  field(eventType: string, name: string): AttributeField | undefined;
  /** The messages that are spans. */
  readonly spanShapes: SpanShapes;
}

/** The one enum that the engine's JSON spells as a number. */
const NUMBERED_ENUM = 'original_severity_number';
const NO_NAMES = { nameByNumber: new Map<number, string>(), names: new Set<string>() };

/** The public schema as decoding asks for it, one look-up a field. */
export class PublicAttributeSchema implements AttributeSchema {
  readonly spanShapes: SpanShapes;
  private readonly fields = new Map<string, ReadonlyMap<string, AttributeField>>();

  constructor(schema: PublicSchema) {
    for (const name of schema.messageNames) {
      const message = schema.message(name);
      if (message !== undefined) this.fields.set(name, fieldsOf(message));
    }
    this.spanShapes = [...EVENTS]
      .filter(([, { span }]) => span !== undefined)
      .map(([eventType]) => ({ eventType, fields: new Set(this.fields.get(eventType)?.keys()) }));
  }

  field(eventType: string, name: string): AttributeField | undefined {
    return this.fields.get(eventType)?.get(name);
  }
}

function fieldsOf(message: MessageType): ReadonlyMap<string, AttributeField> {
  return new Map(
    message.fields.map((field) => [
      field.name,
      {
        kind: kindOf(field),
        message: field.type.kind === 'message' && !field.isRepeated ? field.type.message.fullName : undefined,
        ...namesOf(field.type),
        otherSpellings: new Map(),
      },
    ]),
  );
}

function namesOf(type: FieldType): Pick<AttributeField, 'nameByNumber' | 'names'> {
  if (type.kind !== 'enum') return NO_NAMES;
  const { nameByNumber } = type.enum;
  return { nameByNumber, names: new Set(nameByNumber.values()) };
}

function kindOf(field: Field): FieldKind {
  if (field.isRepeated) return 'nested';
  if (field.name === NUMBERED_ENUM) return 'enumNumber';
  return scalarKind(field.type);
}

function scalarKind(type: FieldType): FieldKind {
  switch (type.kind) {
    case 'string':
    case 'bytes':
      return 'text';
    case 'int32':
    case 'uint32':
      return 'int32';
    case 'int64':
    case 'uint64':
      return 'int64';
    case 'bool':
    case 'double':
    case 'enum':
      return type.kind;
    case 'message':
    case 'map':
      return 'nested';
  }
}
