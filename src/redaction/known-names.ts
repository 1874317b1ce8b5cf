import { ownText } from '../record/own-text.js';
import { TextCache } from './text-cache.js';

/** Most words that are remembered; later names are then unknown, so texts show `?` for them. */
export const MAX_KNOWN_WORDS = 200_000;
/** Most identifiers of statements that are remembered beside them, and the longest one: no database has longer names. */
export const MAX_IDENTIFIERS = 50_000;
const MAX_IDENTIFIER_LENGTH = 300;

/** Words that a text may show beside those of the vocabulary. */
export interface WordList {
  /** Whether it may stand anywhere, in quotes too. */
  has(word: string): boolean;
  /** Whether it may stand outside of quotes, where values seldom are. */
  hasOutsideQuotes(word: string): boolean;
}

/**
 * Names of a run's own things (nodes, files, relations), learned from structural attributes that are exported anyway.
 * Texts may show them. Identifiers of its statements (columns, functions) count outside of quotes only: a value in quotes
 * may well be spelled like a column.
 */
export class KnownNames implements WordList {
  private readonly words = new Set<string>();
  private readonly identifiers = new Set<string>();
  /** Names that were learned lately: each record of a node brings the same few. */
  private readonly lately = new TextCache<true>(LATELY_LENGTH, MAX_LATELY_LENGTH);

  /** How many words are known; it only grows, so a text that was read at the same size reads the same. */
  get size(): number {
    return this.words.size + this.identifiers.size;
  }

  /** Learns a name's words, for example all of `model.shop.orders` or `models/marts/orders.sql`. */
  learn(name: string): void {
    if (this.words.size >= MAX_KNOWN_WORDS || this.lately.get(name) !== undefined) return;
    const own = ownText(name);
    this.lately.set(own, true);
    this.learnOwn(own);
  }

  /** As `learn`, of a name that is not likely to have come before. @param name in memory of its own, see `ownText`. */
  learnOwn(name: string): void {
    if (this.words.size >= MAX_KNOWN_WORDS || this.words.has(name)) return;
    for (let end = 0, start = wordStart(name, 0); start < name.length; start = wordStart(name, end)) {
      end = wordEnd(name, start);
      const word = name.slice(start, end);
      if (!this.words.has(word) && isLearnable(word)) this.words.add(word);
    }
  }

  /** Learns an identifier of a statement. */
  learnIdentifier(word: string): void {
    if (this.identifiers.size >= MAX_IDENTIFIERS || word.length > MAX_IDENTIFIER_LENGTH) return;
    if (!this.identifiers.has(word)) this.identifiers.add(ownText(word));
  }

  has(word: string): boolean {
    return this.words.has(word);
  }

  hasOutsideQuotes(word: string): boolean {
    return this.words.has(word) || this.identifiers.has(word);
  }
}

/** Whether a word can become known: numbers never do. */
export function isLearnable(word: string): boolean {
  const first = word.charCodeAt(0);
  return (first >= LOWER_A && first <= LOWER_Z) || !NUMBER.test(word);
}

const NUMBER = /^[\p{N}_$]+$/u;
const LOWER_A = 0x61;
const LOWER_Z = 0x7a;
const LATELY_LENGTH = 512 * 1024;
const MAX_LATELY_LENGTH = 512;

/**
 * Where the first word from an offset on begins; the text's length where there is none. A word is a stretch of letters,
 * digits, marks, `_` and `$`. Read by hand, as a pattern makes an object for each word, which costs more than finding it.
 * @param from no offset inside of a word
 */
export function wordStart(text: string, from: number): number {
  let at = from;
  while (at < text.length && !isWordAt(text, at)) at += unitsAt(text, at);
  return at;
}

/** Where the word that begins at an offset ends: the offset of the first character that is not of it. */
export function wordEnd(text: string, start: number): number {
  let at = start;
  while (at < text.length && isWordAt(text, at)) at += unitsAt(text, at);
  return at;
}

function isWordAt(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code < ASCII_CODES ? IS_ASCII_WORD[code] === 1 : WORD_CHAR.test(text.slice(at, at + unitsAt(text, at)));
}

/** One, or two for a character beyond the first 65,536. */
function unitsAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code < FIRST_SURROGATE || code > LAST_SURROGATE) return 1;
  return (text.codePointAt(at) ?? 0) > LAST_SINGLE_UNIT ? 2 : 1;
}

const WORD_CHAR = /^[\p{L}\p{N}\p{M}_$]$/u;
const ASCII_CODES = 0x80;
const FIRST_SURROGATE = 0xd800;
const LAST_SURROGATE = 0xdfff;
const LAST_SINGLE_UNIT = 0xffff;
/** 1 at the code of each ASCII character that words have. */
const IS_ASCII_WORD = Uint8Array.from({ length: ASCII_CODES }, (_, code) =>
  WORD_CHAR.test(String.fromCharCode(code)) ? 1 : 0,
);
