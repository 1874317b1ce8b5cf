import { randomInt } from 'node:crypto';
import { grown } from '../core/bytes.js';
import { putText, REGION, SLACK, textAt, view } from '../record/arena.js';
import { INTERIM, keywordOf } from './sql-keywords.js';
import { isCommonWord, isLearnable, wordEnd, wordStart } from './vocabulary.js';

/** What is known of a word beside the bits of `Keyword`. */
export const Flag = {
  /** A word of the vocabulary, which need not be learned. */
  common: 1 << 13,
  /** Too long for an identifier that is learned. */
  long: 1 << 14,
  /** Can be a name's word: no number alone. */
  learnable: 1 << 15,
  /** Ends as relations do while they are built. */
  interim: 1 << 16,
} as const;

/** The longest identifier that is learned, in UTF-16 units: no database has longer names. */
const MAX_IDENTIFIER_LENGTH = 300;
/** The longest word of a name, in UTF-16 units: no text that is shown is longer. */
const MAX_WORD_LENGTH = 16_384;
/** A table of so many words, or bytes of them, gets those of further runs no more; */
const ENOUGH_WORDS = 1 << 16;
const ENOUGH_BYTES = 2 * 1024 * 1024;
/** but the names of runs that began with it, as far as there is room. */
const MAX_WORDS = 1 << 19;
const MAX_BYTES = 32 * 1024 * 1024;
/** A table begins with room for so many words, and bytes. */
const FIRST_WORDS = 512;
const FIRST_BYTES = 8 * 1024;

/** Where words are put that do not stand in the arena, to be looked for; a statement's may be as long as that. */
const MAX_SPELLED_BYTES = 64 * 1024;
const SPELLED = REGION.end - MAX_SPELLED_BYTES - SLACK;

/** Words as numbers of a table. */
export interface FoundWords {
  readonly words: Words;
  readonly numbers: readonly number[];
}

/**
 * Words by their bytes, as numbers from 1 on: names of a run are bits then, and what a keyword does is looked up once a word.
 * It grows as words come, and forgets none: who keeps numbers keeps the table that they are of.
 */
export class Words {
  count = 0;
  /** What a word's hash begins with; it keeps senders from choosing words that meet in one slot. */
  readonly seed = randomInt(2 ** 32) | 0;
  private own = new DataView(new ArrayBuffer(FIRST_BYTES));
  /** Where each word begins in `own`, and behind the last one where the next will. */
  private starts = new Int32Array(FIRST_WORDS + 2);
  private flags = new Int32Array(FIRST_WORDS + 2);
  private hashes = new Int32Array(FIRST_WORDS + 2);
  /** The pass in which each word came last. */
  private passes = new Int32Array(FIRST_WORDS + 2);
  private slots = new Int32Array(2 * FIRST_WORDS);
  private readonly lasting = new Map<number, number>();
  private pass = 0;

  /** Whether it is not yet left to the runs that began with it. */
  get hasRoom(): boolean {
    return this.count < ENOUGH_WORDS && this.byteCount < ENOUGH_BYTES;
  }

  /** Whether all words of a text of so many bytes surely have room. */
  hasRoomFor(textBytes: number): boolean {
    // Of each word there may be one more, without what the engine adds.
    return this.count + 2 * textBytes < MAX_WORDS && this.byteCount + 2 * textBytes <= MAX_BYTES;
  }

  flagsOf(word: number): number {
    return this.flags[word] ?? 0;
  }

  lengthOf(word: number): number {
    return this.startOf(word + 1) - this.startOf(word);
  }

  textOf(word: number): string {
    const { buffer } = this.own;
    return Buffer.from(buffer, this.startOf(word), this.lengthOf(word)).toString();
  }

  /** Copies a word into the arena. @returns the place behind it */
  put(to: number, word: number): number {
    const start = this.startOf(word);
    const length = this.lengthOf(word);
    for (let at = 0; at < length; at++) view.setUint8(to + at, this.own.getUint8(start + at));
    return to + length;
  }

