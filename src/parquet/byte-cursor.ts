import { ByteSource } from '../core/bytes.js';
import { ByteBuffer } from './bytes.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const SMALL_U = 0x75;
const OBJECT = 0x7b;
const OBJECT_END = 0x7d;
const LIST = 0x5b;
const LIST_END = 0x5d;
/** UTF-8 of the character that stands for half of a surrogate pair without the other. */
const REPLACEMENT = ByteSource.of('\ufffd');

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
/** What characters after a backslash stand for; 0 for those that stand for nothing. */
const ESCAPED = new Uint8Array(256);
for (const [index, letter] of [...'"\\/bfnrt'].entries()) {
  ESCAPED[letter.charCodeAt(0)] = '"\\/\b\f\n\r\t'.charCodeAt(index);
}

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
 * the caller has to compare `at` with the end when done.
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
  /** What ends the objects and lists that the value being passed is in. */
  private readonly closers: number[] = [];

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
      at = this.plainEnd(at);
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

  /** Passes an unsigned number of 64 bits, its digits alone, into `high` and `low`. */
  uint64(): boolean {
    const { bytes, at } = this;
    let end = at;
    let upper = 0;
    let lower = 0;
    for (;;) {
      const digit = (bytes[end] ?? 0) - ZERO;
      if (digit < 0 || digit > 9) break;
      // The number is upper * 10^(digits of lower) + lower; both are exact in a double.
      if (end - at < 10) upper = upper * 10 + digit;
      else lower = lower * 10 + digit;
      end++;
    }
    const count = end - at;
    if (count === 0 || count > 20) return false;
    this.at = end;
    this.split(upper, lower, Math.max(0, count - 10));
    return this.high <= 0xffffffff;
  }

  /** Passes a number as JSON spells it; NaN when there is none. */
  number(): number {
    const { bytes, at } = this;
    const isNegative = bytes[at] === MINUS;
    const start = isNegative ? at + 1 : at;
    let end = start;
    let value = 0;
    for (let digit = (bytes[end] ?? 0) - ZERO; digit >= 0 && digit <= 9; digit = (bytes[end] ?? 0) - ZERO) {
      value = value * 10 + digit;
      end++;
    }
    if (end === start || (bytes[start] === ZERO && end > start + 1)) return Number.NaN;
    const next = bytes[end];
    this.at = end;
    if (end - start < 16 && next !== POINT && next !== 0x65 && next !== 0x45) return isNegative ? -value : value;
    return this.passFraction() ? Number(bytes.toString('latin1', at, this.at)) : Number.NaN;
  }

  /** Passes a value as JSON spells it, whatever its nesting. Blanks around and within it are not taken. */
  value(): boolean {
    const byte = this.bytes[this.at] ?? 0;
    return byte === OBJECT || byte === LIST ? this.container() : this.scalar(byte);
  }

  private scalar(byte: number): boolean {
    switch (byte) {
      case QUOTE:
        return this.string();
      case 0x74:
        return this.pass(TRUE);
      case 0x66:
        return this.pass(FALSE);
      case 0x6e:
        return this.pass(NULL);
      default:
        return !Number.isNaN(this.number());
    }
  }

  /** Passes an object or a list with all that is in it. */
  private container(): boolean {
    const { bytes, closers } = this;
    closers.length = 0;
    for (;;) {
      const byte = bytes[this.at] ?? 0;
      if (byte === OBJECT || byte === LIST) {
        const closer = byte === OBJECT ? OBJECT_END : LIST_END;
        closers.push(closer);
        if (bytes[++this.at] !== closer) {
          if (closer === OBJECT_END && !this.key()) return false;
          continue;
        }
      } else if (!this.scalar(byte)) {
        return false;
      }
      for (;;) {
        const closer = closers[closers.length - 1];
        if (closer === undefined) return true;
        const next = bytes[this.at++];
        if (next === COMMA) {
          if (closer === OBJECT_END && !this.key()) return false;
          break;
        }
        if (next !== closer) return false;
        closers.pop();
      }
    }
  }

  /** Passes an object's key with its colon. */
  key(): boolean {
    return this.string() && this.passByte(COLON);
  }

  /** Passes a string without asking what it says. */
  string(): boolean {
    const { bytes } = this;
    if (bytes[this.at] !== QUOTE) return false;
    let at = this.at + 1;
    for (;;) {
      at = this.plainEnd(at);
      if (bytes[at] !== BACKSLASH) break;
      const letter = bytes[at + 1] ?? 0;
      if (letter === SMALL_U) {
        if (codeUnit(bytes, at + 2) < 0) return false;
        at += 6;
      } else {
        if (ESCAPED[letter] === 0) return false;
        at += 2;
      }
    }
    this.at = at + 1;
    return bytes[at] === QUOTE;
  }

  /** Where a string cannot simply go on, four bytes at a time. */
  private plainEnd(start: number): number {
    const { bytes } = this;
    const { view } = this.source;
    const last = bytes.length - 4;
    let at = start;
    while (at <= last && arePlain(view.getInt32(at, true))) at += 4;
    while (STOPS[bytes[at] ?? 0] === 0) at++;
    return at;
  }

  /** Passes what may stand behind a number's whole part. */
  private passFraction(): boolean {
    const { bytes } = this;
    if (bytes[this.at] === POINT) {
      this.at++;
      if (!this.passDigits()) return false;
    }
    const next = bytes[this.at];
    if (next !== 0x65 && next !== 0x45) return true;
    const sign = bytes[++this.at];
    if (sign === MINUS || sign === 0x2b) this.at++;
    return this.passDigits();
  }

  private passDigits(): boolean {
    const { bytes, at } = this;
    while ((bytes[this.at] ?? 0) >= ZERO && (bytes[this.at] ?? 0) <= 0x39) this.at++;
    return this.at > at;
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

  /** Splits `upper * 10^lowerDigits + lower` (upper below 10^10, at most 10 digits in lower) into halves of 32 bits. */
  private split(upper: number, lower: number, lowerDigits: number): void {
    const scale = SCALES[lowerDigits] ?? 1;
    const upperHigh = Math.floor(upper / 65536);
    const lowProduct = (upper % 65536) * scale + lower;
    const highProduct = upperHigh * scale;
    const low = (highProduct % 65536) * 65536 + lowProduct;
    this.low = low % 4294967296;
    this.high = Math.floor(highProduct / 65536) + Math.floor(low / 4294967296);
  }

  /** Puts the text without its escapes into the buffer. */
  private unescape(slice: TextSlice): boolean {
    const { bytes, source, unescaped } = this;
    const begin = unescaped.length;
    let plain = slice.start;
    for (let at = slice.start; at < slice.end; ) {
      if (bytes[at] !== BACKSLASH) {
        at++;
        continue;
      }
      unescaped.appendBytes(source, plain, at);
      const letter = bytes[at + 1] ?? 0;
      const character = ESCAPED[letter] ?? 0;
      if (character !== 0) {
        unescaped.appendUint8(character);
        at += 2;
      } else {
        const length = letter === SMALL_U ? this.appendCodeUnits(at) : 0;
        if (length === 0) return false;
        at += length;
      }
      plain = at;
    }
    unescaped.appendBytes(source, plain, slice.end);
    slice.start = begin;
    slice.end = unescaped.length;
    return true;
  }

  /** Puts the character of one escape with digits, or of a pair of them, into the buffer. @returns their length; 0 where they are none */
  private appendCodeUnits(at: number): number {
    const { bytes, unescaped } = this;
    const code = codeUnit(bytes, at + 2);
    if (code < 0) return 0;
    if (code < 0xd800 || code >= 0xe000) {
      unescaped.appendText(String.fromCharCode(code));
      return 6;
    }
    const second = bytes[at + 6] === BACKSLASH && bytes[at + 7] === SMALL_U ? codeUnit(bytes, at + 8) : -1;
    if (code < 0xdc00 && second >= 0xdc00 && second < 0xe000) {
      unescaped.appendText(String.fromCharCode(code, second));
      return 12;
    }
    unescaped.appendBytes(REPLACEMENT);
    return 6;
  }
}

