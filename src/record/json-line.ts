import { constant, isSame, type Range, view } from './arena.js';

/** Deepest nesting; what is deeper stays a text. */
const MAX_DEPTH = 100;

/**
 * Whether a range is a JSON object or list as the engine writes it: in ASCII, without white space. Strict as `JSON.parse`, without making
 * anything. What is not may be JSON all the same.
 * @param enumFields fields whose texts are names of an enum; one that does not begin as such names do (`NODE_OUTCOME_…`) makes it
 * something else
 */
export class JsonChecker {
  private isSuspect = false;
  /** The latest key. */
  private keyStart = 0;
  private keyEnd = 0;
  /** 1 for the lengths of such fields, and for what they begin with: most others need not be compared. */
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

  /** The place behind the value that begins a range; -1 where none such does. */
  valueEnd(start: number, end: number): number {
    this.isSuspect = false;
    this.keyStart = this.keyEnd = start;
    const valueEnd = this.value(start, end, 0);
    return this.isSuspect ? -1 : valueEnd;
  }

  /** @returns the place behind the value; -1 where there is none */
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
 * Of four bytes, those that do not stand in a JSON string as they are have their highest bit: what is not ASCII; below a blank,
 * or a quote, of which the difference is negative; a backslash. The bytes above such a one may have it, too.
 */
export function specials(four: number): number {
  return four | ((four ^ 0x02020202) - 0x21212121) | ((four ^ 0x5c5c5c5c) - 0x01010101);
}

/** Whether a text begins as `[A-Z]+_[A-Z]` does. */
function isNamed(start: number, end: number): boolean {
  let at = start;
  while (at < end && isCapital(view.getUint8(at))) at++;
  return at > start && at + 1 < end && view.getUint8(at) === 0x5f && isCapital(view.getUint8(at + 1));
}

function isCapital(byte: number): boolean {
  return byte >= 0x41 && byte <= 0x5a;
}

/** The place behind the closing quote of a string that begins, behind its opening one, at `start`; -1 where none does. */
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

/** Of a whole number: fractions and exponents, of which the engine has none, are left to plain code. */
function numberEnd(start: number, end: number): number {
  const first = start < end && view.getUint8(start) === 0x2d ? start + 1 : start;
  let at = first;
  while (at < end && isDigit(view.getUint8(at))) at++;
  if (at === first || (view.getUint8(first) === 0x30 && at - first > 1)) return -1;
  return at < end && (view.getUint8(at) === 0x2e || (view.getUint8(at) | 0x20) === 0x65) ? -1 : at;
}

/** Whether an object or a list begins with this byte. */
export function isOpening(byte: number): boolean {
  return byte === OPEN || byte === OPEN_LIST;
}
