import { startOf } from '../../core/text.js';

/** The SQL of a node that failed. */
export interface FailedSql {
  /** `compiled`: the model's own code, with its macros expanded; `statement`: what the database was asked. */
  readonly kind: 'compiled' | 'statement';
  readonly text: string;
  /** Which line of the whole the text begins with, from 1: of long SQL only the part round the error is kept. */
  readonly firstLine: number;
  /** The line that the error is about, of the whole; `null` where its message does not say so. */
  readonly errorLine: number | null;
}

/** Longest SQL that is kept of a node, in characters. */
const MAX_CHARS = 20_000;

/**
 * The SQL of a failed node with the line that its error is about. Databases count lines in the statement that they got,
 * which has the compiled code inside; that is found there, so the line is one of the code that the author knows.
 * @returns `null` where neither is known
 */
export function failedSql(compiled: string | null, statement: string | null, message: string | null): FailedSql | null {
  const named = message === null ? null : namedLine(message);
  if (compiled !== null) {
    const line = named === null ? null : lineInCompiled(compiled, statement, named);
    // A line of the statement outside of the compiled code is the materialization's.
    if (line !== null || statement === null || named === null || named.isCompiled) {
      return part('compiled', compiled, line);
    }
  }
  if (statement === null) return null;
  return part('statement', statement, named === null || named.isCompiled ? null : withinLines(statement, named.line));
}

/** A line that an error names. */
interface NamedLine {
  readonly line: number;
  /** Of the compiled code and not of the statement. */
  readonly isCompiled: boolean;
  /** What stands there, where the error repeats it. */
  readonly content: string | null;
}

/** How DuckDB and PostgreSQL, Snowflake, BigQuery and Databricks name a line of the statement. */
const STATEMENT_LINES = [
  /^[ \t]*LINE (\d{1,9}): ?(.*)$/m,
  /\berror line (\d{1,9}) at position/i,
  / at \[(\d{1,9}):\d{1,9}\]/,
  /\(line (\d{1,9}), pos \d{1,9}\)/,
] as const;
/** The engine's own errors about compiled code. */
const COMPILED_LINE = /^[ \t]*--> (?:\S*\/)?compiled\/\S*:(\d{1,9}):\d{1,9}$/m;

function namedLine(message: string): NamedLine | null {
  for (const pattern of STATEMENT_LINES) {
    const found = pattern.exec(message);
    if (found !== null) return { line: Number(found[1]), isCompiled: false, content: found[2] ?? null };
  }
  const compiled = COMPILED_LINE.exec(message);
  return compiled === null ? null : { line: Number(compiled[1]), isCompiled: true, content: null };
}

function lineInCompiled(compiled: string, statement: string | null, named: NamedLine): number | null {
  if (named.isCompiled) return withinLines(compiled, named.line);
  const code = compiled.trim();
  const at = statement === null || code === '' ? -1 : statement.indexOf(code);
  if (statement !== null && at >= 0) {
    const before = lineCount(statement.slice(0, at)) - lineCount(compiled.slice(0, compiled.indexOf(code)));
    const line = named.line - before;
    return line < 1 ? null : withinLines(compiled, line);
  }
  return named.content === null ? null : lineLike(compiled, named.content);
}

/** The only line with a content; databases leave out its start and its end where it is long. */
function lineLike(text: string, content: string): number | null {
  const searched = content
    .replace(/^\.\.\./, '')
    .replace(/\.\.\.$/, '')
    .trim();
  if (searched === '') return null;
  const lines = text.split('\n');
  const at = lines.findIndex((line) => line.includes(searched));
  return at < 0 || lines.slice(at + 1).some((line) => line.includes(searched)) ? null : at + 1;
}

function withinLines(text: string, line: number): number | null {
  return line >= 1 && line <= lineCount(text) + 1 ? line : null;
}

/** Line breaks in a text. */
function lineCount(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}

/** What is kept of it: all, or the part round the line. */
function part(kind: FailedSql['kind'], whole: string, errorLine: number | null): FailedSql {
  if (whole.length <= MAX_CHARS) return { kind, text: whole, firstLine: 1, errorLine };
  const lines = whole.split('\n');
  const first = Math.max(0, (errorLine ?? 1) - 1 - KEPT_BEFORE);
  const text = startOf(lines.slice(first, first + KEPT_LINES).join('\n'), MAX_CHARS);
  return { kind, text, firstLine: first + 1, errorLine };
}

const KEPT_BEFORE = 40;
const KEPT_LINES = 200;
