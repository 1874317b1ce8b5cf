import { ownText } from '../../record/own-text.js';
import { TextCache } from './text-cache.js';

/** Most words that are remembered; later names are then unknown, so texts show `?` for them. */
export const MAX_KNOWN_WORDS = 200_000;

/** Words that a text may show beside those of the vocabulary. */
export interface WordList {
  has(word: string): boolean;
}

/**
 * Names of a run's own things (nodes, files, relations), learned from structural attributes that are exported anyway.
 * Texts may show them.
 */
export class KnownNames implements WordList {
  private readonly words = new Set<string>();
  /** Names that were learned lately: each record of a node brings the same few. */
  private readonly lately = new TextCache<true>(LATELY_LENGTH, MAX_LATELY_LENGTH);

  /** How many words are known; it only grows, so a text that was read at the same size reads the same. */
  get size(): number {
    return this.words.size;
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
    if (!this.learnAscii(name)) for (const [word] of name.matchAll(WORD)) this.addWord(word);
  }

  /** The same as for any text, in a third of the time. @returns false for a text that is not all ASCII */
  private learnAscii(name: string): boolean {
    let start = 0;
    for (let at = 0; at < name.length; at++) {
      const code = name.charCodeAt(at);
      if (code > MAX_ASCII) return false;
      if (IS_WORD[code] === 1) continue;
      if (at > start) this.addWord(name.slice(start, at));
      start = at + 1;
    }
    if (start < name.length) this.addWord(name.slice(start));
    return true;
  }

  private addWord(word: string): void {
    if (isLearnable(word)) this.words.add(word);
  }

  has(word: string): boolean {
    return this.words.has(word);
  }
}

/** Whether a word can become known: numbers never do. */
export function isLearnable(word: string): boolean {
  const first = word.charCodeAt(0);
  return (first >= LOWER_A && first <= LOWER_Z) || !NUMBER.test(word);
}

/** What counts as one word, in names as in texts. */
export const WORD = /[\p{L}\p{N}\p{M}_$]+/gu;
const MAX_ASCII = 0x7f;
/** 1 for the ASCII characters of words. */
const IS_WORD = new Uint8Array(MAX_ASCII + 1);
for (let code = 0; code <= MAX_ASCII; code++) IS_WORD[code] = /[\w$]/.test(String.fromCharCode(code)) ? 1 : 0;
const NUMBER = /^[\p{N}_$]+$/u;
const LOWER_A = 0x61;
const LOWER_Z = 0x7a;
const LATELY_LENGTH = 512 * 1024;
const MAX_LATELY_LENGTH = 512;
