import { ByteBuffer } from './byte-buffer.js';
import { ByteSource } from './byte-source.js';

/** Deeper values are left to the general reader. */
const MAX_DEPTH = 60;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const SMALL_U = 0x75;

/** 1 for the bytes at which a JSON string cannot simply go on: its end, an escape, control characters. */
const STOPS = Uint8Array.from({ length: 256 }, (_, byte) =>
  Number(byte < 0x20 || byte === QUOTE || byte === BACKSLASH),
);
/** Values of hexadecimal digits; 255 for all other bytes. */
const ANY_HEX = Uint8Array.from({ length: 256 }, (_, byte) => {
  const value = '0123456789abcdef'.indexOf(String.fromCharCode(byte).toLowerCase());
  return value < 0 ? 255 : value;
});
/** The same of lowercase ones only. */
const HEX = ANY_HEX.map((value, byte) => (byte >= 0x41 && byte <= 0x46 ? 255 : value));
/** Characters after a backslash and what they stand for. */
const ESCAPES = new Map(
  [...'"\\/bfnrt'].map((letter, index) => [letter.charCodeAt(0), '"\\/\b\f\n\r\t'.charCodeAt(index)]),
);
/** Those that `JSON.stringify` writes. */
const WRITTEN_ESCAPES = new Set([...'"\\bfnrt'].map((letter) => letter.charCodeAt(0)));
/** Control characters that it writes with four digits: those without a letter. */
const WRITTEN_CONTROLS = new Set(
  Array.from({ length: 0x20 }, (_, code) => code).filter((code) => !'\b\f\n\r\t'.includes(String.fromCharCode(code))),
);

/** A text within a line, or within the cursor's own buffer where it had escapes. */
export interface TextSlice {
  start: number;
  end: number;
  isUnescaped: boolean;
}

export function textSlice(): TextSlice {
  return { start: 0, end: 0, isUnescaped: false };
}

/**
 * Walks along a line's bytes, which must be valid UTF-8. Each step tells whether the line goes on as expected; after a
 * `false` the position means nothing. Steps may go beyond the line's end where the bytes behind it happen to fit, so
 * whoever walks has to compare `at` with the end when done.
 */
export class ByteCursor {
  source = new ByteSource(Buffer.alloc(0));
  bytes: Buffer = this.source.bytes;
  at = 0;
  /** Halves of the number that was read last; not small integers, of which V8 would take them to be from a first 0. */
  high = Number.NaN;
  low = Number.NaN;
  /** Texts that had escapes. */
  readonly unescaped = new ByteBuffer(1024);

  point(source: ByteSource, at: number): void {
    this.source = source;
    this.bytes = source.bytes;
    this.at = at;
    this.unescaped.clear();
  }

  /** Passes these bytes. */
  pass({ bytes: expected, view: expectedView }: ByteSource): boolean {
    const { at, bytes } = this;
    const { view } = this.source;
    const { length } = expected;
    if (at + length > bytes.length) return false;
    let i = 0;
    for (; i + 4 <= length; i += 4) {
      if (view.getInt32(at + i, true) !== expectedView.getInt32(i, true)) return false;
    }
    for (; i < length; i++) if (bytes[at + i] !== expected[i]) return false;
    this.at = at + length;
    return true;
  }

  passByte(byte: number): boolean {
    return this.bytes[this.at++] === byte;
  }

  /** Passes a string and tells its text. */
  text(into: TextSlice): boolean {
    const { bytes } = this;
    if (bytes[this.at] !== QUOTE) return false;
    const start = this.at + 1;
    let at = start;
    let isEscaped = false;
    for (;;) {
      while (STOPS[bytes[at] ?? 0] === 0) at++;
      if (bytes[at] !== BACKSLASH) break;
      isEscaped = true;
      at += 2;
    }
    if (bytes[at] !== QUOTE) return false;
    this.at = at + 1;
    into.start = start;
    into.end = at;
    into.isUnescaped = isEscaped;
    return !isEscaped || this.unescape(into);
  }

  /** Passes lowercase hexadecimal digits, not all zero. */
  hexDigits(count: number): boolean {
    const { bytes, at } = this;
    let any = 0;
    for (let i = 0; i < count; i++) {
      const digit = HEX[bytes[at + i] ?? 0] ?? 255;
      if (digit === 255) return false;
      any |= digit;
    }
    this.at = at + count;
    return any !== 0;
  }

  /** Passes 16 lowercase hexadecimal digits, not all zero, into `high` and `low`. */
  spanId(): boolean {
    this.high = this.hexWord();
    this.low = this.hexWord();
    return this.high >= 0 && this.low >= 0 && this.high + this.low > 0;
  }

