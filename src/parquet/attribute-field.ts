import { mayBeSpeltOtherwise } from '../decode/spelling.js';
import type { ByteCursor, TextSlice } from './byte-cursor.js';
import { ByteSource } from './byte-source.js';
import type { OrderedCopy } from './ordered-copy.js';
import type { AttributeWriter } from './row-group-columns.js';

const OBJECT = 0x7b;
const OBJECT_END = 0x7d;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const UNDERSCORE = 0x5f;
/** Digits of a count that every reader of JSON holds exactly. */
const SAFE_DIGITS = 15;

/** A field of a message, and what becomes of it. `place` is where its value was found, and in which line. */
export interface Field {
  /** The key with its colon, as it stands in a line. */
  readonly key: ByteSource;
  /** Its value is a name of an enum, which the general reader looks up where it does not look like one. */
  readonly isEnum: boolean;
  readonly use: FieldUse;
  readonly place: TextSlice & { foundIn: number };
}

/** What becomes of a field. */
export type FieldUse =
  | { readonly to: 'column'; readonly writer: AttributeWriter; readonly zero: ByteSource | number | undefined }
  | { readonly to: 'payload'; readonly zero: ByteSource | undefined; readonly isUint64: boolean }
  /** The map whose entries are the payload. */
  | { readonly to: 'map' }
  | { readonly to: 'oneof'; readonly head: ByteSource; readonly order: OrderedCopy | undefined };

/** Passes a field's value if it is one that fits its place, and notes where it is. */
export function readFieldValue({ use, place, isEnum }: Field, cursor: ByteCursor): boolean {
  const { bytes, at } = cursor;
  if (isEnum && bytes[at] === QUOTE && !isNameOfEnum(bytes, at + 1)) return false;
  place.start = at;
  switch (use.to) {
    case 'column':
      return readCell(use.writer.kind, place, cursor);
    case 'oneof':
      if (bytes[at] !== OBJECT || !cursor.value()) return false;
      place.end = cursor.at;
      return !mayBeSpeltOtherwise(bytes.toString('latin1', at, cursor.at));
    case 'map':
      if (!passDebugMap(cursor)) return false;
      place.end = cursor.at;
      return true;
    case 'payload':
      // A field that is null counts as left out; that is rare enough for the general reader.
      if (bytes[at] === 0x6e || !cursor.value()) return false;
      place.end = cursor.at;
      return !use.isUint64 || bytes[at] !== QUOTE || unquoteCount(bytes, place);
  }
}

/** Whether a text begins as the names of the schema's enums do, `NODE_OUTCOME_…`: what `mayBeSpeltOtherwise` looks for. */
function isNameOfEnum(bytes: Uint8Array, start: number): boolean {
  let at = start;
  while (isCapital(bytes[at])) at++;
  return at > start && bytes[at] === UNDERSCORE && isCapital(bytes[at + 1]);
}

function isCapital(byte = 0): boolean {
  return byte >= 0x41 && byte <= 0x5a;
}

/** Passes an object that maps names to `DebugValue`s: `isDebugValue` on bytes. */
function passDebugMap(cursor: ByteCursor): boolean {
  if (!cursor.passByte(OBJECT)) return false;
  if (cursor.bytes[cursor.at] === OBJECT_END) return cursor.passByte(OBJECT_END);
  let keyStart = 0;
  let keyEnd = 0;
  for (;;) {
    const start = cursor.at;
    if (!cursor.keyAfter(keyStart, keyEnd)) return false;
    keyStart = start;
    keyEnd = cursor.at;
    if (!cursor.passByte(COLON) || !cursor.passByte(OBJECT)) return false;
    if (DEBUG_KEYS.some((key) => cursor.pass(key)) && !cursor.value()) return false;
    if (!cursor.passByte(OBJECT_END)) return false;
    const next = cursor.bytes[cursor.at++];
    if (next === OBJECT_END) return true;
    if (next !== COMMA) return false;
  }
}

/** Takes the quotes off a count, which is a number in the payload. */
function unquoteCount(bytes: Uint8Array, place: TextSlice): boolean {
  place.start++;
  place.end--;
  const count = place.end - place.start;
  if (count < 1 || count > SAFE_DIGITS || (count > 1 && bytes[place.start] === 0x30)) return false;
  for (let at = place.start; at < place.end; at++) {
    const byte = bytes[at] ?? 0;
    if (byte < 0x30 || byte > 0x39) return false;
  }
  return true;
}

function readCell(kind: AttributeWriter['kind'], place: TextSlice, cursor: ByteCursor): boolean {
  switch (kind) {
    case 'text':
      return cursor.text(place);
    case 'boolean':
      return cursor.bytes[cursor.at] !== QUOTE && (cursor.pass(TRUE) || cursor.pass(FALSE));
    case 'uint64': {
      const { bytes } = cursor;
      const isCount = cursor.passByte(QUOTE) && cursor.uint64() && cursor.passByte(QUOTE);
      place.start++;
      // Needless zeros make it a text.
      return isCount && (bytes[place.start] !== 0x30 || cursor.at === place.start + 2);
    }
    case 'uint32':
    case 'int32': {
      const number = cursor.integer();
      if (number === undefined) return false;
      return kind === 'uint32' ? number >>> 0 === number : (number | 0) === number;
    }
  }
}

const DEBUG_KEYS = ['float64', 'bool', 'string', 'bytes'].map((name) => ByteSource.of(`"${name}":`));
const TRUE = ByteSource.of('true');
const FALSE = ByteSource.of('false');
