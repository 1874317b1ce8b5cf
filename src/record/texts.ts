import { randomInt } from 'node:crypto';
import { copyBytes, copyText, hashOf, isSame, type Range, REGION, SLACK, textAt } from './arena.js';
import { Attribute, cell, setCell } from './cells.js';

const SLOTS = 1 << 16;
const MAX_TEXTS = SLOTS >> 1;
/** The bits of a slot that are a text's number plus one; the others are bits of its hash. */
const NUMBER_BITS = SLOTS - 1;
/** Longer texts are not remembered. */
const MAX_TEXT_BYTES = 64 * 1024;

/** A text in the arena. */
export class KnownText {
  private decoded: string | undefined;

  constructor(
    /** Less than `MAX_TEXTS`; -1 if the text is not remembered. */
    readonly number: number,
    /** Its offset in the arena, valid as long as it is remembered; if it is not, as long as the record that it is part of. */
    readonly at: number,
    readonly length: number,
  ) {}

  get text(): string {
    this.decoded ??= textAt(this.at, this.at + this.length);
    return this.decoded;
  }
}

/** With less space than this, all texts are forgotten before the next record, which may need as much. */
const MIN_FREE_TEXTS = 4096;
const MIN_FREE_BYTES = 8 * 1024 * 1024;

/**
 * Remembers the texts of all runs by their bytes: most values of a run occur many times, and then cost only a hash and a comparison. When the table is nearly full, all texts are forgotten between
 * two records. Values that are derived from a text are kept in a `TextMemo`.
 */
class Texts {
  /** Incremented when all texts are forgotten; numbers of an earlier generation are no longer valid. */
  generation = 0;
  /**
   * Each slot has its text's number plus one and the high bits of the text's hash; 0 if it is free. The offsets are in the texts themselves, which are stored in the order of their arrival and mostly
   * arrive in that order again, while slots are far apart.
   */
  private readonly slots = new Int32Array(SLOTS);
  private known: KnownText[] = [];
  private end: number = REGION.texts;
  private readonly seed = randomInt(2 ** 32) | 0;

  /** Forgets all texts if the table is nearly full. No text found or kept before may be in use. */
  tidy(): void {
    const isFull = this.known.length > MAX_TEXTS - MIN_FREE_TEXTS || this.end > REGION.items - MIN_FREE_BYTES;
    if (isFull) this.forgetAll();
  }

  /** Returns the text of an attribute of the current record; the lookup is done once and stored in its cells. @param attribute its first cell */
  ofAttribute(attribute: number): KnownText {
    const start = cell(attribute + Attribute.valueStart);
    const length = cell(attribute + Attribute.valueEnd) - start;
    const number = cell(attribute + Attribute.text);
    const known = number > 0 && number <= this.known.length ? this.known[number - 1] : undefined;
    // After all texts were forgotten, the number may belong to another text.
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

  /** Copies bytes that are kept as long as the texts are remembered. @returns `undefined` if there is no room */
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

/** Caches values derived from remembered texts. A value has to depend on the text alone, or say what else it depends on. */
export class TextMemo<V> {
  private values: (V | undefined)[] = [];
  private generation = 0;

  get({ number }: KnownText): V | undefined {
    return this.generation === texts.generation ? this.values[number] : undefined;
  }

  /** Stores a value if the text is remembered. */
  set({ number }: KnownText, value: V): void {
    if (this.generation !== texts.generation) {
      this.values = [];
      this.generation = texts.generation;
    }
    if (number < 0) return;
    // V8 keeps an array without holes in a compact form.
    while (this.values.length < number) this.values.push(undefined);
    this.values[number] = value;
  }
}

/** The texts of this thread, which share one region of the arena. */
export const texts = new Texts();
