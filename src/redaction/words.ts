import { randomInt } from 'node:crypto';
import { grown } from '../core/bytes.js';
import { putText, REGION, SLACK, textAt, view } from '../record/arena.js';
import { INTERIM, keywordOf } from './sql-keywords.js';
import { isCommonWord, isLearnable, wordEnd, wordStart } from './vocabulary.js';

/** Properties of a word besides the bits of `Keyword`. */
export const Flag = {
  /** A word of the vocabulary, which need not be learned. */
  common: 1 << 13,
  /** Too long for an identifier that is learned. */
  long: 1 << 14,
  /** May be a word of a name: not a number. */
  learnable: 1 << 15,
  /** Ends with the suffix of a relation that is being built. */
  interim: 1 << 16,
} as const;

/** The longest identifier that is learned, in UTF-16 units; no database has longer names. */
const MAX_IDENTIFIER_LENGTH = 300;
/** The longest word of a name, in UTF-16 units; no text that is shown is longer. */
const MAX_WORD_LENGTH = 16_384;
/** A table with this many words or bytes is not used for further runs. */
const ENOUGH_WORDS = 1 << 16;
const ENOUGH_BYTES = 2 * 1024 * 1024;
/** The limits for a table, which the runs that began with it may fill. */
const MAX_WORDS = 1 << 19;
const MAX_BYTES = 32 * 1024 * 1024;
/** The initial capacity of a table. */
const FIRST_WORDS = 512;
const FIRST_BYTES = 8 * 1024;

/** Where a word that is not in the arena is written to be looked up, and the size of that area. */
const MAX_SPELLED_BYTES = 64 * 1024;
const SPELLED = REGION.end - MAX_SPELLED_BYTES - SLACK;

/** Words as numbers of a table. */
export interface FoundWords {
  readonly words: Words;
  readonly numbers: readonly number[];
}

/** Numbers words by their bytes, from 1 on, so that the names of a run are bits and a keyword is looked up only once. Words are never removed; whoever keeps numbers keeps their table. */
export class Words {
  count = 0;
  /** The start value of hashes; it keeps senders from choosing words that collide. */
  readonly seed = randomInt(2 ** 32) | 0;
  private spellings = new DataView(new ArrayBuffer(FIRST_BYTES));
  /** The start of each word in `spellings`, and the end of the last one. */
  private starts = new Int32Array(FIRST_WORDS + 2);
  private flags = new Int32Array(FIRST_WORDS + 2);
  private hashes = new Int32Array(FIRST_WORDS + 2);
  /** The pass in which each word occurred last. */
  private passes = new Int32Array(FIRST_WORDS + 2);
  private slots = new Int32Array(2 * FIRST_WORDS);
  private readonly lasting = new Map<number, number>();
  private pass = 0;

  /** Whether further runs may use the table. */
  get hasRoom(): boolean {
    return this.count < ENOUGH_WORDS && this.byteCount < ENOUGH_BYTES;
  }

  /** Whether there is surely room for all words of a text. */
  hasRoomFor(textBytes: number): boolean {
    // Each word may add a second one, without the suffix of a relation that is being built.
    return this.count + 2 * textBytes < MAX_WORDS && this.byteCount + 2 * textBytes <= MAX_BYTES;
  }

  flagsOf(word: number): number {
    return this.flags[word] ?? 0;
  }

  lengthOf(word: number): number {
    return this.startOf(word + 1) - this.startOf(word);
  }

  textOf(word: number): string {
    const { buffer } = this.spellings;
    return Buffer.from(buffer, this.startOf(word), this.lengthOf(word)).toString();
  }

  /** Copies a word into the arena. @returns its end */
  put(to: number, word: number): number {
    const start = this.startOf(word);
    const length = this.lengthOf(word);
    for (let at = 0; at < length; at++) view.setUint8(to + at, this.spellings.getUint8(start + at));
    return to + length;
  }

  /** Returns the number of a word in the arena; a new word is added. @returns 0 if there is no room */
  find(start: number, end: number): number {
    return this.findHashed(start, end, this.hashAt(start, end));
  }

  /** Like `find`, with a known hash: `seed` with each byte `mixed` in. */
  findHashed(start: number, end: number, hash: number): number {
    const slot = this.slotOf(start, end, hash);
    return this.slots[slot] || this.add(start, end, hash, slot);
  }

  /** Returns the number of a word; a new word is added. @returns 0 if there is no room, and for a word that no text can contain */
  numberOf(word: string): number {
    const end = spell(word);
    return end === 0 ? 0 : this.find(SPELLED, end);
  }

  /** Returns the number of a word; 0 if it was not added. */
  knownNumberOf(word: string): number {
    const end = spell(word);
    return end === 0 ? 0 : (this.slots[this.slotOf(SPELLED, end, this.hashAt(SPELLED, end))] ?? 0);
  }

  /** Returns the number in this table of a word of another table; a new word is added. @returns 0 if there is no room */
  numberIn(other: Words, word: number): number {
    if (other === this || word === 0) return word;
    return other.lengthOf(word) > MAX_SPELLED_BYTES ? 0 : this.find(SPELLED, other.put(SPELLED, word));
  }

  /** Returns a word without the suffix of a relation that is being built. */
  withoutInterim(word: number): number {
    if ((this.flagsOf(word) & Flag.interim) === 0) return word;
    const known = this.lasting.get(word);
    if (known !== undefined) return known;
    const lasting = this.find(SPELLED, putText(SPELLED, this.textOf(word).replace(INTERIM, '')));
    this.lasting.set(word, lasting);
    return lasting;
  }

  /** Begins a new pass, in which no word has occurred yet. */
  beginPass(): void {
    this.pass += 1;
  }

