import type { WordList } from './known-names.js';
import { IDENTIFIER_INTRODUCERS, isCommonWord } from './vocabulary.js';
import { wordEnd, wordStart } from './word-bounds.js';

/** Longest text that is read, in UTF-16 units; what follows is cut off and `…` says so. */
export const MAX_PROSE_LENGTH = 16_384;

/**
 * Makes a message safe to show: words of a vocabulary and names of the run's own things stay, anything else (values,
 * numbers, unknown words, quoted SQL) becomes `?`. It does not depend on finding where a quote ends, so a message that
 * quotes half a statement is as safe as any. Asks `names` only for words on which the result depends.
 */
export function sanitizeProse(text: string, names: WordList): string {
  const isCut = text.length > MAX_PROSE_LENGTH;
  const read = isCut ? text.slice(0, MAX_PROSE_LENGTH) : text;
  const lines = read.includes('\n') ? read.split('\n') : [read];
  const kept: string[] = [];
  for (const line of lines) {
    if (POINTER_LINE.test(line) || STACK_FRAME.test(line)) continue;
    if (SQL_EXCERPT.test(line)) kept.push('  LINE ?: ?');
    else kept.push(sanitizeLine(line, names));
  }
  const whole = kept.join('\n').trimEnd();
  return isCut ? `${whole}…` : whole;
}

/** The first words of a message up to the first thing that had to go: what it is about, without any SQL. */
export function firstSafeWords(text: string, names: WordList): string {
  const firstLine = sanitizeProse(text, names).trimStart().split('\n', 1)[0] ?? '';
  const safe = (/^[^?"'`]*/.exec(firstLine)?.[0] ?? '').replace(TRAILING_PUNCTUATION, '');
  return safe === '' ? '?' : safe;
}

/** A database's excerpt of the statement, `LINE 3: …`, often cut in the middle of a literal. */
const SQL_EXCERPT = /^\s*LINE \d+:/;
const POINTER_LINE = /^\s*\^~*\s*$/;
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
    const word = line.slice(start, end);
    isLocation &&= between === ':' && LOCATION_NUMBER.test(word);
    if (isLocation) continue;
    if (isBehindIntroducer && IDENTIFIER_OPENING.test(between) && line[end] === '"' && PLAIN_NAME.test(word)) continue;
    const lowerCase = word.toLowerCase();
    if ((quote === '' && isCommonWord(lowerCase)) || names.has(word)) {
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

/** What stands between an introducing word, or a name in a list of them, and the next quoted name. */
const IDENTIFIER_OPENING = /^(?::? ?|", )"$/;
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

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
