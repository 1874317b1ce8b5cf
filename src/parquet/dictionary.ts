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
  /** Of each text where it begins in the values, and its length. */
  private ranges = new Int32Array(64);
  private least = 0;
  private greatest = 0;

  /** The text's index; a new text gets the next one. It lies in `source` from `start` to `end`, and has the hash that `hashOfText` says. */
  indexOf(source: ByteSource, start: number, end: number, hash: number): number {
    const { slots } = this;
    for (let index = slots.seek(hash); index >= 0; index = slots.next()) {
      if (this.isAt(index, source, start, end - start)) return index;
    }
    return this.add(source, start, end);
  }

  /** As that of `HashSlots`. */
  touch(hash: number): number {
    return this.slots.touch(hash);
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
    const { ranges } = this;
    if (ranges[2 * index + 1] !== length) return false;
    return isSameBytes(this.values.source, ranges[2 * index] as number, bytes, view, start, length);
  }

  private add(source: ByteSource, start: number, end: number): number {
    const index = this.slots.add();
    if (2 * index === this.ranges.length) this.ranges = grown(this.ranges);
    this.values.appendUint32(end - start);
    this.ranges[2 * index] = this.values.length;
    this.ranges[2 * index + 1] = end - start;
    this.values.appendBytes(source, start, end);
    if (index === 0 || this.compare(index, this.least) < 0) this.least = index;
    if (index === 0 || this.compare(index, this.greatest) > 0) this.greatest = index;
    return index;
  }

  private compare(index: number, other: number): number {
    const { ranges } = this;
    const { bytes, view } = this.values;
    const start = ranges[2 * index] as number;
    const otherStart = ranges[2 * other] as number;
    const length = ranges[2 * index + 1] as number;
    const otherLength = ranges[2 * other + 1] as number;
    const common = Math.min(length, otherLength);
    let at = 0;
    // Names of one kind begin alike.
    while (at + 4 <= common && view.getInt32(start + at, true) === view.getInt32(otherStart + at, true)) at += 4;
    for (; at < common; at++) {
      const difference = (bytes[start + at] as number) - (bytes[otherStart + at] as number);
      if (difference !== 0) return difference;
    }
    return length - otherLength;
  }

  private copyOf(index: number): Uint8Array {
    const start = this.ranges[2 * index] ?? 0;
    return Uint8Array.prototype.slice.call(this.values.source.bytes, start, start + (this.ranges[2 * index + 1] ?? 0));
  }
}

export function hashOfText({ bytes, view }: ByteSource, start: number, end: number): number {
  return hashOfBytes(bytes, view, start, end, 0);
}

/** The distinct numbers of a column chunk, each with its index. A number is two halves of 32 bits, since bigints are slow. */
export class NumberDictionary {
  /** The numbers one after another, as a dictionary page holds them. */
  readonly values = new ByteBuffer(1024);
  private readonly slots = new HashSlots();

  /** @param byteCount 4 or 8; with 4 the high half is not written */
  constructor(private readonly byteCount: 4 | 8) {}

  /** The number's index; a new one gets the next. The halves are signed; `hashOfNumber` says the hash. */
  indexOf(high: number, low: number, hash: number): number {
    const { slots } = this;
    for (let index = slots.seek(hash); index >= 0; index = slots.next()) {
      if (this.isAt(index, high, low)) return index;
    }
    return this.add(high, low);
  }

  /** As that of `HashSlots`. */
  touch(hash: number): number {
    return this.slots.touch(hash);
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

  private isAt(index: number, high: number, low: number): boolean {
    const { view } = this.values;
    const at = index * this.byteCount;
    return view.getInt32(at, true) === low && (this.byteCount === 4 || view.getInt32(at + 4, true) === high);
  }

  private add(high: number, low: number): number {
    const index = this.slots.add();
    this.values.appendUint32(low);
    if (this.byteCount === 8) this.values.appendUint32(high);
    return index;
  }
}

export function hashOfNumber(high: number, low: number): number {
  let hash = Math.imul(low ^ Math.imul(high, 0x85ebca6b), 0x9e3779b1);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return hash ^ (hash >>> 13);
}
