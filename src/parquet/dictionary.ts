import { type ByteSource, grown } from '../core/bytes.js';
import { ByteBuffer } from './bytes.js';

/** Slots looked at before the dictionary is called crowded: only made-up values with equal hashes come that far. */
const MAX_PROBES = 64;

/**
 * The distinct texts of a column chunk as UTF-8, each with its index: found by a hash of the bytes, so that no string has
 * to be made for a text that is there already.
 */
export class TextDictionary {
  /** The texts one after another, each behind its length in four bytes, as a dictionary page holds them. */
  readonly values = new ByteBuffer(1024);
  count = 0;
  /** Too many texts have the same hash; looking for more would take long. */
  isCrowded = false;
  private table = new Int32Array(64);
  private hashes = new Int32Array(32);
  private starts = new Uint32Array(32);
  private lengths = new Uint32Array(32);
  private last = 0;
  private least = 0;
  private greatest = 0;

  /** The text's index; a new text gets the next one. It lies in `source` from `start` to `end`. */
  indexOf(source: ByteSource, start: number, end: number): number {
    // Neighbours often hold the same text.
    if (this.count > 0 && this.isAt(this.last, source, start, end - start)) return this.last;
    const hash = hashOfText(source, start, end);
    const mask = this.table.length - 1;
    let slot = hash & mask;
    for (let probes = 0; ; probes++) {
      const index = (this.table[slot] ?? 0) - 1;
      if (index < 0) break;
      if (this.hashes[index] === hash && this.isAt(index, source, start, end - start)) {
        this.last = index;
        return index;
      }
      if (probes > MAX_PROBES) this.isCrowded = true;
      slot = (slot + 1) & mask;
    }
    return this.add(hash, source, start, end);
  }

  /** The least or greatest text by its bytes, which is the order that Parquet means; a copy. */
  bounds(): { readonly least: Uint8Array; readonly greatest: Uint8Array } | undefined {
    if (this.count === 0) return undefined;
    return { least: this.copyOf(this.least), greatest: this.copyOf(this.greatest) };
  }

  clear(): void {
    this.values.clear();
    this.table.fill(0);
    this.count = 0;
    this.isCrowded = false;
  }

  private isAt(index: number, { bytes, view }: ByteSource, start: number, length: number): boolean {
    if (this.lengths[index] !== length) return false;
    const { bytes: knownBytes, view: known } = this.values.source;
    const knownStart = this.starts[index] ?? 0;
    // From the end: names of one kind begin alike.
    let left = length;
    for (; left >= 4; left -= 4) {
      if (known.getInt32(knownStart + left - 4, true) !== view.getInt32(start + left - 4, true)) return false;
    }
    for (left--; left >= 0; left--) if (knownBytes[knownStart + left] !== bytes[start + left]) return false;
    return true;
  }

  private add(hash: number, source: ByteSource, start: number, end: number): number {
    if (this.count === this.hashes.length) this.grow();
    const index = this.count++;
    this.values.appendUint32(end - start);
    this.hashes[index] = hash;
    this.starts[index] = this.values.length;
    this.lengths[index] = end - start;
    this.values.appendBytes(source, start, end);
    this.insert(index);
    if (index === 0 || this.compare(index, this.least) < 0) this.least = index;
    if (index === 0 || this.compare(index, this.greatest) > 0) this.greatest = index;
    this.last = index;
    return index;
  }

  /** Doubles the room; the table stays at most half full. */
  private grow(): void {
    this.hashes = grown(this.hashes);
    this.starts = grown(this.starts);
    this.lengths = grown(this.lengths);
    this.table = new Int32Array(this.table.length * 2);
    for (let index = 0; index < this.count; index++) this.insert(index);
  }

  private insert(index: number): void {
    const mask = this.table.length - 1;
    let slot = (this.hashes[index] ?? 0) & mask;
    while (this.table[slot] !== 0) slot = (slot + 1) & mask;
    this.table[slot] = index + 1;
  }