  /** The number of the word that stands in the arena, which is added where it is new. @returns 0 where there is no room */
  find(start: number, end: number): number {
    return this.findHashed(start, end, this.hashAt(start, end));
  }

  /** The same where its hash is known: from `seed` on each byte `mixed` in. */
  findHashed(start: number, end: number, hash: number): number {
    const slot = this.slotOf(start, end, hash);
    return this.slots[slot] || this.add(start, end, hash, slot);
  }

  /** The number of a word, which is added where it is new. @returns 0 where there is no room, and for one that no text can hold */
  numberOf(word: string): number {
    const end = spell(word);
    return end === 0 ? 0 : this.find(SPELLED, end);
  }

  /** The number of a word that came; 0 of another one. */
  knownNumberOf(word: string): number {
    const end = spell(word);
    return end === 0 ? 0 : (this.slots[this.slotOf(SPELLED, end, this.hashAt(SPELLED, end))] ?? 0);
  }

  /** The number here of another table's word. @returns 0 where there is no room */
  numberIn(other: Words, word: number): number {
    if (other === this || word === 0) return word;
    return other.lengthOf(word) > MAX_SPELLED_BYTES ? 0 : this.find(SPELLED, other.put(SPELLED, word));
  }

  /** The word without what the engine adds to a relation's name while it is built. */
  withoutInterim(word: number): number {
    if ((this.flagsOf(word) & Flag.interim) === 0) return word;
    const known = this.lasting.get(word);
    if (known !== undefined) return known;
    const lasting = this.find(SPELLED, putText(SPELLED, this.textOf(word).replace(INTERIM, '')));
    this.lasting.set(word, lasting);
    return lasting;
  }

  /** From now on no word has come. */
  beginPass(): void {
    this.pass += 1;
  }

  /** Whether a word comes for the first time in this pass. */
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

  /** The slot that has the word, or is free for it. */
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
    const { own } = this;
    if (this.lengthOf(word) !== end - start) return false;
    for (let at = start, ours = this.startOf(word); at < end; at++, ours++) {
      if (own.getUint8(ours) !== view.getUint8(at)) return false;
    }
    return true;
  }

  private add(start: number, end: number, hash: number, slot: number): number {
    const from = this.byteCount;
    const length = end - start;
    if (this.count + 1 >= MAX_WORDS || from + length > MAX_BYTES) return 0;
    if (from + length > this.own.byteLength) this.growBytes(from + length);
    for (let at = 0; at < length; at++) this.own.setUint8(from + at, view.getUint8(start + at));
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
    const larger = new Uint8Array(Math.max(2 * this.own.byteLength, needed));
    larger.set(new Uint8Array(this.own.buffer));
    this.own = new DataView(larger.buffer);
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

/** A word's hash with one byte more. */
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

/** Writes a word's bytes. @returns the place behind them; 0 for what no text can hold: half characters, and what is too long */
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

/** The table where words get their numbers: one for all runs, and a new one when it has enough. */
export function currentWords(): Words {
  if (!table.hasRoom) table = new Words();
  return table;
}

/** The words of a name that can be learned. */
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

/** The words that can be learned of the name that stands in the arena. */
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
    // What other characters belong to words is known of strings only.
    if (code >= ASCII_CODES) return wordsOf(textAt(start, end), words);
    if (at === from) continue;
    const word = words.findHashed(from, at, hash);
    if ((words.flagsOf(word) & Flag.learnable) !== 0) numbers.push(word);
  }
  return { words, numbers };
}

const ASCII_CODES = 0x80;
/** 1 at the code of each ASCII character that words have. */
const IS_WORD = Uint8Array.from({ length: 256 }, (_, code) =>
  code < ASCII_CODES && wordStart(String.fromCharCode(code), 0) === 0 ? 1 : 0,
);
