import { withoutStatement } from '../record/error-statement.js';
import { redactNativeSentence } from '../run/native-sentences.js';
import type { WordList } from './known-names.js';
import { SqlTokenizer, sqlDialectOf } from './sanitize-sql.js';
import { IDENTIFIER_INTRODUCERS, isCommonWord, wordEnd, wordStart } from './vocabulary.js';

/** The longest text that is read, in UTF-16 units; a longer one is cut off and ends with `…`. */
export const MAX_PROSE_LENGTH = 16_384;

/**
 * Makes a message safe to show: words of the vocabulary, names of the run's things, and names that the message itself mentions stay; everything else (values, numbers, unknown words, quoted SQL)
 * becomes `?`. This does not depend on finding the end of a quote, so a message with half a statement is as safe as any. Asks `names` only for words that the result depends on.
 */
export function sanitizeProse(text: string, names: WordList): string {
  return sanitize(text, names, true);
}

/**
 * Makes a text of an unknown event safe to show. Like `sanitizeProse`, but all words without digits outside of quotes stay, not only those of the vocabulary. If its quotes do not pair, or it may
 * contain part of a statement, values cannot be recognised: then it is treated like any message.
 */
export function sanitizeUnknownText(text: string, names: WordList): string {
  const read = text.slice(0, MAX_PROSE_LENGTH);
  const unquotedWords = CUT_STATEMENT.test(read) ? NO_WORDS : wordsOutsideLiterals(read.replace(APOSTROPHE, ' '));
  const words: WordList =
    unquotedWords.size === 0
      ? names
      : {
          has: (word) => names.has(word),
          hasOutsideQuotes: (word) => unquotedWords.has(word) || names.hasOutsideQuotes(word),
        };
  return sanitize(text, words, true);
}

function wordsOutsideLiterals(text: string): ReadonlySet<string> {
  const tokens = new SqlTokenizer(text, sqlDialectOf(undefined));
  const words = new Set<string>();
  /** Words since the last space, which may turn out to be part of an e-mail address. */
  let waiting: string[] = [];
  let isAddress = false;
  while (tokens.next()) {
    if (tokens.kind === 'space') {
      if (!isAddress) for (const word of waiting) words.add(word);
      waiting = [];
      isAddress = false;
    } else if (tokens.kind === 'word') {
      const word = text.slice(tokens.start, tokens.end);
      if (!UNSURE_WORD.test(word)) waiting.push(word);
    } else if (tokens.kind === 'symbol' && text[tokens.start] === '@') isAddress = true;
  }
  if (!isAddress) for (const word of waiting) words.add(word);
  return tokens.isMalformed ? NO_WORDS : words;
}

const NO_WORDS: ReadonlySet<string> = new Set();
/** Matches a digit, or a dollar that may begin a string. */
const UNSURE_WORD = /[\p{N}$]/u;
/** An apostrophe as in `doesn't`, which is no quote. */
const APOSTROPHE = /(?<=[a-z])'(?=(?:t|s|re|ve|ll|d|m)\b)/gi;
const CUT_STATEMENT = /\bLINE \d+:|\.\.\.|…|Query was: |Failed to execute query '/;

/**
 * Returns the first words of a message, up to the first one that had to be removed: what it is about, without any SQL. A line of the engine that only names the failed node is followed by the
 * database's line.
 */
export function firstSafeWords(text: string, names: WordList): string {
  const [first = '', second = ''] = sanitize(text, names, false).trimStart().split('\n', 2);
  const safe = safeStart(first);
  if (safe !== first || !NODE_LINE.test(first)) return safe === '' ? '?' : withoutTrail(safe);
  const more = withoutTrail(safeStart(second).trim());
  return more === '' ? withoutTrail(safe) : `${safe}\n${more}`;
}

const NODE_LINE = /^(?:Database|Runtime|Compilation) Error in \w+ \S+ \(\S+\)$/;

