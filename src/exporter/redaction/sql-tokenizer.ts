import type { SqlDialect } from './sql-dialect.js';

/** What a stretch of SQL is. `literal` is a string, a number, or anything that might be one. */
export type SqlTokenKind = 'word' | 'quotedIdentifier' | 'literal' | 'comment' | 'space' | 'symbol';

/**
 * Splits SQL into tokens, one `next()` at a time. Total: any text is read to its end, and every character belongs to
 * exactly one token. What is not closed, or whose end depends on an unknown dialect, is one literal up to the end of
 * the text, so that a doubt never shows a value.
 */
export class SqlTokenizer {
  kind: SqlTokenKind = 'space';
  start = 0;
  end = 0;
  /** Whether quotes were found that do not pair; earlier tokens may then be wrong as well. */
  isMalformed = false;

  constructor(
    private readonly sql: string,
    private readonly dialect: SqlDialect,
  ) {}

  /** Moves to the next token: `kind`, `start` and `end` then describe it. @returns false at the end. */
  next(): boolean {
    this.start = this.end;
    if (this.start >= this.sql.length) return false;
    const code = this.sql.charCodeAt(this.start);
    if (isSpace(code)) this.readSpace();
    else if (isWordStart(code)) this.readWord();
    else if (isDigit(code) || (code === DOT && isDigit(this.sql.charCodeAt(this.start + 1)))) this.readNumber();
    else this.readSymbol(code);
    return true;
  }

  private readSymbol(code: number): void {
    const following = this.sql.charCodeAt(this.start + 1);
    if (code === SINGLE_QUOTE) this.readString(this.start, this.dialect.backslashEscapes);
    else if (code === DOUBLE_QUOTE) this.readDoubleQuoted();
    else if (code === BACKTICK) this.readQuotedIdentifier(BACKTICK);
    else if (code === OPEN_BRACKET && this.dialect.bracketIdentifiers) this.readQuotedIdentifier(CLOSE_BRACKET);
    else if (code === DOLLAR) this.readDollar();
    else if (code === MINUS && following === MINUS) this.readLineComment();
    else if (code === SLASH && following === STAR) this.readBlockComment();
    else if (code === HASH && this.dialect.hashComments !== 'never') this.readHash();
    else this.finish('symbol', this.start + 1);
  }

  private readSpace(): void {
    let position = this.start + 1;
    while (position < this.sql.length && isSpace(this.sql.charCodeAt(position))) position++;
    this.finish('space', position);
  }

  /** A keyword or name, or a prefixed string such as `E'…'`, `r"…"`, `N'…'`, `U&'…'`. */
  private readWord(): void {
    let position = this.start + 1;
    while (position < this.sql.length && isWordPart(this.sql.charCodeAt(position))) position++;
    const quoteAt = this.sql.charCodeAt(position) === AMPERSAND ? position + 1 : position;
    const code = this.sql.charCodeAt(quoteAt);
    const isString = code === SINGLE_QUOTE || (code === DOUBLE_QUOTE && this.dialect.doubleQuotes === 'string');
    if (!isString || position - this.start > MAX_PREFIX_LENGTH) {
      this.finish('word', position);
      return;
    }
    const isEscapeString = position - this.start === 1 && (this.sql.charCodeAt(this.start) | 32) === LOWER_E;
    const isPlainPrefix = PLAIN_PREFIXES.has(this.sql.slice(this.start, position).toLowerCase());
    if (isEscapeString) this.readString(quoteAt, 'always');
    else this.readString(quoteAt, isPlainPrefix ? this.dialect.backslashEscapes : 'unknown');
  }

  private readNumber(): void {
    let position = this.start + 1;
    while (position < this.sql.length) {
      const code = this.sql.charCodeAt(position);
      const isSign = code === MINUS || code === PLUS;
      const follows = isSign && (this.sql.charCodeAt(position - 1) | 32) === LOWER_E && !this.isHexNumber();
      if (!follows && code !== DOT && !isWordPart(code)) break;
      position++;
    }
    this.finish('literal', position);
  }

  private isHexNumber(): boolean {
    return (this.sql.charCodeAt(this.start + 1) | 32) === LOWER_X;
  }

  private readDoubleQuoted(): void {
    if (this.dialect.doubleQuotes === 'string') this.readString(this.start, this.dialect.backslashEscapes);
    else this.readQuotedIdentifier(DOUBLE_QUOTE);
  }

  private readQuotedIdentifier(closing: number): void {
    const end = this.closingQuote(this.start + 1, closing);
    if (end === undefined) this.finish('literal', this.doubt());
    else this.finish('quotedIdentifier', end);
  }

  private readString(quoteAt: number, escapes: SqlDialect['backslashEscapes']): void {
    this.finish('literal', this.endOfString(quoteAt, escapes));
  }

