import { constant, isSame, type Range, view } from './arena.js';

/** The deepest nesting that is checked; a value with a deeper one stays a text. */
const MAX_DEPTH = 100;

/**
 * Checks whether a range is a JSON object or list as the engine writes it: ASCII without white space. As strict as `JSON.parse`, but allocates nothing. What it rejects may still be JSON.
 * @param enumFields fields whose strings have to look like names of enum values (`NODE_OUTCOME_…`)
 */
export class JsonChecker {
  private isSuspect = false;
  /** The last key. */
  private keyStart = 0;
  private keyEnd = 0;
  /** 1 at the length of each such field, and at its first character, so that most other keys need not be compared. */
  private readonly lengths = new Uint8Array(256);
  private readonly beginnings = new Uint8Array(256);

  private readonly enumFields: readonly Range[];

  constructor(enumFields: ReadonlySet<string>) {
    this.enumFields = Array.from(enumFields, constant);
    for (const name of enumFields) this.lengths[name.length] = this.beginnings[name.charCodeAt(0)] = 1;
  }

  isJson(start: number, end: number): boolean {
    return this.valueEnd(start, end) === end;
  }

  /** Returns the end of the value at the start of a range; -1 if there is none. */
  valueEnd(start: number, end: number): number {
    this.isSuspect = false;
    this.keyStart = this.keyEnd = start;
    const valueEnd = this.value(start, end, 0);
    return this.isSuspect ? -1 : valueEnd;
  }

  /** @returns the end of the value; -1 if there is none */
  private value(at: number, end: number, depth: number): number {
    const byte = at < end ? view.getUint8(at) : 0;
    switch (byte) {
      case OPEN:
      case OPEN_LIST:
        return depth === MAX_DEPTH ? -1 : this.members(at + 1, end, depth + 1, byte === OPEN);
      case QUOTE:
        if (this.isEnumField() && !isNamed(at + 1, end)) this.isSuspect = true;
        return stringEnd(at + 1, end);
      case 0x74:
        return wordEnd(at, end, 'true');
      case 0x66:
        return wordEnd(at, end, 'false');
      case 0x6e:
        return wordEnd(at, end, 'null');
      default:
        return numberEnd(at, end);
    }
  }

  private isEnumField(): boolean {
    const { keyStart } = this;
    const keyLength = this.keyEnd - keyStart;
    if (this.lengths[keyLength] !== 1 || this.beginnings[view.getUint8(keyStart)] !== 1) return false;
    for (const { at, length } of this.enumFields) if (length === keyLength && isSame(at, keyStart, length)) return true;
    return false;
  }

  private members(start: number, end: number, depth: number, isObject: boolean): number {
    const close = isObject ? CLOSE : CLOSE_LIST;
    if (start < end && view.getUint8(start) === close) return start + 1;
    for (let at = start; ; at += 1) {
      if (isObject) {
        if (at >= end || view.getUint8(at) !== QUOTE) return -1;
        const keyEnd = stringEnd(at + 1, end);
        if (keyEnd < 0 || keyEnd >= end || view.getUint8(keyEnd) !== COLON) return -1;
        this.keyStart = at + 1;
        this.keyEnd = keyEnd - 1;
        at = keyEnd + 1;
      }
      at = this.value(at, end, depth);
      if (at < 0 || at >= end) return -1;
      if (view.getUint8(at) === close) return at + 1;
      if (view.getUint8(at) !== COMMA) return -1;
    }
  }
}

export const QUOTE = 0x22;
export const COMMA = 0x2c;
const COLON = 0x3a;
export const BACKSLASH = 0x5c;
export const OPEN = 0x7b;
export const CLOSE = 0x7d;
export const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;

export const HIGHEST_BITS = 0x80808080;

/**
 * Sets the highest bit of each of four bytes that a JSON string may not contain as it is, or that ends it: not ASCII, below a space, a quote or a backslash. Bytes above such a byte may have the bit
 * set by mistake.
 */
export function specials(four: number): number {
  return four | ((four ^ 0x02020202) - 0x21212121) | ((four ^ 0x5c5c5c5c) - 0x01010101);
}

/** Whether a text begins like `[A-Z]+_[A-Z]`. */
function isNamed(start: number, end: number): boolean {
  let at = start;
  while (at < end && isCapital(view.getUint8(at))) at++;
  return at > start && at + 1 < end && view.getUint8(at) === 0x5f && isCapital(view.getUint8(at + 1));
}

function isCapital(byte: number): boolean {
  return byte >= 0x41 && byte <= 0x5a;
}

/** Returns the end of a string whose content begins at `start`, including the closing quote; -1 if it is not valid. */
export function stringEnd(start: number, end: number): number {
  for (let at = start; at < end; at++) {
    while (at + 4 <= end && (specials(view.getInt32(at, true)) & HIGHEST_BITS) === 0) at += 4;
    if (at === end) return -1;
    const byte = view.getUint8(at);
    if (byte === QUOTE) return at + 1;
    if (byte < 0x20 || byte >= 0x80) return -1;
    if (byte !== BACKSLASH) continue;
    at += 1;
    const letter = at < end ? view.getUint8(at) : 0;
    if (letter === 0x75) {
      if (at + 4 >= end) return -1;
      for (let digit = 1; digit <= 4; digit++) if (!isHex(view.getUint8(at + digit))) return -1;
      at += 4;
    } else if (!ESCAPES.has(letter)) return -1;
  }
  return -1;
}

const ESCAPES: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrt'));

function isHex(byte: number): boolean {
  return isDigit(byte) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function wordEnd(at: number, end: number, text: string): number {
  if (at + text.length > end) return -1;
  for (let index = 0; index < text.length; index++) if (view.getUint8(at + index) !== text.charCodeAt(index)) return -1;
  return at + text.length;
}

/** Returns the end of an integer; -1 for any other number. The engine writes no fractions or exponents; slower code reads them. */
function numberEnd(start: number, end: number): number {
  const first = start < end && view.getUint8(start) === 0x2d ? start + 1 : start;
  let at = first;
  while (at < end && isDigit(view.getUint8(at))) at++;
  if (at === first || (view.getUint8(first) === 0x30 && at - first > 1)) return -1;
  return at < end && (view.getUint8(at) === 0x2e || (view.getUint8(at) | 0x20) === 0x65) ? -1 : at;
}

/** Whether a byte begins an object or a list. */
export function isOpening(byte: number): boolean {
  return byte === OPEN || byte === OPEN_LIST;
}
