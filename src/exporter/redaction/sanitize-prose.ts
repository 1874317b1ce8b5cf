import {
  aroundValues,
  CARET_LINE,
  EXCERPT,
  MAY_MENTION,
  mentionedNames,
  sanitizeExcerpt,
  shownStretches,
  withoutStatement,
} from './error-text.js';
import type { WordList } from './known-names.js';
import { sqlDialectOf } from './sql-dialect.js';
import { SqlTokenizer } from './sql-tokenizer.js';
import { IDENTIFIER_INTRODUCERS, isCommonWord } from './vocabulary.js';
import { wordEnd, wordStart } from './word-bounds.js';

/** Longest text that is read, in UTF-16 units; what follows is cut off and `…` says so. */
export const MAX_PROSE_LENGTH = 16_384;

/**
 * Makes a message safe to show: words of a vocabulary, names of the run's own things and names that the message itself
 * mentions stay, anything else (values, numbers, unknown words, quoted SQL) becomes `?`. It does not depend on finding
 * where a quote ends, so a message that quotes half a statement is as safe as any. Asks `names` only for words on which
 * the result depends.
 */
export function sanitizeProse(text: string, names: WordList): string {
  return sanitize(text, names, true);
}

/**
 * Makes a text safe to show of which nothing is known: as `sanitizeProse`, but all of its words stay that stand outside of
 * quotes and without digits, not those of a vocabulary alone. Where its quotes do not pair, or it may hold a stretch cut
 * out of a statement, nothing tells what is a value: then it is a message like any other.
 */
export function sanitizeUnknownText(text: string, names: WordList): string {
  const read = text.slice(0, MAX_PROSE_LENGTH);
  const own = CUT_STATEMENT.test(read) ? NO_WORDS : wordsOutsideLiterals(read.replace(APOSTROPHE, ' '));
  const words: WordList =
    own.size === 0
      ? names
      : { has: (word) => names.has(word), hasOutsideQuotes: (word) => own.has(word) || names.hasOutsideQuotes(word) };
  return sanitize(text, words, true);
}

function wordsOutsideLiterals(text: string): ReadonlySet<string> {
  const tokens = new SqlTokenizer(text, sqlDialectOf(undefined));
  const words = new Set<string>();
  /** Words since the last blank, which may turn out to be an address of mail. */
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
/** A digit, or a dollar that may begin a string. */
const UNSURE_WORD = /[\p{N}$]/u;
/** As in `doesn't`: no quote. */
const APOSTROPHE = /(?<=[a-z])'(?=(?:t|s|re|ve|ll|d|m)\b)/gi;
const CUT_STATEMENT = /\bLINE \d+:|\.\.\.|…|Query was: |Failed to execute query '/;

/**
 * The first words of a message up to the first thing that had to go: what it is about, without any SQL. The engine's line
 * that only says which node failed is followed by the database's.
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

/** @param isDetailed names that the message mentions, and excerpts of the statement, are shown */
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

/** A run's names, and those that a message mentions. */
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

/** A line that mentions names is no longer. */
const MAX_NAMING_LINE = 2_000;
const STACK_FRAME = /^\s+(?:\d+: |at \S+:\d+)/;
const TRAILING_PUNCTUATION = /[\s:;,([{<-]+$/;
/** The program's own whole numbers in messages that hold nothing else. */
const COUNTED_NODES = /^\d+ nodes? errored$/;
/** How the run model words a verdict: the count at the end is no value of the project. */
const COUNTED_VERDICT =
  /^((?:Stopped by fail-fast(?: after \S+ failed)?|Interrupted|The process ended without the end of its invocation span): )(\d{1,7} (?:nodes? canceled(?:, \d{1,7} not finished)?|nodes? not finished|error messages?))$/;
const SEVERAL_UNKNOWN = /\?(?:['"`()[\]{},.:;|*+<>=_@ \\-]{0,3}\?)+/g;
const LOCATION_NUMBER = /^\d{1,5}$/;
const FILE_EXTENSIONS: ReadonlySet<string> = new Set(['sql', 'yml', 'yaml', 'csv', 'py', 'md']);

function sanitizeLine(line: string, names: WordList): string {
  if (COUNTED_NODES.test(line)) return line;
  const [, reason, count] = COUNTED_VERDICT.exec(line) ?? [];
  if (reason !== undefined && count !== undefined) return sanitizeLine(reason, names) + count;
  const around = aroundValues(line);
  if (around !== undefined) return `${sanitizeWords(around[0], names)}?${sanitizeWords(around[1], names)}`;
  return sanitizeWords(line, names);
}

function sanitizeWords(line: string, names: WordList): string {
  const stretches = shownStretches(line);
  let stretch = 0;
  let safe = '';
  // Everything before it is in `safe`: most of a line stays, and is then copied in long stretches.
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
    while ((stretches[stretch + 1] ?? line.length) <= start) stretch += 2;
    if ((stretches[stretch] ?? line.length) <= start && quote === '') {
      end = Math.max(end, stretches[stretch + 1] ?? end);
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
    // `column 'customer_id'`: what stands there is a name, if the run knows such a column.
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
 * The quote that is open behind a stretch of punctuation. Inside quotes common words are values too. A guess, on top of
 * the vocabulary: an apostrophe right behind a word opens nothing.
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

/** Where the name ends that begins here and fills its double quotes; names of parts may have dots between them. */
function quotedNameEnd(line: string, start: number): number | undefined {
  QUOTED_NAME.lastIndex = start;
  return QUOTED_NAME.test(line) ? QUOTED_NAME.lastIndex : undefined;
}

/** What stands between an introducing word, or a name in a list or a path of them, and the next quoted name. */
const IDENTIFIER_OPENING = /^(?:(?:: )?:? ?|", |"\.)"$/;
const SINGLE_OPENING = /^(?:: )?:? ?'$/;
const QUOTED_NAME = /[A-Za-z_][A-Za-z0-9_$]*(?:\.[A-Za-z_][A-Za-z0-9_$]*)*(?=")/y;

/** Whether a stretch between words is of nothing but ASCII's blank and punctuation, all of which is shown. */
function isPlain(between: string): boolean {
  for (let at = 0; at < between.length; at++) {
    const code = between.charCodeAt(at);
    if (code < BLANK || code > TILDE) return false;
  }
  return true;
}

const BLANK = 0x20;
const TILDE = 0x7e;

/** Punctuation and blanks between words, without characters that are neither (a value may be made of symbols alone). */
function visible(between: string): string {
  return between.replace(UNUSUAL, '?');
}

const UNUSUAL = /[^\s!"#%&'()*+,\-./:;<=>?@[\\\]^_`{|}~┌┐└┘├┤┬┴┼─│┆═╞╪╡…→]+/gu;