/** Powers of ten, which are slow to work out. */
const SCALES = Array.from({ length: 11 }, (_, digits) => 10 ** digits);
const TRUE = ByteSource.of('true');
const FALSE = ByteSource.of('false');
const NULL = ByteSource.of('null');

/** Four hexadecimal digits of either case; below zero where they are none. */
function codeUnit(bytes: Uint8Array, at: number): number {
  const high = hexByte(bytes, at);
  const low = hexByte(bytes, at + 2);
  return high < 0 || low < 0 ? -1 : high * 256 + low;
}

function hexByte(bytes: Uint8Array, at: number): number {
  const high = ANY_HEX[bytes[at] ?? 0] ?? 255;
  const low = ANY_HEX[bytes[at + 1] ?? 0] ?? 255;
  return high > 15 || low > 15 ? -1 : high * 16 + low;
}

/** Whether none of four bytes is a quote, a backslash or a control character (see "Determine if a word has a zero byte", Bit Twiddling Hacks). */
function arePlain(word: number): boolean {
  const quotes = word ^ 0x22222222;
  const backslashes = word ^ 0x5c5c5c5c;
  const found =
    ((quotes - 0x01010101) & ~quotes) | ((backslashes - 0x01010101) & ~backslashes) | ((word - 0x20202020) & ~word);
  return (found & 0x80808080) === 0;
}