  /** Whether a word occurs for the first time in this pass. */
  isFirst(word: number): boolean {
    if (this.passes[word] === this.pass) return false;
    this.passes[word] = this.pass;
    return true;
  }

  private get byteCount(): number {
    return this.startOf(this.count + 1);
  }

  private startOf(word: number): number {
    return this.starts[word] ?? 0;
  }

  private hashAt(start: number, end: number): number {
    let hash = this.seed;
    for (let at = start; at < end; at++) hash = mixed(hash, view.getUint8(at));
    return hash;
  }

  /** Returns the slot of a word, or the free slot for it. */
  private slotOf(start: number, end: number, hash: number): number {
    const { slots, hashes } = this;
    const mask = slots.length - 1;
    let slot = hash & mask;
    for (let word = slots[slot] ?? 0; word !== 0; word = slots[slot] ?? 0) {
      if (hashes[word] === hash && this.isSpelled(word, start, end)) return slot;
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  private isSpelled(word: number, start: number, end: number): boolean {
    const { spellings } = this;
    if (this.lengthOf(word) !== end - start) return false;
    for (let at = start, ours = this.startOf(word); at < end; at++, ours++) {
      if (spellings.getUint8(ours) !== view.getUint8(at)) return false;
    }
    return true;
  }

  private add(start: number, end: number, hash: number, slot: number): number {
    const from = this.byteCount;
    const length = end - start;
    if (this.count + 1 >= MAX_WORDS || from + length > MAX_BYTES) return 0;
    if (from + length > this.spellings.byteLength) this.growBytes(from + length);
    for (let at = 0; at < length; at++) this.spellings.setUint8(from + at, view.getUint8(start + at));
    this.count += 1;
    const word = this.count;
    this.starts[word + 1] = from + length;
    this.hashes[word] = hash;
    this.slots[slot] = word;
    this.flags[word] = flagsOf(this.textOf(word));
    if (2 * (word + 1) > this.slots.length) this.growWords();
    return word;
  }

  private growBytes(needed: number): void {
    const larger = new Uint8Array(Math.max(2 * this.spellings.byteLength, needed));
    larger.set(new Uint8Array(this.spellings.buffer));
    this.spellings = new DataView(larger.buffer);
  }

  private growWords(): void {
    const length = this.slots.length;
    this.starts = grown(this.starts, length + 2);
    this.flags = grown(this.flags, length + 2);
    this.hashes = grown(this.hashes, length + 2);
    this.passes = grown(this.passes, length + 2);
    const slots = new Int32Array(2 * length);
    for (let word = 1; word <= this.count; word++) {
      let slot = (this.hashes[word] ?? 0) & (slots.length - 1);
      while (slots[slot] !== 0) slot = (slot + 1) & (slots.length - 1);
      slots[slot] = word;
    }
    this.slots = slots;
  }
}

/** Mixes one more byte into a word's hash. */
export function mixed(hash: number, byte: number): number {
  const product = Math.imul(hash ^ byte, 0x9e3779b1);
  return product ^ (product >>> 15);
}

function flagsOf(word: string): number {
  let flags = keywordOf(word.toUpperCase());
  if (isCommonWord(word.toLowerCase())) flags |= Flag.common;
  if (word.length > MAX_IDENTIFIER_LENGTH) flags |= Flag.long;
  if (word.length <= MAX_WORD_LENGTH && isLearnable(word)) flags |= Flag.learnable;
  if (INTERIM.test(word)) flags |= Flag.interim;
  return flags;
}

/** Writes a word's bytes for a lookup. @returns their end; 0 if no text can contain the word: it has unpaired surrogates, or is too long */
function spell(word: string): number {
  if (word.length > MAX_WORD_LENGTH) return 0;
  for (let at = 0; at < word.length; at++) {
    const code = word.charCodeAt(at);
    if (code >= 0x80) return word.isWellFormed() ? putText(SPELLED, word) : 0;
    view.setUint8(SPELLED + at, code);
  }
  return SPELLED + word.length;
}

let table = new Words();

/** Returns the table for new runs: a shared one, which is replaced when it has enough words. */
export function currentWords(): Words {
  if (!table.hasRoom) table = new Words();
  return table;
}

/** Returns the words of a name that can be learned. */
export function wordsOf(name: string, words: Words): FoundWords {
  const numbers: number[] = [];
  for (let end = 0, start = wordStart(name, 0); start < name.length; start = wordStart(name, end)) {
    end = wordEnd(name, start);
    const word = name.slice(start, end);
    const number = isLearnable(word) ? words.numberOf(word) : 0;
    if (number !== 0) numbers.push(number);
  }
  return { words, numbers };
}

/** Returns the words of a name in the arena that can be learned. */
export function wordsAt(start: number, length: number, words: Words): FoundWords {
  const end = start + length;
  const numbers: number[] = [];
  for (let at = start; at < end; at++) {
    const from = at;
    let hash = words.seed;
    let code = view.getUint8(at);
    while (IS_WORD[code] === 1) {
      hash = mixed(hash, code);
      at++;
      if (at === end) break;
      code = view.getUint8(at);
    }
    // Which other characters belong to words is decided on strings only.
    if (code >= ASCII_CODES) return wordsOf(textAt(start, end), words);
    if (at === from) continue;
    const word = words.findHashed(from, at, hash);
    if ((words.flagsOf(word) & Flag.learnable) !== 0) numbers.push(word);
  }
  return { words, numbers };
}

const ASCII_CODES = 0x80;
/** 1 at the code of each ASCII character that may be part of a word. */
const IS_WORD = Uint8Array.from({ length: 256 }, (_, code) =>
  code < ASCII_CODES && wordStart(String.fromCharCode(code), 0) === 0 ? 1 : 0,
);
