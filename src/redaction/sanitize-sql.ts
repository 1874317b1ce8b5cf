import { INTERIM, Keyword, keywordOf, MAX_SUMMARY_LENGTH, MAX_TARGETS } from './sql-keywords.js';

/** A statement without its values. */
export interface SanitizedSql {
  /** The statement: each literal or list of literals becomes one `?`; comments and superfluous white space are removed. */
  readonly text: string;
  /** Its verb in capitals, for example `SELECT` or `CREATE TABLE`; `undefined` if it does not begin with one. */
  readonly operation: string | undefined;
  /** A summary without values: `CREATE TABLE orders SELECT stg_orders`; `undefined` without a verb. */
  readonly summary: string | undefined;
  /** The relation that it writes, or else the only one that it reads; `undefined` if there is none. */
  readonly collection: string | undefined;
  /** The words outside of literals and comments: keywords, columns, functions, relations. Empty if its quotes do not pair. */
  readonly identifiers: ReadonlySet<string>;
}

/** The longest statement that is read, in UTF-16 units; a longer one is cut off and ends with `…`. */
export const MAX_SQL_LENGTH = 65_536;

/** Removes the values and comments from a statement; `SqlTokenizer` defines what is a value. If its quotes do not pair, only the text before the first literal stays. Never throws. */
export function sanitizeSql(sql: string, dialect: SqlDialect): SanitizedSql {
  const isCut = sql.length > MAX_SQL_LENGTH;
  const tokens = new SqlTokenizer(isCut ? sql.slice(0, MAX_SQL_LENGTH) : sql, dialect);
  const verb = new VerbFinder();
  const targets = new TargetFinder();
  const identifiers = new Set<string>();
  let text = '';
  /** Pending white space, so that none is written at the ends or twice. */
  let space = '';
  /** Length of `text` up to a `?` that at most a comma follows: a literal there belongs to the same list. */
  let listEnd = -1;
  let isAfterComma = false;
  let firstLiteralAt = -1;
  while (tokens.next()) {
    if (tokens.kind === 'space' || tokens.kind === 'comment') {
      const hasBreak = tokens.kind === 'space' && sql.slice(tokens.start, tokens.end).includes('\n');
      if (hasBreak || space === '') space = hasBreak ? '\n' : ' ';
      continue;
    }
    if (tokens.kind === 'literal') {
      if (firstLiteralAt === -1) firstLiteralAt = text.length;
      if (isAfterComma) text = text.slice(0, listEnd);
      else text += `${text === '' ? '' : space}?`;
      targets.see('literal', '');
      listEnd = text.length;
      isAfterComma = false;
    } else {
      const part = sql.slice(tokens.start, tokens.end);
      isAfterComma = part === ',' && listEnd === text.length;
      if (!isAfterComma) listEnd = -1;
      if (tokens.kind === 'word') {
        verb.see(part);
        identifiers.add(part);
      } else if (tokens.kind === 'quotedIdentifier' && PLAIN_NAME.test(part)) {
        identifiers.add(unquoted(part));
      }
      targets.see(tokens.kind, part);
      text += (text === '' ? '' : space) + part;
    }
    space = '';
  }
  // A statement that was cut in the middle of a literal is not malformed.
  if (tokens.isMalformed && !isCut) text = `${text.slice(0, firstLiteralAt)} ?`.trimStart();
  const { operation } = verb;
  // The relations of a cut or malformed statement are not all known.
  const known = isCut || tokens.isMalformed ? new TargetFinder() : targets;
  return {
    text: isCut ? `${text}…` : text,
    operation,
    summary: operation === undefined ? undefined : known.summary(operation),
    collection: known.collection,
    identifiers: tokens.isMalformed ? NO_IDENTIFIERS : identifiers,
  };
}

/** A quoted identifier of one word. */
const PLAIN_NAME = /^.[\p{L}_][\p{L}\p{N}\p{M}_$]*.$/u;
const NO_IDENTIFIERS: ReadonlySet<string> = new Set();

/** Finds the verb of a statement: its first word, or after `WITH …` the first word that begins a statement. */
class VerbFinder {
  operation: string | undefined;
  private isDone = false;