function safeStart(line: string): string {
  return /^[^?"'`]*/.exec(line)?.[0] ?? '';
}

function withoutTrail(text: string): string {
  return text.replace(TRAILING_PUNCTUATION, '');
}

/** @param isDetailed whether names that the message mentions, and excerpts of the statement, are shown */
function sanitize(text: string, names: WordList, isDetailed: boolean): string {
  const whole = withoutStatement(text);
  const isCut = whole.length > MAX_PROSE_LENGTH;
  const read = isCut ? whole.slice(0, MAX_PROSE_LENGTH) : whole;
  const lines = read.includes('\n') ? read.split('\n') : [read];
  const words = isDetailed && MAY_MENTION.test(read) ? withMentioned(lines, names) : names;
  const kept: string[] = [];
  for (const [index, line] of lines.entries()) {
    if (CARET_LINE.test(line) || STACK_FRAME.test(line)) continue;
    if (EXCERPT.test(line)) kept.push(isDetailed ? sanitizeExcerpt(line, lines[index + 1]) : '  LINE ?: ?');
    else kept.push(sanitizeLine(line, words));
  }
  const shown = kept.join('\n').trimEnd();
  return isCut ? `${shown}…` : shown;
}

/** Returns a run's names together with those that a message mentions. */
function withMentioned(lines: readonly string[], names: WordList): WordList {
  const mentioned = new Set<string>();
  for (const line of lines) if (line.length <= MAX_NAMING_LINE) mentionedNames(line, mentioned);
  return mentioned.size === 0 ? names : withWords(mentioned, names);
}

function withWords(mentioned: ReadonlySet<string>, names: WordList): WordList {
  return {
    has: (word) => mentioned.has(word) || names.has(word),
    hasOutsideQuotes: (word) => mentioned.has(word) || names.hasOutsideQuotes(word),
  };
}

/** The longest line in which mentioned names are searched. */
const MAX_NAMING_LINE = 2_000;
const STACK_FRAME = /^\s+(?:\d+: |at \S+:\d+)/;
const TRAILING_PUNCTUATION = /[\s:;,([{<-]+$/;
/** Messages with a number that the engine counted, and nothing else. */
const COUNTED_NODES = /^\d+ nodes? errored$/;
const SEVERAL_UNKNOWN = /\?(?:['"`()[\]{},.:;|*+<>=_@ \\-]{0,3}\?)+/g;
const LOCATION_NUMBER = /^\d{1,5}$/;
const FILE_EXTENSIONS: ReadonlySet<string> = new Set(['sql', 'yml', 'yaml', 'csv', 'py', 'md']);

function sanitizeLine(line: string, names: WordList): string {
  if (COUNTED_NODES.test(line)) return line;
  const sentence = redactNativeSentence(line, (part) => sanitizePart(part, names));
  return sentence ?? sanitizePart(line, names);
}

function sanitizePart(line: string, names: WordList): string {
  const around = aroundValues(line);
  if (around !== undefined) return `${sanitizeWords(around[0], names)}?${sanitizeWords(around[1], names)}`;
  return sanitizeWords(line, names);
}

function sanitizeWords(line: string, names: WordList): string {
  const ranges = shownRanges(line);
  let range = 0;
  let safe = '';
  // Most of a line stays, so it is copied in long parts: `safe` has everything before this offset.
  let copiedTo = 0;
  let end = 0;
  let isBehindIntroducer = false;
  let isLocation = false;
  let quote = '';
  for (let start = wordStart(line, 0); start < line.length; start = wordStart(line, end)) {
    const between = line.slice(end, start);
    if (!isPlain(between)) {
      safe += line.slice(copiedTo, end) + visible(between);
      copiedTo = start;
    }
    quote = quoteAfter(between, quote, end > 0);
    end = wordEnd(line, start);
    while ((ranges[range + 1] ?? line.length) <= start) range += 2;
    if ((ranges[range] ?? line.length) <= start && quote === '') {
      end = Math.max(end, ranges[range + 1] ?? end);
      isBehindIntroducer = false;
      isLocation = false;
      continue;
    }
    const word = line.slice(start, end);
    isLocation &&= between === ':' && LOCATION_NUMBER.test(word);
    if (isLocation) continue;
    if (isBehindIntroducer && IDENTIFIER_OPENING.test(between)) {
      const nameEnd = quotedNameEnd(line, start);
      if (nameEnd !== undefined) {
        end = nameEnd;
        continue;
      }
    }
    const lowerCase = word.toLowerCase();
    // In `column 'customer_id'` the quoted word is a name, if the run knows such a column.
    const isNamed = quote === '' || (isBehindIntroducer && SINGLE_OPENING.test(between) && line[end] === "'");
    const isShown =
      (quote === '' && isCommonWord(lowerCase)) || (isNamed ? names.hasOutsideQuotes(word) : names.has(word));
    if (isShown) {
      isBehindIntroducer = IDENTIFIER_INTRODUCERS.has(lowerCase);
      isLocation = FILE_EXTENSIONS.has(word);
    } else {
      safe += `${line.slice(copiedTo, start)}?`;
      copiedTo = end;
      isBehindIntroducer = false;
    }
  }
  const rest = line.slice(end);
  const whole = safe + (isPlain(rest) ? line.slice(copiedTo) : line.slice(copiedTo, end) + visible(rest));
  return whole.includes('?') ? whole.replace(SEVERAL_UNKNOWN, '?') : whole;
}

/**
 * Returns the quote that is open after punctuation; common words inside of quotes are values, too. This is a guess in addition to the vocabulary: an apostrophe directly after a word opens nothing.
 */
function quoteAfter(between: string, openQuote: string, isBehindWord: boolean): string {
  let quote = openQuote;
  for (let position = 0; position < between.length; position++) {
    const char = between[position];
    if (char !== "'" && char !== '"') continue;
    if (quote === char) quote = '';
    else if (quote === '' && !(char === "'" && position === 0 && isBehindWord)) quote = char;
  }
  return quote;
}

/** Returns the end of a name that begins here and fills its double quotes; the parts of a name may be separated by dots. */
function quotedNameEnd(line: string, start: number): number | undefined {
  QUOTED_NAME.lastIndex = start;
  return QUOTED_NAME.test(line) ? QUOTED_NAME.lastIndex : undefined;
}

/** The text between an introducing word, or a name in a list or path of names, and the next quoted name. */
const IDENTIFIER_OPENING = /^(?:(?:: )?:? ?|", |"\.)"$/;
const SINGLE_OPENING = /^(?:: )?:? ?'$/;
const QUOTED_NAME = /[A-Za-z_][A-Za-z0-9_$]*(?:\.[A-Za-z_][A-Za-z0-9_$]*)*(?=")/y;

/** Whether the text between words has only ASCII spaces and punctuation, all of which are shown. */
function isPlain(between: string): boolean {
  for (let at = 0; at < between.length; at++) {
    const code = between.charCodeAt(at);
    if (code < BLANK || code > TILDE) return false;
  }
  return true;
}

const BLANK = 0x20;
const TILDE = 0x7e;

/** Replaces characters other than punctuation and white space: a value may consist of symbols alone. */
function visible(between: string): string {
  return between.replace(UNUSUAL, '?');
}

const UNUSUAL = /[^\s!"#%&'()*+,\-./:;<=>?@[\\\]^_`{|}~┌┐└┘├┤┬┴┼─│┆═╞╪╡…→]+/gu;

// Patterns of the error messages of databases and of the engine, which may quote the failed statement or an excerpt of it, names,
// paths and values of a row. A pattern matches only at the start of a message, so that a value that looks like one shows nothing.

/** Adds the names that a message mentions, outside of quotes or in the engine's: `Table with name orders_x does not exist`. */
export function mentionedNames(line: string, into: Set<string>): void {
  const message = line.slice(MESSAGE_START.exec(line)?.[0].length ?? 0);
  for (const pattern of NAMING) {
    const found = pattern.exec(message);
    if (found === null) continue;
    for (const name of found.slice(1)) for (const word of name?.match(/[A-Za-z_][\w$]*/g) ?? []) into.add(word);
  }
}

/** Whether a text may mention names; most do not and are not searched. */
export const MAY_MENTION =
  /exist|unknown|not found|denied|owner of|constraint failed|cannot be|No function|Cycle|duplicate|Key \(|source column|must appear|is not unique|Compilation Error|identifier '|Unrecognized|mismatch|missing in|profile/;

/** What may precede a message in its line: the class of the driver or the database, or what the engine was doing. */
const MESSAGE_START =
  /^\s*(?:\[[A-Za-z_.]+\] )?(?:Failed to (?:render SQL|eval the compiled Jinja expression) )?(?:[a-z]+ [a-z]+: )?(?:[A-Z][A-Za-z]+: )?(?:(?:ERROR|FATAL|DETAIL|HINT):\s+|[A-Z][A-Za-z]*(?: [A-Za-z]+){0,3} (?:Error|Exception): )?/;
const DOTTED = String.raw`[A-Za-z_][\w$]*(?:\.[A-Za-z_][\w$]*)*`;
/** Names in the project's configuration. */
const CONFIGURED = String.raw`'([A-Za-z_][\w.$-]*)'`;
const CODE = String.raw`(?:\[\w+ \(dbt\d+\)\]:? )?`;
const NAMING: readonly RegExp[] = [
  `${CODE}[Tt]arget ${CONFIGURED} not found in profile ${CONFIGURED}`,
  `${CODE}[Pp]rofile ${CONFIGURED} not found`,
  `${CODE}Could not find profile named ${CONFIGURED}`,
  `${CODE}The profile ${CONFIGURED} does not have a target named ${CONFIGURED}`,
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
  // A row of the engine's table of columns that differ from a contract.
  `\\| (${DOTTED}) +\\|[^'"]*\\| (?:data type mismatch|missing in (?:definition|contract)) *\\|$`,
].map((pattern) => new RegExp(`^${pattern}`));

/** Returns the ranges of a line that are shown unchanged: codes, paths and locations of the project's files, positions. Each range is two numbers; ranges are in order. */
export function shownRanges(line: string): readonly number[] {
  if (!MAY_HAVE_SHOWN.test(line)) return NONE;
  const ranges: number[] = [];
  for (const found of line.matchAll(SHOWN)) ranges.push(found.index, found.index + found[0].length);
  return ranges;
}

const NONE: readonly number[] = [];
const MAY_HAVE_SHOWN =
  /\.(?:sql|ya?ml|csv|py|md|json|toml)\b|SQLSTATE|\bdbt\d|\bline \d|Line: \d|port \d|Cycle \d|<[A-Z_]+>:/;
/** Paths of a project's files where the engine names them: `(in models/a.sql:1:8)`, `--> models/a.yml`, `from models/a.sql:`. */
const PROJECT_PATH = String.raw`(?:(?<=\((?:in )?)|(?<=--> )|(?<=\bfrom )|(?<=^  file = ))\/?(?:[\w.@+-]+\/)*[\w.@+-]+\.(?:sql|ya?ml|csv|py|md|json|toml)(?::\d{1,7}){0,2}(?=[):\s]|$)`;
const SHOWN = new RegExp(
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

/** Finds values of rows in a line, all words of which are removed: returns the text before them, and the text after them if they are in brackets. `undefined` if the line has none. */
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
 * Removes literals and comments from an excerpt of a statement, `LINE 3: …`. Databases show one line of the statement, cut at both ends, with a caret below the error. The caret never points into a
 * literal, so quotes before it have to pair; if they do not, or without a caret, the line may begin inside of a value and is removed.
 * @param caretLine the next line
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
    // Quotes inside of quotes might pair differently.
    if (!isPastCaret && /".*'|'.*"/.test(token)) return `${head}?`;
    // A dollar in a word may begin a string.
    if (tokens.kind === 'word' && token.includes('$')) return isPastCaret ? `${head}${text}?` : `${head}?`;
    if (tokens.kind === 'literal') text += '?';
    else if (tokens.kind !== 'comment') text += token;
  }
  return isPastCaret || caretAt === sql.length ? `${head}${text}`.trimEnd() : `${head}?`;
}

/** Matches the head of an excerpt of a statement. */
export const EXCERPT = /^\s*LINE \d+: ?/;
/** Matches the line with the caret below it. */
export const CARET_LINE = /^\s*\^~*\s*$/;
/** The syntax of PostgreSQL and DuckDB; what other databases read differently counts as a literal. */
const EXCERPT_DIALECT = {
  doubleQuotes: 'identifier',
  backslashEscapes: 'unknown',
  tripleQuotes: 'never',
  bracketIdentifiers: false,
  hashComments: 'never',
} as const;

/** Whether the text before the caret cannot be the end of a value or a comment. */
function isReadable(sql: string, caretAt: number | undefined): boolean {
  if (caretAt === undefined) return STATEMENT_START.test(sql) && !/['"$\\]|\*\//.test(sql);
  if (caretAt < 0 || caretAt > sql.length || /[^\x20-\x7e]/.test(sql)) return false;
  const before = sql.slice(0, caretAt);
  const isPaired = (quote: string) => before.split(quote).length % 2 === 1;
  if (!isPaired("'") || !isPaired('"') || /[\\$]/.test(before)) return false;
  return !before.includes('*/') || (!/['"]|\*\/.*\*\/|\*\/.*\/\*/.test(before) && before.includes('/*'));
}

/** Without a caret, only text that begins like a statement or a clause is readable. */
const STATEMENT_START =
  /^\s*(?:select|from|where|(?:inner |left |right |full |cross )?join|with|insert into|update|delete from|create|alter|drop|group by|order by|having|union)\b/i;

const RULE = /^\+[-+]+\+$/;
const HEADER = /^\|(?: [A-Za-z_][A-Za-z0-9_]* *\|)+$/;

/** Redacts a unit test's table of differences, drawn with `+---+` and `|`: the names of the columns stay, the cells do not. Other text is treated as prose. */
export function sanitizeDiffTable(table: string, names: WordList): string {
  const lines = table.split('\n');
  const [top = '', header = '', rule = ''] = lines;
  if (!RULE.test(top) || !HEADER.test(header) || !RULE.test(rule)) return sanitizeProse(table, names);
  const columns = header
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
  const rowCount = lines.slice(3).filter((line) => line.startsWith('|')).length;
  return `${columns.join(' | ')}\n${rowCount} differing row(s), values redacted`;
}
