/** Bytes that are written to by position and grow as needed. */
export class GrowingBytes {
  bytes: Buffer;
  /** Where the next byte goes. */
  length = 0;

  constructor(sizeBytes: number) {
    this.bytes = Buffer.allocUnsafeSlow(sizeBytes);
  }

  /** Makes room for so many bytes more. */
  reserve(byteCount: number): void {
    if (this.length + byteCount <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.bytes.length * 2, this.length + byteCount));
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }
}
