/** Bytes that grow: one allocation is reused page after page. Numbers are little-endian, as Parquet's are. */
export class ByteBuffer {
  private bytes: Buffer;
  private end = 0;

  constructor(initialBytes = 256) {
    this.bytes = Buffer.allocUnsafe(initialBytes);
  }

  get length(): number {
    return this.end;
  }

  /** What was appended; valid until the next append or clear. */
  view(): Buffer {
    return this.bytes.subarray(0, this.end);
  }

  clear(): void {
    this.end = 0;
  }

  appendUint8(value: number): void {
    this.ensure(1);
    this.bytes[this.end++] = value;
  }

  appendUint32(value: number): void {
    this.ensure(4);
    this.end = this.bytes.writeUInt32LE(value >>> 0, this.end);
  }

  appendUint64(value: bigint): void {
    this.ensure(8);
    this.end = this.bytes.writeBigUInt64LE(BigInt.asUintN(64, value), this.end);
  }

  appendVarint(value: number): void {
    let rest = value;
    while (rest > 0x7f) {
      this.appendUint8((rest & 0x7f) | 0x80);
      rest >>>= 7;
    }
    this.appendUint8(rest);
  }

  appendBytes(bytes: Uint8Array): void {
    this.ensure(bytes.length);
    this.bytes.set(bytes, this.end);
    this.end += bytes.length;
  }

  /** UTF-8 behind its length in four bytes: Parquet's PLAIN byte array. */
  appendText(text: string): void {
    this.ensure(4 + text.length * 3);
    const length = this.bytes.write(text, this.end + 4, 'utf8');
    this.bytes.writeUInt32LE(length, this.end);
    this.end += 4 + length;
  }

  /** Sets one bit of the byte `offset`, which must have been appended. */
  setBit(offset: number, bit: number): void {
    this.bytes[offset] = (this.bytes[offset] ?? 0) | (1 << bit);
  }

  private ensure(additionalBytes: number): void {
    const needed = this.end + additionalBytes;
    if (needed <= this.bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(needed, this.bytes.length * 2));
    this.bytes.copy(grown, 0, 0, this.end);
    this.bytes = grown;
  }
}
