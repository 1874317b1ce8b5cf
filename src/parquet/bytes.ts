import { type ByteSource, GrowingBytes, grown } from '../core/bytes.js';

/** Up to this many bytes a loop copies faster than the call of a native function. */
const LOOP_BYTES = 512;

/** Bytes that grow: one allocation is reused page after page. Numbers are little-endian, as Parquet's are. */
export class ByteBuffer extends GrowingBytes {
  constructor(initialBytes = 256) {
    super(initialBytes);
  }

  /** What was appended; valid until the next append or clear. */
  content(): Buffer {
    return this.bytes.subarray(0, this.length);
  }

  clear(): void {
    this.length = 0;
  }

  appendUint8(value: number): void {
    this.reserve(1);
    this.bytes[this.length++] = value;
  }

  appendUint32(value: number): void {
    this.reserve(4);
    this.length += 4;
    this.setUint32(this.length - 4, value);
  }

  /** Overwrites four bytes that were appended. */
  setUint32(offset: number, value: number): void {
    this.view.setUint32(offset, value, true);
  }

  appendVarint(value: number): void {
    let rest = value;
    while (rest > 0x7f) {
      this.appendUint8((rest & 0x7f) | 0x80);
      rest >>>= 7;
    }
    this.appendUint8(rest);
  }

  /** Appends `source` from `start` to `end`, all of it by default. */
  appendBytes(source: ByteSource, start = 0, end = source.bytes.length): void {
    const length = end - start;
    this.reserve(length);
    if (length <= LOOP_BYTES) this.copyWords(source, start, end);
    else this.bytes.set(source.bytes.subarray(start, end), this.length);
    this.length += length;
  }

  appendText(text: string): void {
    this.reserve(text.length * 3);
    this.length += this.bytes.write(text, this.length, 'utf8');
  }

  /** Sets one bit of the byte `offset`, which must have been appended. */
  setBit(offset: number, bit: number): void {
    this.bytes[offset] = (this.bytes[offset] ?? 0) | (1 << bit);
  }

  private copyWords({ bytes, view: from }: ByteSource, start: number, end: number): void {
    const { bytes: own, view } = this;
    let to = this.length;
    let at = start;
    for (; at + 8 <= end; at += 8, to += 8) {
      view.setInt32(to, from.getInt32(at, true), true);
      view.setInt32(to + 4, from.getInt32(at + 4, true), true);
    }
    for (; at + 4 <= end; at += 4, to += 4) view.setInt32(to, from.getInt32(at, true), true);
    for (; at < end; at++, to++) own[to] = bytes[at] ?? 0;
  }
}

/** Numbers that are appended one by one; the allocation is reused from page to page. */
export class Uint32List {
  private items = new Uint32Array(64);
  private end = 0;

  get length(): number {
    return this.end;
  }

  /** The first `length` of these are the numbers; valid until the next one is appended. */
  get values(): Uint32Array {
    return this.items;
  }

  /** Appends a value, as many times as said. @param times 1 or 2 */
  push(value: number, times: number): void {
    const { end } = this;
    if (end + 2 > this.items.length) this.items = grown(this.items);
    const { items } = this;
    items[end] = value;
    // What stands behind the last one does not count.
    items[end + 1] = value;
    this.end = end + times;
  }

  /** Appends one value `count` times. */
  pushMany(value: number, count: number): void {
    if (this.end + count > this.items.length) this.items = grown(this.items, this.end + count);
    for (const end = this.end + count; this.end < end; this.end++) this.items[this.end] = value;
  }

  clear(): void {
    this.end = 0;
  }
}
