/**
 * Bytes, and the view through which four or eight of them are read at once, wherever they begin: that is what makes
 * comparing and hashing several times as fast as byte by byte.
 */
export class ByteSource {
  readonly view: DataView;

  constructor(readonly bytes: Buffer) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** A text as UTF-8. */
  static of(text: string): ByteSource {
    return new ByteSource(Buffer.from(text));
  }
}

/** Up to this many bytes a loop copies faster than the call of a native function. */
const LOOP_BYTES = 512;

/** Bytes that grow: one allocation is reused page after page. Numbers are little-endian, as Parquet's are. */
export class ByteBuffer {
  private buffer: Buffer;
  private view: DataView;
  private memory: ByteSource;
  private end = 0;

  constructor(initialBytes = 256) {
    this.memory = new ByteSource(Buffer.allocUnsafeSlow(initialBytes));
    this.buffer = this.memory.bytes;
    this.view = this.memory.view;
  }

  get length(): number {
    return this.end;
  }

  /** What was appended lies at its beginning; valid until the next append. */
  get source(): ByteSource {
    return this.memory;
  }

  /** What was appended; valid until the next append or clear. */
  content(): Buffer {
    return this.buffer.subarray(0, this.end);
  }

  clear(): void {
    this.end = 0;
  }

  appendUint8(value: number): void {
    this.ensure(1);
    this.buffer[this.end++] = value;
  }

  appendUint32(value: number): void {
    this.ensure(4);
    this.end += 4;
    this.setUint32(this.end - 4, value);
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
    this.ensure(length);
    if (length <= LOOP_BYTES) this.copyWords(source, start, end);
    else this.buffer.set(source.bytes.subarray(start, end), this.end);
    this.end += length;
  }

  appendText(text: string): void {
    this.ensure(text.length * 3);
    this.end += this.buffer.write(text, this.end, 'utf8');
  }

  /** Sets one bit of the byte `offset`, which must have been appended. */
  setBit(offset: number, bit: number): void {
    this.buffer[offset] = (this.buffer[offset] ?? 0) | (1 << bit);
  }

  private copyWords({ bytes, view: from }: ByteSource, start: number, end: number): void {
    const { buffer, view } = this;
    let to = this.end;
    let at = start;
    for (; at + 4 <= end; at += 4, to += 4) view.setInt32(to, from.getInt32(at, true), true);
    for (; at < end; at++, to++) buffer[to] = bytes[at] ?? 0;
  }

  private ensure(additionalBytes: number): void {
    const needed = this.end + additionalBytes;
    if (needed <= this.buffer.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.buffer.length * 2));
    this.buffer.copy(grown, 0, 0, this.end);
    this.memory = new ByteSource(grown);
    this.buffer = grown;
    this.view = this.memory.view;
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

  push(value: number): void {
    if (this.end === this.items.length) this.grow(this.end + 1);
    this.items[this.end++] = value;
  }

  /** Appends one value `count` times. */
  pushMany(value: number, count: number): void {
    if (this.end + count > this.items.length) this.grow(this.end + count);
    this.items.fill(value, this.end, this.end + count);
    this.end += count;
  }

  clear(): void {
    this.end = 0;
  }

  private grow(needed: number): void {
    const grown = new Uint32Array(Math.max(needed, this.items.length * 2));
    grown.set(this.items);
    this.items = grown;
  }
}
