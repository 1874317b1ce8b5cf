import { randomInt } from 'node:crypto';
import { copyBytes, copyText, hashOf, isSame, type Range, REGION, SLACK, textAt } from './arena.js';
import { Attribute, cell, setCell } from './cells.js';

const SLOTS = 1 << 16;
const MAX_TEXTS = SLOTS >> 1;
/** The bits of a slot that are a text's number plus one; the others are those of its hash. */
const NUMBER_BITS = SLOTS - 1;
/** A longer text is not remembered. */
const MAX_TEXT_BYTES = 64 * 1024;

/** A text that came, by its bytes. */
export class KnownText {
  private own: string | undefined;

  constructor(
    /** Less than `MAX_TEXTS`; of a text that is not remembered -1. */
    readonly number: number,
    /** Where it stands in the arena for as long as it is remembered; of a text that is not, for as long as what it is part of. */
    readonly at: number,
    readonly length: number,
  ) {}

  get text(): string {
    this.own ??= textAt(this.at, this.at + this.length);
    return this.own;
  }
}

/** Less is no room: all are forgotten before the next record, which may need so much. */
const MIN_FREE_TEXTS = 4096;
const MIN_FREE_BYTES = 8 * 1024 * 1024;

/**
 * Texts by their bytes, of all runs: most values of a run come many times, and then a hash and a comparison are all that they
 * cost. When there are too many, all are forgotten between two records; who keeps something by their numbers does it in a `TextMemo`.
 */
class Texts {
  /** How often all were forgotten: a number is that of another text then. */
  generation = 0;
  /**
   * Of each slot its text's number plus one, and the high bits of the text's hash; 0 where it is free. Where texts stand is asked of
   * them: they stand in the order in which they came, and mostly come in that order again, while slots are far from each other.
   */
  private readonly slots = new Int32Array(SLOTS);
  private known: KnownText[] = [];
  private end: number = REGION.texts;
  private readonly seed = randomInt(2 ** 32) | 0;

  /** Makes room where there is none. Nothing that was found or kept before may be in use. */
  tidy(): void {
    const isFull = this.known.length > MAX_TEXTS - MIN_FREE_TEXTS || this.end > REGION.items - MIN_FREE_BYTES;
    if (isFull) this.forgetAll();
  }

  /** The text of an attribute of the record that is looked at; it is looked for once, however many ask. @param attribute its first cell */
  ofAttribute(attribute: number): KnownText {
    const start = cell(attribute + Attribute.valueStart);
    const length = cell(attribute + Attribute.valueEnd) - start;
    const number = cell(attribute + Attribute.text);
    const known = number > 0 && number <= this.known.length ? this.known[number - 1] : undefined;
    // Another one may have the number since all were forgotten.
    if (known?.length === length && (this.generation === 0 || isSame(known.at, start, length))) return known;
    const found = this.find(start, start + length);
    setCell(attribute + Attribute.text, found.number + 1);
    return found;
  }

  find(start: number, end: number): KnownText {
    const length = end - start;
    if (length > MAX_TEXT_BYTES) return new KnownText(-1, start, length);
    const hash = hashOf(start, length, this.seed);
    const { slots } = this;
    let slot = hash & (SLOTS - 1);
    for (let found = slots[slot] as number; found !== 0; found = slots[slot] as number) {
      if (((found ^ hash) & ~NUMBER_BITS) === 0) {
        const known = this.known[(found & NUMBER_BITS) - 1] as KnownText;
        if (known.length === length && isSame(known.at, start, length)) return known;
      }
      slot = (slot + 1) & (SLOTS - 1);
    }
    return this.add(start, length, hash, slot);
  }

  /** Keeps bytes for as long as the texts are remembered. @returns `undefined` where there is no room */
  keep(from: number, length: number): Range | undefined {
    if (this.end + length + SLACK > REGION.items) return undefined;
    const range = { at: this.end, length };
    copyBytes(range.at, from, length);
    this.end += length + 8;
    return range;
  }

  forgetAll(): void {
    this.slots.fill(0);
    this.known = [];
    this.end = REGION.texts;
    this.generation += 1;
  }

  private add(start: number, length: number, hash: number, slot: number): KnownText {
    const hasRoom = this.known.length < MAX_TEXTS && this.end + length + SLACK <= REGION.items;
    if (!hasRoom) return new KnownText(-1, start, length);
    copyText(this.end, start, length);
    const known = new KnownText(this.known.length, this.end, length);
    this.end += length + 8;
    this.known.push(known);
    this.slots[slot] = (hash & ~NUMBER_BITS) | this.known.length;
    return known;
  }
}

/** What somebody made of remembered texts: a pure function of the text, or it says what else it depends on. */
export class TextMemo<V> {
  private values: (V | undefined)[] = [];
  private generation = 0;

  get({ number }: KnownText): V | undefined {
    return this.generation === texts.generation ? this.values[number] : undefined;
  }

  /** Remembers it, where the text is. */
  set({ number }: KnownText, value: V): void {
    if (this.generation !== texts.generation) {
      this.values = [];
      this.generation = texts.generation;
    }
    if (number < 0) return;
    // Without holes an array stays one.
    while (this.values.length < number) this.values.push(undefined);
    this.values[number] = value;
  }
}

/** Those of this thread: they share the room for them. */
export const texts = new Texts();