  see(word: string): void {
    if (this.isDone) return;
    const upper = word.toUpperCase();
    if (this.operation === undefined || this.operation === 'WITH') {
      if (is(upper, Keyword.verb)) this.operation = upper;
      else if (this.operation === undefined) this.isDone = true;
      if (this.operation !== undefined && this.operation !== 'WITH' && !is(upper, Keyword.takesObject))
        this.isDone = true;
    } else if (is(upper, Keyword.object)) {
      this.operation = `${this.operation} ${upper}`;
      this.isDone = true;
    } else if (!is(upper, Keyword.modifier)) {
      this.isDone = true;
    }
  }
}

/** Finds the relations that a statement names, by the keywords before them. */
class TargetFinder {
  private readonly written: string[] = [];
  private readonly read: string[] = [];
  private readonly defined = new Set<string>();
  /** For each open bracket, whether a `FROM` in it is no clause, as in `extract(day from x)`. */
  private readonly brackets: boolean[] = [];
  private wanted: 'written' | 'read' | undefined;
  private name = '';
  private isOpen = false;
  private before = '';

  see(kind: SqlTokenKind, part: string): void {
    const isName = kind === 'word' || kind === 'quotedIdentifier';
    if (this.isOpen && (part === '.' || (this.before === '.' && isName))) {
      if (isName) this.name = unquoted(part);
    } else {
      this.close(part);
      if (kind === 'word') this.seeWord(part.toUpperCase(), part);
      else if (kind === 'quotedIdentifier') this.begin(part);
      else if (part === '(') this.brackets.push(is(this.before, Keyword.fromFunction));
      else if (part === ')') this.brackets.pop();
      if (part === '(' || kind === 'literal') this.wanted = undefined;
    }
    this.before = kind === 'word' ? part.toUpperCase() : part;
  }

  summary(operation: string): string {
    const [written] = this.written;
    const read = this.reading.slice(0, MAX_TARGETS);
    const isReading = is(operation, Keyword.reads);
    const parts = [
      isReading ? 'SELECT' : operation,
      ...(written === undefined ? [] : [written]),
      ...(read.length > 0 && !isReading ? ['SELECT'] : []),
      ...read,
    ];
    return parts.join(' ').slice(0, MAX_SUMMARY_LENGTH);
  }

  get collection(): string | undefined {
    return this.written[0] ?? (this.reading.length === 1 ? this.reading[0] : undefined);
  }

  private get reading(): readonly string[] {
    this.close('');
    return [...new Set(this.read)].filter((name) => !this.defined.has(name) && !this.written.includes(name));
  }

  private seeWord(upper: string, part: string): void {
    if (is(upper, Keyword.readBefore) && this.brackets.at(-1) !== true)
      this.wanted = upper === 'INTO' || this.before === 'DELETE' ? 'written' : 'read';
    else if (is(upper, Keyword.writtenBefore) && this.written.length === 0) this.wanted = 'written';
    else if (!is(upper, Keyword.passedBeforeName)) this.begin(part);
  }

  private begin(part: string): void {
    this.name = unquoted(part);
    this.isOpen = true;
  }

  /** Classifies the current name once the token after it is known. */
  private close(next: string): undefined {
    if (!this.isOpen) return;
    this.isOpen = false;
    const { name, wanted } = this;
    this.wanted = undefined;
    if (wanted === 'written') this.written.push(name.replace(INTERIM, ''));
    else if (wanted === 'read' && next !== '(') this.read.push(name.replace(INTERIM, ''));
    else if (next.toUpperCase() === 'AS') this.defined.add(name);
  }
}

function is(upper: string, keyword: number): boolean {
  return (keywordOf(upper) & keyword) !== 0;
}

