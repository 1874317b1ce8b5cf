import { SqlTokenizer } from './sql-tokenizer.js';

/*
 * What databases and the engine put into the texts of errors, by the patterns of their own messages: the statement that
 * failed, an excerpt of it, names, paths, values of a row. A pattern counts only where a message begins, so that a value
 * which reads like one shows nothing.
 */

/**
 * A message without the statement that a driver repeats in it: in front of the error (`Failed to execute query '…': `) or
 * behind it (`Query was: …`). Where the error cannot be told from the statement, what follows is `?`.
 */
export function withoutStatement(text: string): string {
  const wasAt = text.indexOf(QUERY_WAS);
  const before = wasAt === -1 ? text : `${text.slice(0, wasAt).trimEnd()}${behindStatement(text, wasAt)}`;
  const executeAt = before.indexOf(EXECUTE_QUERY);
  if (executeAt === -1) return before.includes('Failed to prepare') ? before.replace(PREPARE_QUERY, '') : before;
  // The statement may hold what looks like its end: the last one is the error's.
  let errorAt = -1;
  for (const found of before.matchAll(ERROR_BEHIND_QUERY)) errorAt = found.index + QUOTE_AND_COLON.length;
  const front = before.slice(0, executeAt).replace(/\[libpq\] $/, '');
  return errorAt < executeAt ? `${front}${EXECUTE_QUERY}?'` : front + before.slice(errorAt);
}

const EXECUTE_QUERY = "Failed to execute query '";
const PREPARE_QUERY = /\bFailed to prepare query: (?=(?:ERROR|FATAL): )/;
const QUOTE_AND_COLON = "': ";
const ERROR_BEHIND_QUERY = /': (?=(?:ERROR|FATAL|PANIC): )/g;
const QUERY_WAS = 'Query was: ';

/** What stands behind a repeated statement: the error's code, and places in files, each on a line of its own. */
function behindStatement(text: string, statementAt: number): string {
  const lines = text.slice(statementAt + QUERY_WAS.length).split('\n');
  let first = lines.length;
  while (first > 1 && PLACE_LINE.test(lines[first - 1] as string)) first--;
  const code = SQL_STATE.exec(lines[first - 1] as string)?.[0] ?? '';
  return [...(code === '' ? [''] : ['', code]), ...lines.slice(first)].join('\n');
}

