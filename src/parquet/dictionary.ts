import { type ByteSource, grown, HashSlots, hashOfBytes, isSameBytes } from '../core/bytes.js';
import { ByteBuffer } from './bytes.js';

/**
 * The distinct texts of a column chunk as UTF-8, each with its index: found by a hash of the bytes, so that no string has
 * to be made for a text that is there already.
 */
export class TextDictionary {
  /** The texts one after another, each behind its length in four bytes, as a dictionary page holds them. */
  readonly values = new ByteBuffer(1024);
  private readonly slots = new HashSlots();
  private starts = new Uint32Array(32);
  private lengths = new Uint32Array(32);
  /** Index of the text that was found or added last. */
  last = 0;
  private least = 0;
  private greatest = 0;

  /** The text's index; a new text gets the next one. It lies in `source` from `start` to `end`. */
  indexOf(source: ByteSource, start: number, end: number): number {
    // Neighbours often hold the same text.
    if (this.count > 0 && this.isAt(this.last, source, start, end - start)) return this.last;
    const { slots } = this;
    const hash = hashOfBytes(source.bytes, source.view, start, end, 0);
    for (let index = slots.seek(hash); index >= 0; index = slots.next()) {
      if (this.isAt(index, source, start, end - start)) {
        this.last = index;
        return index;
      }
    }
    return this.add(source, start, end);
  }

  get count(): number {
    return this.slots.count;
  }

  /** Too many texts have the same hash; looking for more would take long. */
  get isCrowded(): boolean {
    return this.slots.isCrowded;
  }

  /** The least or greatest text by its bytes, which is the order that Parquet means; a copy. */
  bounds(): { readonly least: Uint8Array; readonly greatest: Uint8Array } | undefined {
    if (this.count === 0) return undefined;
    return { least: this.copyOf(this.least), greatest: this.copyOf(this.greatest) };
  }

  clear(): void {
    this.values.clear();
    this.slots.clear();
  }

  private isAt(index: number, { bytes, view }: ByteSource, start: number, length: number): boolean {
    if (this.lengths[index] !== length) return false;
    return isSameBytes(this.values.source, this.starts[index] as number, bytes, view, start, length);
  }

  private add(source: ByteSource, start: number, end: number): number {
    const index = this.slots.add();
    if (index === this.starts.length) {
      this.starts = grown(this.starts);
      this.lengths = grown(this.lengths);
    }
    this.values.appendUint32(end - start);
    this.starts[index] = this.values.length;
    this.lengths[index] = end - start;
    this.values.appendBytes(source, start, end);
    if (index === 0 || this.compare(index, this.least) < 0) this.least = index;
    if (index === 0 || this.compare(index, this.greatest) > 0) this.greatest = index;
    this.last = index;
    return index;
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

/** The distinct numbers of a column chunk, each with its index. A number is two halves of 32 bits, since bigints are slow. */
export class NumberDictionary {
  /** The numbers one after another, as a dictionary page holds them. */
  readonly values = new ByteBuffer(1024);
  private readonly slots = new HashSlots();
  private highs = new Int32Array(32);
  /** Index of the number that was found or added last. */
  last = 0;
  private lows = new Int32Array(32);

  /** @param byteCount 4 or 8; with 4 the high half is not written */
  constructor(private readonly byteCount: 4 | 8) {}

  /** The number's index; a new one gets the next. The halves are signed. */
  indexOf(high: number, low: number): number {
    // Neighbours often hold the same number.
    if (this.count > 0 && this.lows[this.last] === low && this.highs[this.last] === high) return this.last;
    const { slots } = this;
    for (let index = slots.seek(hashOfNumber(high, low)); index >= 0; index = slots.next()) {
      if (this.lows[index] === low && this.highs[index] === high) {
        this.last = index;
        return index;
      }
    }
    return this.add(high, low);
  }

  get count(): number {
    return this.slots.count;
  }

  /** Too many numbers have the same hash; looking for more would take long. */
  get isCrowded(): boolean {
    return this.slots.isCrowded;
  }

  clear(): void {
    this.values.clear();
    this.slots.clear();
  }

  private add(high: number, low: number): number {
    const index = this.slots.add();
    if (index === this.lows.length) {
      this.highs = grown(this.highs);
      this.lows = grown(this.lows);
    }
    this.highs[index] = high;
    this.lows[index] = low;
    this.last = index;
    this.values.appendUint32(low);
    if (this.byteCount === 8) this.values.appendUint32(high);
    return index;
  }
}

function hashOfNumber(high: number, low: number): number {
  let hash = Math.imul(low ^ Math.imul(high, 0x85ebca6b), 0x9e3779b1);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return hash ^ (hash >>> 13);
}