  /** The position after a string that begins at `quoteAt`; the end of the text where that is not certain. */
  private endOfString(quoteAt: number, escapes: SqlDialect['backslashEscapes']): number {
    const { sql } = this;
    const quote = sql.charCodeAt(quoteAt);
    const isTripled = this.isTripled(quoteAt, quote);
    if (isTripled && this.dialect.tripleQuotes === 'unknown') return sql.length;
    const isTriple = isTripled && this.dialect.tripleQuotes === 'always';
    let position = quoteAt + (isTriple ? 3 : 1);
    while (position < sql.length) {
      const code = sql.charCodeAt(position);
      const following = sql.charCodeAt(position + 1);
      if (code === BACKSLASH && escapes !== 'never') {
        if (escapes === 'unknown' && (following === quote || following === BACKSLASH)) return sql.length;
        position += 2;
      } else if (code !== quote || (isTriple && !this.isTripled(position, quote))) {
        position++;
      } else if (isTriple) {
        return position + 3;
      } else if (following === quote) {
        position += 2;
      } else {
        return isWordPart(following) ? this.doubt() : position + 1;
      }
    }
    return this.doubt();
  }

  /**
   * Quotes do not pair as they should: unclosed, or closed in the middle of a word, as in `'it's'` (templates that do not
   * double quotes write such statements). Then nothing tells what is a value.
   */
  private doubt(): number {
    this.isMalformed = true;
    return this.sql.length;
  }

  private isTripled(position: number, quote: number): boolean {
    const { sql } = this;
    return (
      sql.charCodeAt(position) === quote &&
      sql.charCodeAt(position + 1) === quote &&
      sql.charCodeAt(position + 2) === quote
    );
  }

  /** `$$…$$`, `$tag$…$tag$`, or a parameter such as `$1`. */
  private readDollar(): void {
    let position = this.start + 1;
    while (position < this.sql.length && isTagPart(this.sql.charCodeAt(position))) position++;
    if (this.sql.charCodeAt(position) !== DOLLAR) {
      this.finish('symbol', this.start + 1);
      return;
    }
    const tag = this.sql.slice(this.start, position + 1);
    const closing = this.sql.indexOf(tag, position + 1);
    if (closing === -1) this.finishAsLiteralToTheEnd();
    else this.finish('literal', closing + tag.length);
  }

  private readHash(): void {
    if (this.dialect.hashComments === 'unknown') this.finishAsLiteralToTheEnd();
    else this.readLineComment();
  }

  private readLineComment(): void {
    const lineBreak = this.sql.indexOf('\n', this.start);
    this.finish('comment', lineBreak === -1 ? this.sql.length : lineBreak);
  }

  /** Comments nest here even where the database does not nest them: then more goes, never less. */
  private readBlockComment(): void {
    let depth = 1;
    let position = this.start + 2;
    while (position < this.sql.length && depth > 0) {
      const code = this.sql.charCodeAt(position);
      const following = this.sql.charCodeAt(position + 1);
      if (code === STAR && following === SLASH) depth--;
      else if (code === SLASH && following === STAR) depth++;
      else {
        position++;
        continue;
      }
      position += 2;
    }
    this.finish('comment', Math.min(position, this.sql.length));
  }

  /** The position after the closing quote, doubled ones passed over; `undefined` when there is none. */
  private closingQuote(from: number, quote: number): number | undefined {
    for (let position = from; position < this.sql.length; position++) {
      if (this.sql.charCodeAt(position) !== quote) continue;
      if (this.sql.charCodeAt(position + 1) !== quote) return position + 1;
      position++;
    }
    return undefined;
  }

  private finishAsLiteralToTheEnd(): void {
    this.finish('literal', this.sql.length);
  }

  private finish(kind: SqlTokenKind, end: number): void {
    this.kind = kind;
    this.end = end;
  }
}

/** `U&`, `_utf8` and the like are longer, rare, and read as an unknown prefix or a word beside a string. */
const MAX_PREFIX_LENGTH = 8;
/** Prefixes whose string ends as a plain one does. */
const PLAIN_PREFIXES: ReadonlySet<string> = new Set(['b', 'x', 'n', 'date', 'time', 'u']);

const SINGLE_QUOTE = 0x27;
const DOUBLE_QUOTE = 0x22;
const BACKTICK = 0x60;
const BACKSLASH = 0x5c;
const DOLLAR = 0x24;
const DOT = 0x2e;
const MINUS = 0x2d;
const PLUS = 0x2b;
const SLASH = 0x2f;
const STAR = 0x2a;
const HASH = 0x23;
const AMPERSAND = 0x26;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const LOWER_E = 0x65;
const LOWER_X = 0x78;

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function isSpace(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d);
}

function isWordStart(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || code === 0x5f || code >= 0x80;
}

function isWordPart(code: number): boolean {
  return isWordStart(code) || isDigit(code) || code === DOLLAR;
}

/** A dollar tag is an identifier without dollars, and does not begin with a digit (`$1` is a parameter). */
function isTagPart(code: number): boolean {
  return isWordStart(code) || isDigit(code);
}