  /** Passes a number of up to 19 digits, below 9e18, into `high` and `low`. */
  uint64(): boolean {
    const { bytes, at } = this;
    let end = at;
    let upper = 0;
    let lower = 0;
    for (;;) {
      const digit = (bytes[end] ?? 0) - ZERO;
      if (digit < 0 || digit > 9) break;
      // The number is upper * 10^9 + lower; both are exact in a double.
      if (end - at < 10) upper = upper * 10 + digit;
      else lower = lower * 10 + digit;
      end++;
    }
    const count = end - at;
    if (count === 0 || count > 19 || (count === 19 && (bytes[at] ?? 0) === NINE)) return false;
    this.at = end;
    this.split(upper, lower, Math.max(0, count - 10));
    return true;
  }

  /** Passes an integer of at most ten digits without needless zeros; `undefined` when there is none. */
  integer(): number | undefined {
    const { bytes } = this;
    const isNegative = bytes[this.at] === MINUS;
    const start = isNegative ? this.at + 1 : this.at;
    let end = start;
    let value = 0;
    for (let digit = (bytes[end] ?? 0) - ZERO; digit >= 0 && digit <= 9; digit = (bytes[end] ?? 0) - ZERO) {
      value = value * 10 + digit;
      if (++end - start > 10) return undefined;
    }
    if (end === start || (bytes[start] === ZERO && (isNegative || end > start + 1))) return undefined;
    const next = bytes[end];
    // A point or exponent goes on with the number.
    if (next === 0x2e || next === 0x65 || next === 0x45) return undefined;
    this.at = end;
    return isNegative ? -value : value;
  }

  /** Passes a value that is spelt as `JSON.stringify` spells what `JSON.parse` makes of it. */
  value(depth = 0): boolean {
    const byte = this.bytes[this.at] ?? 0;
    switch (byte) {
      case QUOTE:
        return this.writtenString();
      case 0x7b:
        return depth < MAX_DEPTH && this.object(depth);
      case 0x5b:
        return depth < MAX_DEPTH && this.list(depth);
      case 0x74:
        return this.pass(TRUE);
      case 0x66:
        return this.pass(FALSE);
      case 0x6e:
        return this.pass(NULL);
      default:
        return this.number();
    }
  }

  /** Passes a string that JavaScript would write with the same bytes. */
  private writtenString(): boolean {
    const { bytes } = this;
    let at = this.at + 1;
    for (;;) {
      while (STOPS[bytes[at] ?? 0] === 0) at++;
      if (bytes[at] !== BACKSLASH) break;
      const letter = bytes[at + 1] ?? 0;
      if (letter === SMALL_U) {
        if (bytes[at + 2] !== ZERO || bytes[at + 3] !== ZERO) return false;
        const code = ((HEX[bytes[at + 4] ?? 0] ?? 255) << 4) | (HEX[bytes[at + 5] ?? 0] ?? 255);
        if (!WRITTEN_CONTROLS.has(code)) return false;
        at += 6;
      } else {
        if (!WRITTEN_ESCAPES.has(letter)) return false;
        at += 2;
      }
    }
    this.at = at + 1;
    return bytes[at] === QUOTE;
  }

  private object(depth: number): boolean {
    const { bytes } = this;
    this.at++;
    if (bytes[this.at] === 0x7d) {
      this.at++;
      return true;
    }
    let previousStart = 0;
    let previousEnd = 0;
    for (;;) {
      const start = this.at;
      if (!this.keyAfter(previousStart, previousEnd)) return false;
      previousStart = start;
      previousEnd = this.at;
      if (!this.passByte(0x3a) || !this.value(depth + 1)) return false;
      const next = bytes[this.at++];
      if (next === 0x7d) return true;
      if (next !== COMMA) return false;
    }
  }

  /** Passes a key that comes after the one between these places, so that none is there twice; both 0 for the first. */
  keyAfter(previousStart: number, previousEnd: number): boolean {
    const start = this.at;
    return this.key() && isAscending(this.bytes, previousStart, previousEnd, start, this.at);
  }

  /**
   * Passes an object's key without escapes. Keys that objects of JavaScript do not keep in their place (numbers, which
   * come first, and `__proto__`) are not taken.
   */
  key(): boolean {
    const { bytes } = this;
    const start = this.at;
    if (bytes[start] !== QUOTE) return false;
    let at = start + 1;
    const first = bytes[at] ?? 0;
    if ((first >= ZERO && first <= NINE) || (first === 0x5f && bytes[at + 1] === 0x5f)) return false;
    while (STOPS[bytes[at] ?? 0] === 0) at++;
    this.at = at + 1;
    return bytes[at] === QUOTE;
  }

