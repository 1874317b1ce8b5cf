import type { SqlDialect } from './sql-dialect.js';
import { SqlTokenizer, type SqlTokenKind } from './sql-tokenizer.js';

/** A statement without its values. */
export interface SanitizedSql {
  /** The statement; each literal is `?`, a list of literals one `?`, comments and superfluous blanks are gone. */
  readonly text: string;
  /** Its verb in capitals, for example `SELECT` or `CREATE TABLE`; `undefined` when it begins with none. */
  readonly operation: string | undefined;
  /** What it is in a few words, without values: `CREATE TABLE orders SELECT stg_orders`; `undefined` without a verb. */
  readonly summary: string | undefined;
  /** The one relation that it writes, or else reads; `undefined` for none, and where it reads several. */
  readonly collection: string | undefined;
  /** Its words outside of literals and comments: keywords, columns, functions, relations. None where its quotes do not pair. */
  readonly identifiers: ReadonlySet<string>;
}

/** Longest statement that is read, in UTF-16 units; what follows is cut off and `…` says so. */
export const MAX_SQL_LENGTH = 65_536;

/**
 * Takes the values and comments out of a statement; see `SqlTokenizer` for what counts as a value. Of a statement whose
 * quotes do not pair only what stands before its first literal is left. Never throws.
 */
export function sanitizeSql(sql: string, dialect: SqlDialect): SanitizedSql {
  const isCut = sql.length > MAX_SQL_LENGTH;
  const tokens = new SqlTokenizer(isCut ? sql.slice(0, MAX_SQL_LENGTH) : sql, dialect);
  const verb = new VerbFinder();
  const targets = new TargetFinder();
  const identifiers = new Set<string>();
  let text = '';
  /** Blank space waits, so that none is written at the ends or twice. */
  let space = '';
  /** Length of `text` up to a `?` with only a comma after it: a further literal there is part of the same list. */
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
  // Cut off in the middle of a literal, a statement is not malformed.
  if (tokens.isMalformed && !isCut) text = `${text.slice(0, firstLiteralAt)} ?`.trimStart();
  const { operation } = verb;
  // Of a statement that is not read to its end, or whose quotes do not pair, nothing tells all relations.
  const known = isCut || tokens.isMalformed ? new TargetFinder() : targets;
  return {
    text: isCut ? `${text}…` : text,
    operation,
    summary: operation === undefined ? undefined : known.summary(operation),
    collection: known.collection,
    identifiers: tokens.isMalformed ? NO_IDENTIFIERS : identifiers,
  };
}

/** A quoted identifier that is one word. */
const PLAIN_NAME = /^.[\p{L}_][\p{L}\p{N}\p{M}_$]*.$/u;
const NO_IDENTIFIERS: ReadonlySet<string> = new Set();

/** Finds a statement's verb among its words: the first one, or behind `WITH …` the first that a statement begins with. */
class VerbFinder {
  operation: string | undefined;
  private isDone = false;

  see(word: string): void {
    if (this.isDone) return;
    const upper = word.toUpperCase();
    if (this.operation === undefined || this.operation === 'WITH') {
      if (VERBS.has(upper)) this.operation = upper;
      else if (this.operation === undefined) this.isDone = true;
      if (this.operation !== undefined && this.operation !== 'WITH' && !TAKES_OBJECT.has(upper)) this.isDone = true;
    } else if (OBJECTS.has(upper)) {
      this.operation = `${this.operation} ${upper}`;
      this.isDone = true;
    } else if (!MODIFIERS.has(upper)) {
      this.isDone = true;
    }
  }
}

/** Finds the relations that a statement names, by the words in front of them. */
class TargetFinder {
  private readonly written: string[] = [];
  private readonly read: string[] = [];
  private readonly defined = new Set<string>();
  /** For each open bracket: whether `FROM` in it is no clause, as in `extract(day from x)`. */
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
      else if (part === '(') this.brackets.push(FROM_FUNCTIONS.has(this.before));
      else if (part === ')') this.brackets.pop();
      if (part === '(' || kind === 'literal') this.wanted = undefined;
    }
    this.before = kind === 'word' ? part.toUpperCase() : part;
  }

  summary(operation: string): string {
    const [written] = this.written;
    const read = this.reading.slice(0, MAX_TARGETS);
    const isReading = operation === 'SELECT' || operation === 'WITH';
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
    if (READ_BEFORE.has(upper) && this.brackets.at(-1) !== true)
      this.wanted = upper === 'INTO' || this.before === 'DELETE' ? 'written' : 'read';
    else if (WRITTEN_BEFORE.has(upper) && this.written.length === 0) this.wanted = 'written';
    else if (!PASSED_BEFORE_NAME.has(upper)) this.begin(part);
  }

  private begin(part: string): void {
    this.name = unquoted(part);
    this.isOpen = true;
  }

  /** A name is over, and what follows it is known. */
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

function unquoted(part: string): string {
  return /^["`[]/.test(part) ? part.slice(1, -1) : part;
}

/** What the engine calls a relation while it is built. */
const INTERIM = /__dbt_(?:tmp|backup)\d*$/;
const MAX_TARGETS = 5;
const MAX_SUMMARY_LENGTH = 255;

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));
const VERBS = words(
  'SELECT INSERT UPDATE DELETE MERGE CREATE ALTER DROP TRUNCATE WITH DESCRIBE SHOW BEGIN COMMIT ROLLBACK GRANT REVOKE COPY CALL USE SET EXPLAIN ANALYZE VACUUM ATTACH DETACH PRAGMA VALUES COMMENT REFRESH OPTIMIZE START END UNLOAD EXECUTE DECLARE',
);
const READ_BEFORE = words('FROM JOIN INTO');
const WRITTEN_BEFORE = words('TABLE VIEW UPDATE TRUNCATE');
const PASSED_BEFORE_NAME = words('IF NOT EXISTS ONLY LATERAL TABLE');
const FROM_FUNCTIONS = words('EXTRACT SUBSTRING TRIM POSITION OVERLAY');
const TAKES_OBJECT = words('CREATE ALTER DROP TRUNCATE REFRESH');
const MODIFIERS = words(
  'OR REPLACE TEMP TEMPORARY TRANSIENT UNLOGGED UNIQUE EXTERNAL GLOBAL LOCAL RECURSIVE SECURE DYNAMIC',
);
const OBJECTS = words('TABLE VIEW SCHEMA INDEX DATABASE FUNCTION PROCEDURE MATERIALIZED SEQUENCE STAGE MACRO TYPE');