function unquoted(part: string): string {
  return /^["`[]/.test(part) ? part.slice(1, -1) : part;
}

/** How a database reads quotes, as far as that decides where a literal ends. `unknown` for an unknown database. */
export interface SqlDialect {
  /** What `"…"` is. */
  readonly doubleQuotes: 'identifier' | 'string';
  /** Whether a backslash escapes the next character in a plain `'…'`. */
  readonly backslashEscapes: 'always' | 'never' | 'unknown';
  /** Whether `'''…'''` and `"""…"""` are strings that may contain quotes. */
  readonly tripleQuotes: 'always' | 'never' | 'unknown';
  /** Whether `[…]` is a quoted identifier (else an array or a subscript). */
  readonly bracketIdentifiers: boolean;
  /** Whether `#` begins a comment. */
  readonly hashComments: 'always' | 'never' | 'unknown';
}

const STANDARD: SqlDialect = {
  doubleQuotes: 'identifier',
  backslashEscapes: 'never',
  tripleQuotes: 'never',
  bracketIdentifiers: false,
  hashComments: 'never',
};
const SPARK: SqlDialect = { ...STANDARD, doubleQuotes: 'string', backslashEscapes: 'always' };
const MYSQL: SqlDialect = { ...SPARK, hashComments: 'always' };
const T_SQL: SqlDialect = { ...STANDARD, bracketIdentifiers: true };

/** For an unknown database: everything doubtful is a literal, and so is everything after an ambiguous quote. */
const UNKNOWN: SqlDialect = {
  doubleQuotes: 'string',
  backslashEscapes: 'unknown',
  tripleQuotes: 'unknown',
  bracketIdentifiers: false,
  hashComments: 'unknown',
};

/** Dialects by the engine's `adapter_type`. Source: the lexical documentation of each database. */
const DIALECTS: ReadonlyMap<string, SqlDialect> = new Map([
  ['duckdb', STANDARD],
  ['postgres', STANDARD],
  ['trino', STANDARD],
  ['athena', STANDARD],
  ['redshift', { ...STANDARD, backslashEscapes: 'unknown' }],
  ['snowflake', { ...STANDARD, backslashEscapes: 'always' }],
  ['clickhouse', { ...STANDARD, backslashEscapes: 'always', hashComments: 'unknown' }],
  ['bigquery', { ...MYSQL, tripleQuotes: 'always' }],
  ['databricks', SPARK],
  ['spark', SPARK],
  ['mysql', MYSQL],
  ['mariadb', MYSQL],
  ['sqlserver', T_SQL],
  ['fabric', T_SQL],
]);

/** Returns the dialect of an `adapter_type`; for an unknown one the most careful dialect. */
export function sqlDialectOf(adapterType: string | undefined): SqlDialect {
  return (adapterType === undefined ? undefined : DIALECTS.get(adapterType)) ?? UNKNOWN;
}

/** The kind of a token. A `literal` is a string, a number, or anything that might be one. */
export type SqlTokenKind = 'word' | 'quotedIdentifier' | 'literal' | 'comment' | 'space' | 'symbol';

/**
 * Splits SQL into tokens, one per call of `next()`. Any text is read to its end, and every character belongs to exactly one token. A token that is not closed, or whose end depends on an unknown
 * dialect, is a literal up to the end of the text, so that a doubt never shows a value.
 */
export class SqlTokenizer {
  kind: SqlTokenKind = 'space';
  start = 0;
  end = 0;
  /** Whether there are quotes that do not pair; earlier tokens may then be wrong as well. */
  isMalformed = false;

  constructor(
    private readonly sql: string,
    private readonly dialect: SqlDialect,
  ) {}

  /** Moves to the next token, which `kind`, `start` and `end` then describe. @returns false at the end */
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

  /** Reads a keyword or name, or a prefixed string such as `E'…'`, `r"…"`, `N'…'`, `U&'…'`. */
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

  /** Returns the end of a string that begins at `quoteAt`; the end of the text if it is not certain. */
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
   * Marks the statement as malformed because its quotes do not pair: they are not closed, or closed in the middle of a word, as in `'it's'` (from templates that do not double quotes). Then values
   * cannot be recognised.
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

  /** Reads `$$…$$`, `$tag$…$tag$`, or a parameter such as `$1`. */
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

  /** Reads a comment. Comments nest here even if the database does not nest them: this removes more, never less. */
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

  /** Returns the end of a quoted identifier, skipping doubled quotes; `undefined` if it is not closed. */
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

/** The longest prefix of a string; a longer word before a quote is read as a word beside a string. */
export const MAX_PREFIX_LENGTH = 8;
/** Prefixes of strings that end like a string without a prefix. */
export const PLAIN_PREFIXES: ReadonlySet<string> = new Set(['b', 'x', 'n', 'date', 'time', 'u']);

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

/** Whether a character may be part of a dollar tag: an identifier without dollars that does not begin with a digit (`$1` is a parameter). */
function isTagPart(code: number): boolean {
  return isWordStart(code) || isDigit(code);
}
