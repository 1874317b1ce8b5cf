/** Up to this many bytes a loop copies faster than the call of a native function. */
const LOOP_BYTES = 64;

/** Bytes that grow: one allocation is reused page after page. Numbers are little-endian, as Parquet's are. */
export class ByteBuffer {
  private buffer: Buffer;
  private end = 0;

  constructor(initialBytes = 256) {
    this.buffer = Buffer.allocUnsafeSlow(initialBytes);
  }

  get length(): number {
    return this.end;
  }

  /** What was appended lies at its beginning; valid until the next append. */
  get bytes(): Buffer {
    return this.buffer;
  }

  /** What was appended; valid until the next append or clear. */
  view(): Buffer {
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
    const { buffer } = this;
    buffer[offset] = value;
    buffer[offset + 1] = value >>> 8;
    buffer[offset + 2] = value >>> 16;
    buffer[offset + 3] = value >>> 24;
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
  appendBytes(source: Uint8Array, start = 0, end = source.length): void {
    const length = end - start;
    this.ensure(length);
    const { buffer, end: at } = this;
    if (length <= LOOP_BYTES) for (let i = 0; i < length; i++) buffer[at + i] = source[start + i] ?? 0;
    else buffer.set(source.subarray(start, end), at);
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

  private ensure(additionalBytes: number): void {
    const needed = this.end + additionalBytes;
    if (needed <= this.buffer.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.buffer.length * 2));
    this.buffer.copy(grown, 0, 0, this.end);
    this.buffer = grown;
  }
}
