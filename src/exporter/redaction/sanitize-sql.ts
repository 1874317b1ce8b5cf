import type { SqlDialect } from './sql-dialect.js';
import { SqlTokenizer } from './sql-tokenizer.js';

/** A statement without its values. */
export interface SanitizedSql {
  /** The statement; each literal is `?`, a list of literals one `?`, comments and superfluous blanks are gone. */
  readonly text: string;
  /** Its verb in capitals, for example `SELECT` or `CREATE TABLE`; `undefined` when it begins with none. */
  readonly operation: string | undefined;
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
      listEnd = text.length;
      isAfterComma = false;
    } else {
      const part = sql.slice(tokens.start, tokens.end);
      isAfterComma = part === ',' && listEnd === text.length;
      if (!isAfterComma) listEnd = -1;
      if (tokens.kind === 'word') verb.see(part);
      text += (text === '' ? '' : space) + part;
    }
    space = '';
  }
  // Cut off in the middle of a literal, a statement is not malformed.
  if (tokens.isMalformed && !isCut) text = `${text.slice(0, firstLiteralAt)} ?`.trimStart();
  return { text: isCut ? `${text}…` : text, operation: verb.operation };
}

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

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));
const VERBS = words(
  'SELECT INSERT UPDATE DELETE MERGE CREATE ALTER DROP TRUNCATE WITH DESCRIBE SHOW BEGIN COMMIT ROLLBACK GRANT REVOKE COPY CALL USE SET EXPLAIN ANALYZE VACUUM ATTACH DETACH PRAGMA VALUES COMMENT REFRESH OPTIMIZE START END UNLOAD EXECUTE DECLARE',
);
const TAKES_OBJECT = words('CREATE ALTER DROP TRUNCATE REFRESH');
const MODIFIERS = words(
  'OR REPLACE TEMP TEMPORARY TRANSIENT UNLOGGED UNIQUE EXTERNAL GLOBAL LOCAL RECURSIVE SECURE DYNAMIC',
);
const OBJECTS = words('TABLE VIEW SCHEMA INDEX DATABASE FUNCTION PROCEDURE MATERIALIZED SEQUENCE STAGE MACRO TYPE');