const PLACE_LINE = /^\s*(?:\(in |--> |$)/;
const SQL_STATE = / \(SQLSTATE: [0-9A-Z]{5}\)$/;

/** Names that a message mentions outside of quotes, or in the engine's: `Table with name orders_x does not exist`. */
export function mentionedNames(line: string, into: Set<string>): void {
  const message = line.slice(MESSAGE_START.exec(line)?.[0].length ?? 0);
  for (const pattern of NAMING) {
    const found = pattern.exec(message);
    if (found === null) continue;
    for (const name of found.slice(1)) for (const word of name?.match(/[A-Za-z_][\w$]*/g) ?? []) into.add(word);
  }
}

/** Whether a text may mention names: most do not, and are not read for them. */
export const MAY_MENTION =
  /exist|unknown|not found|denied|owner of|constraint failed|cannot be|No function|Cycle|duplicate|Key \(|source column|must appear|is not unique|Compilation Error|identifier '|Unrecognized|mismatch|missing in/;

/** What may stand before a message in its line: the driver's class, the database's, what the engine was about. */
const MESSAGE_START =
  /^\s*(?:\[[A-Za-z_.]+\] )?(?:Failed to (?:render SQL|eval the compiled Jinja expression) )?(?:[a-z]+ [a-z]+: )?(?:[A-Z][A-Za-z]+: )?(?:(?:ERROR|FATAL|DETAIL|HINT):\s+|[A-Z][A-Za-z]*(?: [A-Za-z]+){0,3} (?:Error|Exception): )?/;
const DOTTED = String.raw`[A-Za-z_][\w$]*(?:\.[A-Za-z_][\w$]*)*`;
const NAMING: readonly RegExp[] = [
  `(?:Table|View|Type|Schema|Sequence|Catalog|Index|Macro|(?:Scalar |Aggregate |Table |Table Macro |Window )?Function) with name "?(${DOTTED})"? does not exist`,
  `column (${DOTTED}) (?:does not exist|must appear in the GROUP BY)`,
  `(?:function|aggregate|procedure) (${DOTTED})\\(([^()'"]*)\\) (?:does not exist|is not unique)`,
  `permission denied for \\w+ (${DOTTED})$`,
  `must be owner of \\w+ (${DOTTED})$`,
  `No function matches the given name and argument types '(${DOTTED})\\(`,
  `Key \\(([A-Za-z_]\\w*(?:, [A-Za-z_]\\w*)*)\\)=\\(`,
  `NOT NULL constraint failed: (${DOTTED})$`,
  `CHECK constraint failed on table (${DOTTED}) `,
  `.* when casting from source column (${DOTTED})$`,
  `filter (${DOTTED}) is unknown`,
  `test (${DOTTED}) is unknown`,
  `Jinja macro or function \`(${DOTTED})\` is unknown`,
  `Required var '(${DOTTED})' not found in config`,
  `'env_var': environment variable '(${DOTTED})' not found`,
  `Ref '(${DOTTED})' not found in project`,
  `Source '(${DOTTED})' not found`,
  `Found duplicate (?:model|seed|snapshot|macro|test|source) '(${DOTTED})'`,
  `Cycle detected: ((?:\\[${DOTTED}\\](?: -> )?)+)$`,
  `Cycle \\d+:\\s+(\\[${DOTTED}\\] depends on \\[${DOTTED}\\])$`,
  `Compilation Error for (${DOTTED}) from `,
  `invalid identifier '"?(${DOTTED})"?'`,
  `(?:Object|Schema|Database|Table|View) '"?(${DOTTED})"?' does not exist`,
  `Unrecognized name: (${DOTTED})(?:;| at )`,
  `A column, variable, or function parameter with name ((?:\`${DOTTED}\`\\.?)+) cannot be resolved`,
  `The table or view ((?:\`${DOTTED}\`\\.?)+) cannot be found`,
  // A row of the engine's table of columns that are not as a contract says.
  `\\| (${DOTTED}) +\\|[^'"]*\\| (?:data type mismatch|missing in (?:definition|contract)) *\\|$`,
].map((pattern) => new RegExp(`^${pattern}`));

/**
 * Stretches of a line that are shown as they are, in their order: codes, places and paths of the project's files, positions.
 * Two numbers for each.
 */
export function shownStretches(line: string): readonly number[] {
  if (!MAY_HAVE_STRETCH.test(line)) return NONE;
  const stretches: number[] = [];
  for (const found of line.matchAll(STRETCH)) stretches.push(found.index, found.index + found[0].length);
  return stretches;
}

const NONE: readonly number[] = [];
const MAY_HAVE_STRETCH =
  /\.(?:sql|ya?ml|csv|py|md|json|toml)\b|SQLSTATE|\bdbt\d|\bline \d|Line: \d|port \d|Cycle \d|<[A-Z_]+>:/;
/** Files of a project, where the engine names them: `(in models/a.sql:1:8)`, `--> models/a.yml`, `from models/a.sql:`. */
const PROJECT_PATH = String.raw`(?:(?<=\((?:in )?)|(?<=--> )|(?<=\bfrom )|(?<=^  file = ))\/?(?:[\w.@+-]+\/)*[\w.@+-]+\.(?:sql|ya?ml|csv|py|md|json|toml)(?::\d{1,7}){0,2}(?=[):\s]|$)`;
const STRETCH = new RegExp(
  [
    PROJECT_PATH,
    String.raw`(?<=\(SQLSTATE: )[0-9A-Z]{5}(?=\))`,
    String.raw`(?<=\((?:[A-Z][A-Za-z]+ \()?)dbt\d{4}(?=\))`,
    String.raw`\b(?:at )?line \d{1,7}(?:,? column \d{1,7})?(?=[\s:,.)]|$)`,
    String.raw`(?<=\bCSV Error on )Line: \d{1,9}$`,
    String.raw`(?<=", port )\d{1,5}(?= failed: )`,
    String.raw`\bCycle \d{1,3}(?=: )`,
    String.raw`(?<=\(in |--> )<[A-Z_]+>:\d{1,7}:\d{1,7}`,
  ].join('|'),
  'g',
);

/**
 * Where values of rows stand in a line, which go whole, common words too: the line before them, and behind them where they
 * are in brackets. `undefined` where it has none.
 */
export function aroundValues(line: string): readonly [before: string, after: string] | undefined {
  if (!MAY_HAVE_VALUES.test(line)) return undefined;
  for (const pattern of VALUES) {
    const [before] = pattern.exec(line) ?? [];
    if (before === undefined) continue;
    const closingAt = before.endsWith('(') ? line.lastIndexOf(')') : -1;
    return [before, closingAt < before.length ? '' : line.slice(closingAt)];
  }
  return undefined;
}

const MAY_HAVE_VALUES = /Key \(|row contains|Original Line|JSON data|Vars supplied/;
const VALUES: readonly RegExp[] = [
  /^.*?\bKey \([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*\)=\(/,
  /^.*?\bFailing row contains \(/,
  /^\s*Original Line: (?=.)/,
  /^.*?\bJSON data, line \d+: (?=.)/,
  /^\s*Vars supplied to [\w.]+ = (?=.)/,
];

/**
 * An excerpt of a statement, `LINE 3: …`, without its literals and comments. Databases show one line of the statement,
 * cut at both ends, with a caret below what is wrong. That is no place inside of a literal, so quotes in front of it have to
 * pair: where they do not, or nothing tells, the line began inside of a value, and all of it goes.
 * @param caretLine the line behind it
 */
export function sanitizeExcerpt(line: string, caretLine: string | undefined): string {
  const head = EXCERPT.exec(line)?.[0] ?? '';
  const sql = line.slice(head.length);
  const caretAt =
    caretLine !== undefined && CARET_LINE.test(caretLine) ? caretLine.indexOf('^') - head.length : undefined;
  if (!isReadable(sql, caretAt)) return `${head}?`;
  let text = '';
  const tokens = new SqlTokenizer(sql, EXCERPT_DIALECT);
  let isPastCaret = caretAt === undefined;
  while (tokens.next()) {
    isPastCaret ||= tokens.start === caretAt;
    const token = sql.slice(tokens.start, tokens.end);
    // With quotes in quotes they might pair otherwise.
    if (!isPastCaret && /".*'|'.*"/.test(token)) return `${head}?`;
    // A dollar in a word may begin a string.
    if (tokens.kind === 'word' && token.includes('$')) return isPastCaret ? `${head}${text}?` : `${head}?`;
    if (tokens.kind === 'literal') text += '?';
    else if (tokens.kind !== 'comment') text += token;
  }
  return isPastCaret || caretAt === sql.length ? `${head}${text}`.trimEnd() : `${head}?`;
}

/** Whether a line is an excerpt of a statement. */
export const EXCERPT = /^\s*LINE \d+: ?/;
/** The line below it. */
export const CARET_LINE = /^\s*\^~*\s*$/;
/** As PostgreSQL and DuckDB read; what others read otherwise counts as a literal. */
const EXCERPT_DIALECT = {
  doubleQuotes: 'identifier',
  backslashEscapes: 'unknown',
  tripleQuotes: 'never',
  bracketIdentifiers: false,
  hashComments: 'never',
} as const;

/** Whether what stands in front of the caret cannot be the end of a value or a comment. */
function isReadable(sql: string, caretAt: number | undefined): boolean {
  if (caretAt === undefined) return STATEMENT_START.test(sql) && !/['"$\\]|\*\//.test(sql);
  if (caretAt < 0 || caretAt > sql.length || /[^\x20-\x7e]/.test(sql)) return false;
  const before = sql.slice(0, caretAt);
  const isPaired = (quote: string) => before.split(quote).length % 2 === 1;
  if (!isPaired("'") || !isPaired('"') || /[\\$]/.test(before)) return false;
  return !before.includes('*/') || (!/['"]|\*\/.*\*\/|\*\/.*\/\*/.test(before) && before.includes('/*'));
}

/** Without a caret only what begins as a statement or a clause does. */
const STATEMENT_START =
  /^\s*(?:select|from|where|(?:inner |left |right |full |cross )?join|with|insert into|update|delete from|create|alter|drop|group by|order by|having|union)\b/i;
