import type { SpanShapes } from './span-event-type.js';

/** How a field of a message is spelt in the engine's JSON. `nested` is a message, a map or a list. */
export type FieldKind = 'text' | 'int64' | 'int32' | 'bool' | 'double' | 'enum' | 'enumNumber' | 'nested';

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
