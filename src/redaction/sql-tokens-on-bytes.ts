import { textAt, view } from '../record/arena.js';
import { MAX_PREFIX_LENGTH, PLAIN_PREFIXES, type SqlDialect } from './sanitize-sql.js';

/** Functions that find the ends of SQL tokens in the arena, which `SqlTokenizer` finds in strings. `end` is always the end of the statement, after which nothing may be read. */

/** The result for what is not decided here: quotes that do not pair, doubts about a dialect, and characters outside of ASCII that are not in literals or comments. */
export const DECLINED = -1;

/** What a character may be in SQL, as bits. */
export const Char = { space: 1, wordStart: 2, digit: 4, dollar: 8, wordPart: 2 | 4 | 8 } as const;

const CHARS = Uint8Array.from({ length: 256 }, (_, code) => {
  if (code === 0x20 || (code >= 0x09 && code <= 0x0d)) return Char.space;
  if (code >= 0x80 || /[A-Za-z_]/.test(String.fromCharCode(code))) return Char.wordStart;
  if (code >= 0x30 && code <= 0x39) return Char.digit;
  return code === 0x24 ? Char.dollar : 0;
});

export function charOf(code: number): number {
  return CHARS[code] ?? 0;
}

/** Returns the character at an offset; 0 after the end. */
export function codeAt(at: number, end: number): number {
  return at < end ? view.getUint8(at) : 0;
}

export const Code = {
  lineBreak: 0x0a,
  blank: 0x20,
  doubleQuote: 0x22,
  hash: 0x23,
  dollar: 0x24,
  ampersand: 0x26,
  singleQuote: 0x27,
  open: 0x28,
  close: 0x29,
  star: 0x2a,
  plus: 0x2b,
  comma: 0x2c,
  minus: 0x2d,
  dot: 0x2e,
  slash: 0x2f,
  question: 0x3f,
  openBracket: 0x5b,
  backslash: 0x5c,
  closeBracket: 0x5d,
  backtick: 0x60,
  lowerE: 0x65,
  lowerX: 0x78,
} as const;

/** Returns the end of a string that begins at `quoteAt`, or DECLINED. */
export function endOfString(
  quoteAt: number,
  end: number,
  escapes: SqlDialect['backslashEscapes'],
  dialect: SqlDialect,
): number {
  const quote = view.getUint8(quoteAt);
  const isTripled = codeAt(quoteAt + 1, end) === quote && codeAt(quoteAt + 2, end) === quote;
  if (isTripled && dialect.tripleQuotes !== 'never') return DECLINED;
  let at = quoteAt + 1;
  while (at < end) {
    const code = view.getUint8(at);
    if (code === quote) {
      const following = codeAt(at + 1, end);
      if (following !== quote) return (charOf(following) & Char.wordPart) !== 0 ? DECLINED : at + 1;
      at += 2;
    } else if (code === Code.backslash && escapes !== 'never') {
      const following = codeAt(at + 1, end);
      if (escapes === 'unknown' && (following === quote || following === Code.backslash)) return DECLINED;
      at += 2;
    } else at++;
  }
  return DECLINED;
}

/** Returns how a backslash is read in a string with a prefix, as in `E'…'`. */
export function escapesBehind(start: number, end: number, dialect: SqlDialect): SqlDialect['backslashEscapes'] {
  const prefix = textAt(start, end).toLowerCase();
  if (prefix === 'e') return 'always';
  return PLAIN_PREFIXES.has(prefix) ? dialect.backslashEscapes : 'unknown';
}

/**
 * Returns the offset of the quote of a string that has the word as its prefix; 0 if the word is none.
 * @param wordEnd the end of the word, which begins at `start`
 */
export function prefixedQuoteAt(start: number, wordEnd: number, end: number, dialect: SqlDialect): number {
  if (wordEnd - start > MAX_PREFIX_LENGTH) return 0;
  const quoteAt = codeAt(wordEnd, end) === Code.ampersand ? wordEnd + 1 : wordEnd;
  return isStringQuote(codeAt(quoteAt, end), dialect) ? quoteAt : 0;
}

export function isStringQuote(code: number, { doubleQuotes }: SqlDialect): boolean {
  return code === Code.singleQuote || (code === Code.doubleQuote && doubleQuotes === 'string');
}

/** Returns the end of a quoted identifier, skipping doubled quotes, or DECLINED. @param from the offset after the opening quote */
export function endOfQuoted(from: number, end: number, closing: number): number {
  for (let at = from; at < end; at++) {
    const code = view.getUint8(at);
    if (code >= 0x80) return DECLINED;
    if (code !== closing) continue;
    if (codeAt(at + 1, end) !== closing) return at + 1;
    at++;
  }
  return DECLINED;
}

/** Whether the text between quotes is one word. */
export function isPlainName(start: number, end: number): boolean {
  if (start >= end || charOf(view.getUint8(start)) !== Char.wordStart) return false;
  for (let at = start + 1; at < end; at++) if ((charOf(view.getUint8(at)) & Char.wordPart) === 0) return false;
  return true;
}

export function endOfNumber(start: number, end: number): number {
  const isHex = (codeAt(start + 1, end) | 32) === Code.lowerX;
  let at = start + 1;
  for (; at < end; at++) {
    const code = view.getUint8(at);
    const isSign = code === Code.minus || code === Code.plus;
    const follows = isSign && !isHex && (view.getUint8(at - 1) | 32) === Code.lowerE;
    if (!follows && code !== Code.dot && (charOf(code) & Char.wordPart) === 0) break;
  }
  return at;
}

export function endOfLine(start: number, end: number): number {
  let at = start;
  while (at < end && view.getUint8(at) !== Code.lineBreak) at++;
  return at;
}

/** Returns the end of a comment. Comments nest here even if the database does not nest them: this removes more, never less. */
export function endOfBlockComment(start: number, end: number): number {
  let depth = 1;
  let at = start + 2;
  while (at < end && depth > 0) {
    const code = view.getUint8(at);
    const following = codeAt(at + 1, end);
    if (code === Code.star && following === Code.slash) depth--;
    else if (code === Code.slash && following === Code.star) depth++;
    else {
      at++;
      continue;
    }
    at += 2;
  }
  return Math.min(at, end);
}

/** Whether a dollar begins `$tag$`, and so a string. */
export function isTag(start: number, end: number): boolean {
  let at = start + 1;
  while ((charOf(codeAt(at, end)) & (Char.wordStart | Char.digit)) !== 0) at++;
  return codeAt(at, end) === Code.dollar;
}
