/**
 * Removes the statement that a driver repeats in an error message: before the error (`Failed to execute query '…': `) or after it (`Query was: …`). If the end of the statement cannot be found, `?`
 * replaces all that follows.
 */
export function withoutStatement(text: string): string {
  return split(text, () => "?'");
}

/** Does the same for readers who may see the statement: if its end cannot be found, the last part of the text that may be the error is kept. */
export function withCauseFirst(text: string): string {
  return split(text, (statement) => {
    const at = statement.lastIndexOf(QUOTE_AND_COLON);
    return at === -1 ? statement : `…${statement.slice(at)}`;
  });
}

function split(text: string, unknown: (behind: string) => string): string {
  const wasAt = text.indexOf(QUERY_WAS);
  const before = wasAt === -1 ? text : `${text.slice(0, wasAt).trimEnd()}${behindStatement(text, wasAt)}`;
  const executeAt = before.indexOf(EXECUTE_QUERY);
  if (executeAt === -1) return before.includes('Failed to prepare') ? before.replace(PREPARE_QUERY, '') : before;
  // The statement may contain text that looks like its end, so the last match counts.
  let errorAt = -1;
  for (const found of before.matchAll(ERROR_BEHIND_QUERY)) errorAt = found.index + QUOTE_AND_COLON.length;
  const front = before.slice(0, executeAt).replace(/\[libpq\] $/, '');
  if (errorAt >= executeAt) return front + before.slice(errorAt);
  return `${front}${EXECUTE_QUERY}${unknown(before.slice(executeAt + EXECUTE_QUERY.length))}`;
}

const EXECUTE_QUERY = "Failed to execute query '";
const PREPARE_QUERY = /\bFailed to prepare query: (?=(?:ERROR|FATAL): )/;
const QUOTE_AND_COLON = "': ";
const ERROR_BEHIND_QUERY = /': (?=(?:ERROR|FATAL|PANIC): )/g;
const QUERY_WAS = 'Query was: ';

/** Returns what follows a repeated statement: the error's code, and locations in files, each on a line. */
function behindStatement(text: string, statementAt: number): string {
  const lines = text.slice(statementAt + QUERY_WAS.length).split('\n');
  let first = lines.length;
  while (first > 1 && LOCATION_LINE.test(lines[first - 1] as string)) first--;
  const code = SQL_STATE.exec(lines[first - 1] as string)?.[0] ?? '';
  return [...(code === '' ? [''] : ['', code]), ...lines.slice(first)].join('\n');
}

/** The SQLSTATE that a driver wrote behind an error, after any statement that it repeats; `undefined` where there is none. */
export function sqlStateOf(text: string): string | undefined {
  let code: string | undefined;
  for (const found of text.matchAll(SQL_STATE_AT_END)) code = found[1];
  return code;
}

const LOCATION_LINE = /^\s*(?:\(in |--> |$)/;
const SQL_STATE = / \(SQLSTATE: [0-9A-Z]{5}\)$/;
const SQL_STATE_AT_END = /\(SQLSTATE: ([0-9A-Z]{5})\)$/gm;
