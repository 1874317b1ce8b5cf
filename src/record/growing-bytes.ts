/** Bytes that are written to by position and grow as needed. */
export class GrowingBytes {
  bytes: Buffer;
  /** Of the same bytes. */
  view: DataView;
  /** Where the next byte goes. */
  length = 0;

  constructor(sizeBytes: number) {
    this.bytes = Buffer.allocUnsafeSlow(sizeBytes);
    this.view = viewOf(this.bytes);
  }

  /** Makes room for so many bytes more. */
  reserve(byteCount: number): void {
    if (this.length + byteCount <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.bytes.length * 2, this.length + byteCount));
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
    this.view = viewOf(larger);
  }
}

export function viewOf({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