  private list(depth: number): boolean {
    const { bytes } = this;
    this.at++;
    if (bytes[this.at] === 0x5d) {
      this.at++;
      return true;
    }
    for (;;) {
      if (!this.value(depth + 1)) return false;
      const next = bytes[this.at++];
      if (next === 0x5d) return true;
      if (next !== COMMA) return false;
    }
  }

  private number(): boolean {
    const { bytes, at: start } = this;
    if (this.integer() !== undefined) return true;
    let end = start;
    while (NUMBER_BYTES[bytes[end] ?? 0] === 1) end++;
    if (end === start || end - start > 30) return false;
    const text = String.fromCharCode(...bytes.subarray(start, end));
    this.at = end;
    return String(Number(text)) === text;
  }

  /** Eight hexadecimal digits as a number; -1 where they are none. */
  private hexWord(): number {
    const { bytes, at } = this;
    let value = 0;
    let seen = 0;
    for (let i = 0; i < 8; i++) {
      const digit = HEX[bytes[at + i] ?? 0] ?? 255;
      seen |= digit;
      value = (value << 4) | digit;
    }
    this.at = at + 8;
    return seen > 15 ? -1 : value >>> 0;
  }

  /** Splits `upper * 10^lowerDigits + lower` (upper below 10^10, at most 9 digits in lower) into halves of 32 bits. */
  private split(upper: number, lower: number, lowerDigits: number): void {
    const scale = SCALES[lowerDigits] ?? 1;
    const upperHigh = Math.floor(upper / 65536);
    const lowProduct = (upper % 65536) * scale + lower;
    const highProduct = upperHigh * scale;
    const low = (highProduct % 65536) * 65536 + lowProduct;
    this.low = low % 4294967296;
    this.high = Math.floor(highProduct / 65536) + Math.floor(low / 4294967296);
  }

  /** Puts the text without its escapes into the buffer. Surrogates are left to the general reader. */
  private unescape(slice: TextSlice): boolean {
    const { bytes, source, unescaped } = this;
    const begin = unescaped.length;
    let plain = slice.start;
    for (let at = slice.start; at < slice.end; at++) {
      if (bytes[at] !== BACKSLASH) continue;
      unescaped.appendBytes(source, plain, at);
      const letter = bytes[++at] ?? 0;
      const character = ESCAPES.get(letter);
      if (character !== undefined) {
        unescaped.appendUint8(character);
      } else {
        const code = letter === SMALL_U ? hexByte(bytes, at + 1) * 256 + hexByte(bytes, at + 3) : -1;
        if (code < 0 || (code >= 0xd800 && code < 0xe000)) return false;
        unescaped.appendText(String.fromCharCode(code));
        at += 4;
      }
      plain = at + 1;
    }
    unescaped.appendBytes(source, plain, slice.end);
    slice.start = begin;
    slice.end = unescaped.length;
    return true;
  }
}

/** Powers of ten, which are slow to work out. */
const SCALES = Array.from({ length: 10 }, (_, digits) => 10 ** digits);
const TRUE = ByteSource.of('true');
const FALSE = ByteSource.of('false');
const NULL = ByteSource.of('null');
const NUMBER_BYTES = Uint8Array.from({ length: 256 }, (_, byte) =>
  Number('0123456789+-.eE'.includes(String.fromCharCode(byte))),
);

/** Two hexadecimal digits of either case; far below zero where they are none. */
function hexByte(bytes: Uint8Array, at: number): number {
  const high = ANY_HEX[bytes[at] ?? 0] ?? 255;
  const low = ANY_HEX[bytes[at + 1] ?? 0] ?? 255;
  return high > 15 || low > 15 ? -1_000_000 : high * 16 + low;
}

/** Whether a key comes after the one before it, so that no key is there twice. Both begin and end with their quotes. */
function isAscending(bytes: Uint8Array, start: number, end: number, nextStart: number, nextEnd: number): boolean {
  const length = Math.min(end - start, nextEnd - nextStart);
  for (let i = 1; i < length; i++) {
    const byte = bytes[start + i] ?? 0;
    const next = bytes[nextStart + i] ?? 0;
    if (byte === next) continue;
    return byte === QUOTE || (next !== QUOTE && byte < next);
  }
  // Only before the first key is there nothing to compare.
  return end === start;
}
