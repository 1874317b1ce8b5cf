import { randomInt } from 'node:crypto';

/** Bytes that a line is compared with, four at a time: most of a line's bytes are keys that stand where they are expected. */
export class Literal {
  readonly length: number;
  private readonly words: Int32Array;

  /** @param text ASCII, at least four characters. */
  constructor(readonly text: string) {
    const bytes = Buffer.from(text, 'latin1');
    if (bytes.length < WORD_BYTES) throw new Error(`${text} is too short to be compared by words`);
    this.length = bytes.length;
    this.words = new Int32Array(Math.ceil(bytes.length / WORD_BYTES));
    // The last word overlaps the one before where the length is no multiple.
    for (let word = 0; word < this.words.length; word++) {
      this.words[word] = bytes.readInt32LE(Math.min(word * WORD_BYTES, bytes.length - WORD_BYTES));
    }
  }

  /** Whether these bytes stand at `at`, all before `end`. */
  isAt(view: DataView, at: number, end: number): boolean {
    if (at + this.length > end) return false;
    const { words } = this;
    const last = words.length - 1;
    for (let word = 0; word < last; word++) {
      if (view.getInt32(at + word * WORD_BYTES, true) !== words[word]) return false;
    }
    return view.getInt32(at + this.length - WORD_BYTES, true) === words[last];
  }
}

const WORD_BYTES = 4;

/** Most texts that are remembered; when there are more, all are forgotten. */
const MAX_TEXTS = 16_384;
const MIN_SLOTS = 1024;

/**
 * Texts by their bytes: most values of a run come many times, and then nothing has to be made of them but a hash. The
 * strings are the same objects each time, whose own hash is known, so that looking them up in a Map is cheap as well.
 */
export class TextTable {
  /** Slots hold the index of a text plus one; 0 is free. */
  private slots = new Uint16Array(MIN_SLOTS);
  private hashes = new Int32Array(MIN_SLOTS);
  private texts: string[] = [];
  private lengths: number[] = [];
  private starts: number[] = [];
  private bytes: Buffer = Buffer.allocUnsafeSlow(8192);
  private view = viewOf(this.bytes);
  private length = 0;
  /** Number of the text that `textOf` gave last, less than `MAX_TEXTS`; -1 for one that is too long to be remembered. */
  index = -1;
  /** How often all were forgotten: numbers are those of other texts then. */
  forgottenCount = 0;

  /**
   * @param maxBytes of texts that are remembered; when there are more, all are forgotten. @param maxTextBytes longer ones never are
   * @param seed any 32 bits, so that nobody can choose texts that all meet in one place; what comes out does not depend on it.
   */
  constructor(
    private readonly maxBytes = 1024 * 1024,
    private readonly maxTextBytes = 256,
    private readonly seed: number = randomInt(2 ** 32) | 0,
  ) {}

  /**
   * The text of these bytes: ASCII, or (where it is quoted) a JSON text.
   * @param view of `from`
   * @throws SyntaxError for a quoted text that is no JSON
   */
  textOf(from: Buffer, view: DataView, start: number, end: number): string {
    this.index = -1;
    if (end - start > this.maxTextBytes) return read(from, start, end);
    const hash = hashOf(this.seed, from, view, start, end);
    const mask = this.slots.length - 1;
    let slot = (hash ^ (hash >>> 15)) & mask;
    for (let index = this.slots[slot] as number; index !== 0; index = this.slots[slot] as number) {
      if (this.hashes[slot] === hash && this.isSame(index - 1, from, view, start, end)) return this.found(index - 1);
      slot = (slot + 1) & mask;
    }
    return this.add(hash, from, start, end);
  }

  private found(index: number): string {
    this.index = index;
    return this.texts[index] as string;
  }

  private isSame(index: number, from: Buffer, view: DataView, start: number, end: number): boolean {
    const length = end - start;
    if (this.lengths[index] !== length) return false;
    const own = this.starts[index] as number;
    let at = 0;
    for (; at + 4 <= length; at += 4) {
      if (this.view.getInt32(own + at) !== view.getInt32(start + at)) return false;
    }
    for (; at < length; at++) if (this.bytes[own + at] !== from[start + at]) return false;
    return true;
  }

  private add(hash: number, from: Buffer, start: number, end: number): string {
    const text = read(from, start, end);
    if (this.texts.length >= MAX_TEXTS || this.length + end - start > this.maxBytes) this.forgetAll();
    if (2 * (this.texts.length + 1) > this.slots.length) this.growSlots();
    if (this.length + end - start > this.bytes.length) {
      this.bytes = Buffer.concat([this.bytes, Buffer.allocUnsafeSlow(this.bytes.length)]);
      this.view = viewOf(this.bytes);
    }
    this.index = this.texts.length;
    this.put(hash, this.index);
    this.texts.push(text);
    this.starts.push(this.length);
    this.lengths.push(end - start);
    for (let at = start; at < end; at++) this.bytes[this.length++] = from[at] as number;
    return text;
  }

  private put(hash: number, index: number): void {
    const mask = this.slots.length - 1;
    let slot = (hash ^ (hash >>> 15)) & mask;
    while (this.slots[slot] !== 0) slot = (slot + 1) & mask;
    this.slots[slot] = index + 1;
    this.hashes[slot] = hash;
  }

  private growSlots(): void {
    const { slots, hashes } = this;
    this.slots = new Uint16Array(2 * slots.length);
    this.hashes = new Int32Array(2 * hashes.length);
    // An iterator's pair for each slot would be most of what it costs.
    for (let slot = 0; slot < slots.length; slot++) {
      const index = slots[slot] as number;
      if (index !== 0) this.put(hashes[slot] as number, index - 1);
    }
  }

  private forgetAll(): void {
    this.slots.fill(0);
    this.texts = [];
    this.starts = [];
    this.lengths = [];
    this.forgottenCount++;
    this.length = 0;
  }
}

/** A plain text cannot begin with a quote. */
function read(from: Buffer, start: number, end: number): string {
  if (end > start && from[start] === QUOTE) return JSON.parse(from.toString('utf8', start, end)) as string;
  return from.toString('latin1', start, end);
}

const QUOTE = 0x22;

/** Four bytes at a time, which is most of what makes this cheaper than making a string. */
function hashOf(seed: number, from: Buffer, view: DataView, start: number, end: number): number {
  let hash = seed ^ (end - start);
  let at = start;
  for (; at + 4 <= end; at += 4) {
    hash = Math.imul(hash ^ view.getInt32(at), 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  for (; at < end; at++) hash = (Math.imul(hash, 31) + (from[at] as number)) | 0;
  return hash;
}

function viewOf(bytes: Buffer): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Which texts of a table a run was taught as names. */
export class TaughtNames {
  /** 1 for each that was, by their numbers. */
  private marks = new Uint8Array(MIN_MARKS);
  private forgottenCount = 0;

  constructor(private readonly texts: TextTable) {}

  /** Whether the text that the table gave last was not marked before; marks it. */
  isNew(): boolean {
    const { index, forgottenCount } = this.texts;
    if (index < 0) return true;
    if (forgottenCount !== this.forgottenCount) {
      this.forgottenCount = forgottenCount;
      this.marks.fill(0);
    }
    if (index >= this.marks.length) this.grow(index);
    if (this.marks[index] === 1) return false;
    this.marks[index] = 1;
    return true;
  }

  private grow(index: number): void {
    const { marks } = this;
    this.marks = new Uint8Array(Math.min(MAX_TEXTS, 2 * Math.max(index, marks.length)));
    this.marks.set(marks);
  }
}

const MIN_MARKS = 1024;