  private compare(index: number, other: number): number {
    const { bytes } = this.values.source;
    const start = this.starts[index] ?? 0;
    const otherStart = this.starts[other] ?? 0;
    const length = this.lengths[index] ?? 0;
    const otherLength = this.lengths[other] ?? 0;
    const common = Math.min(length, otherLength);
    for (let i = 0; i < common; i++) {
      const difference = (bytes[start + i] ?? 0) - (bytes[otherStart + i] ?? 0);
      if (difference !== 0) return difference;
    }
    return length - otherLength;
  }

  private copyOf(index: number): Uint8Array {
    const start = this.starts[index] ?? 0;
    return Uint8Array.prototype.slice.call(this.values.source.bytes, start, start + (this.lengths[index] ?? 0));
  }
}

/** Four bytes at a time; the shift brings high bits, which a product leaves alone, down to where the table looks. */
function hashOfText({ bytes, view }: ByteSource, start: number, end: number): number {
  let hash = end - start;
  let at = start;
  for (; at + 4 <= end; at += 4) {
    hash = Math.imul(hash ^ view.getInt32(at, true), 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  for (; at < end; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return hash ^ (hash >>> 13);
}

/** The distinct numbers of a column chunk, each with its index. A number is two halves of 32 bits, since bigints are slow. */
export class NumberDictionary {
  /** The numbers one after another, as a dictionary page holds them. */
  readonly values = new ByteBuffer(1024);
  count = 0;
  /** Too many numbers have the same hash; looking for more would take long. */
  isCrowded = false;
  private table = new Int32Array(64);
  private highs = new Uint32Array(32);
  private last = 0;
  private lows = new Uint32Array(32);

  /** @param byteCount 4 or 8; with 4 the high half is not written */
  constructor(private readonly byteCount: 4 | 8) {}

  /** The number's index; a new one gets the next. The halves are unsigned. */
  indexOf(high: number, low: number): number {
    // Neighbours often hold the same number.
    if (this.count > 0 && this.lows[this.last] === low && this.highs[this.last] === high) return this.last;
    const mask = this.table.length - 1;
    let slot = hashOfNumber(high, low) & mask;
    for (let probes = 0; ; probes++) {
      const index = (this.table[slot] ?? 0) - 1;
      if (index < 0) return this.add(high, low);
      if (this.lows[index] === low && this.highs[index] === high) {
        this.last = index;
        return index;
      }
      if (probes > MAX_PROBES) this.isCrowded = true;
      slot = (slot + 1) & mask;
    }
  }

  clear(): void {
    this.values.clear();
    this.table.fill(0);
    this.count = 0;
    this.isCrowded = false;
  }

  private add(high: number, low: number): number {
    if (this.count === this.lows.length) this.grow();
    const index = this.count++;
    this.highs[index] = high;
    this.lows[index] = low;
    this.last = index;
    this.values.appendUint32(low);
    if (this.byteCount === 8) this.values.appendUint32(high);
    this.insert(index);
    return index;
  }

  /** Doubles the room; the table stays at most half full. */
  private grow(): void {
    this.highs = grown(this.highs);
    this.lows = grown(this.lows);
    this.table = new Int32Array(this.table.length * 2);
    for (let index = 0; index < this.count; index++) this.insert(index);
  }

  private insert(index: number): void {
    const mask = this.table.length - 1;
    let slot = hashOfNumber(this.highs[index] ?? 0, this.lows[index] ?? 0) & mask;
    while (this.table[slot] !== 0) slot = (slot + 1) & mask;
    this.table[slot] = index + 1;
  }
}

function hashOfNumber(high: number, low: number): number {
  let hash = Math.imul(low ^ Math.imul(high, 0x85ebca6b), 0x9e3779b1);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return hash ^ (hash >>> 13);
}
