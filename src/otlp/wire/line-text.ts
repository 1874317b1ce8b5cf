import { textAt, view } from '../../record/arena.js';
import { BACKSLASH, HIGHEST_BITS, QUOTE, specials } from '../../record/json-line.js';
import { ESCAPES, NOT_ASCII } from './line-writer.js';

/** Values of hexadecimal digits, lowercase as they are written; -1 for any other byte. */
export const HEX = new Int8Array(256).fill(-1);
for (const [value, digit] of [...'0123456789abcdef'].entries()) HEX[digit.charCodeAt(0)] = value;
/** What the letter of a short escape stands for; 0 for any other byte. */
const UNESCAPED = new Uint8Array(256);
for (const [byte, letter] of ESCAPES.entries()) if (letter > NOT_ASCII) UNESCAPED[letter] = byte;
const LONG_ESCAPE_LETTER = 0x75;
const LONG_ESCAPE_BYTES = 6;
const ZERO = 0x30;

/** Copies texts out of lines without their escapes: those that `LineWriter` writes the same. */
export class UnescapedText {
  /** Where the closing quote of the text stands that was written last. */
  textEnd = 0;

  /**
   * Where the closing quote stands of the text that begins at `from`, behind its quote, where it has no escape: then it need not be written.
   * @returns -1 where it has one, or `write` would not write it
   */
  endAsItIs(from: number, limit: number): number {
    let at = from;
    let isAscii = true;
    for (;;) {
      for (; at + 8 <= limit; at += 8) {
        if (((specials(view.getInt32(at, true)) | specials(view.getInt32(at + 4, true))) & HIGHEST_BITS) !== 0) break;
      }
      while (at < limit && ESCAPES[view.getUint8(at)] === 0) at++;
      if (at >= limit) return -1;
      const byte = view.getUint8(at);
      if (byte === QUOTE) break;
      if (byte < 0x80) return -1;
      isAscii = false;
      at += 1;
    }
    return isAscii || !textAt(from, at).includes('\ufffd') ? at : -1;
  }

  /**
   * Writes the text that begins at `from`, behind its quote. It is read up to `limit` at most.
   * @returns the place behind it; -1 where it has no end before `limit`, or `LineWriter` writes it otherwise
   */
  write(from: number, limit: number, start: number): number {
    let at = from;
    let to = start;
    let isAscii = true;
    for (;;) {
      for (; at + 8 <= limit; at += 8, to += 8) {
        const four = view.getInt32(at, true);
        const next = view.getInt32(at + 4, true);
        if (((specials(four) | specials(next)) & HIGHEST_BITS) !== 0) break;
        view.setInt32(to, four, true);
        view.setInt32(to + 4, next, true);
      }
      if (at + 4 <= limit) {
        const four = view.getInt32(at, true);
        if ((specials(four) & HIGHEST_BITS) === 0) {
          view.setInt32(to, four, true);
          at += 4;
          to += 4;
        }
      }
      while (at < limit && ESCAPES[view.getUint8(at)] === 0) view.setUint8(to++, view.getUint8(at++));
      if (at >= limit) return -1;
      const byte = view.getUint8(at);
      if (byte === QUOTE) break;
      if (byte >= 0x80) {
        isAscii = false;
        view.setUint8(to++, byte);
        at += 1;
      } else if (byte === BACKSLASH && at + 1 < limit) {
        const letter = view.getUint8(at + 1);
        const isLong = letter === LONG_ESCAPE_LETTER;
        const escaped = isLong ? longEscape(at, limit) : (UNESCAPED[letter] as number);
        // A short escape never is of NUL.
        if (escaped < 0 || (escaped === 0 && !isLong)) return -1;
        view.setUint8(to++, escaped);
        at += isLong ? LONG_ESCAPE_BYTES : 2;
      } else return -1;
    }
    this.textEnd = at;
    // What is no UTF-8 becomes U+FFFD where plain code reads it.
    return isAscii || !textAt(start, to).includes('\ufffd') ? to : -1;
  }
}

/** The control character of an escape as it is written of one that has no short one; -1 for another. */
function longEscape(at: number, limit: number): number {
  if (at + LONG_ESCAPE_BYTES > limit || view.getInt16(at + 2) !== 0x3030) return -1;
  const high = HEX[view.getUint8(at + 4)] as number;
  const low = HEX[view.getUint8(at + 5)] as number;
  const value = (high << 4) | low;
  return value >= 0 && ESCAPES[value] === 1 ? value : -1;
}

const ZEROS = 0x30303030;
/** What makes a byte that is more than 9, and less than 128, one with its highest bit. */
const ABOVE_NINE = 0x76767676;

/** Nine digits as a number; -1 where one is none. */
export function nineDigits(start: number): number {
  const first = view.getInt32(start, true) ^ ZEROS;
  const second = view.getInt32(start + 4, true) ^ ZEROS;
  const last = view.getUint8(start + 8) - ZERO;
  const wrong = (first | (first + ABOVE_NINE) | second | (second + ABOVE_NINE)) & HIGHEST_BITS;
  return wrong !== 0 || last >>> 0 > 9 ? -1 : (fourDigits(first) * 10_000 + fourDigits(second)) * 10 + last;
}

/** Of four digits, a byte each and the first one the lowest, two at a time are put together. */
function fourDigits(digits: number): number {
  const pairs = digits * 10 + (digits >>> 8);
  return (pairs & 0xff) * 100 + ((pairs >>> 16) & 0xff);
}
