/** Bytes with a view, through which four or eight of them are read at once wherever they begin: several times as fast as byte by byte. */
export class ByteSource {
  readonly view: DataView;

  constructor(readonly bytes: Buffer) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** A text as UTF-8. */
  static of(text: string): ByteSource {
    return new ByteSource(Buffer.from(text));
  }
}

/** Bytes that are written to by position and grow as needed. */
export class GrowingBytes {
  /** The bytes with their view; others after they grew. */
  source: ByteSource;
  bytes: Buffer;
  view: DataView;
  /** Where the next byte goes. */
  length = 0;

  constructor(sizeBytes: number) {
    this.source = new ByteSource(Buffer.allocUnsafeSlow(sizeBytes));
    this.bytes = this.source.bytes;
    this.view = this.source.view;
  }

  /** Makes room for so many bytes more. */
  reserve(byteCount: number): void {
    const needed = this.length + byteCount;
    if (needed > this.bytes.length) this.grow(needed);
  }

  private grow(needed: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.bytes.length));
    this.bytes.copy(larger, 0, 0, this.length);
    this.source = new ByteSource(larger);
    this.bytes = larger;
    this.view = this.source.view;
  }
}

/** A copy of an array of numbers that is twice as long, or as long as needed where that is more; zeros are added. */
export function grown<A extends Uint8Array | Uint16Array | Uint32Array | Int32Array>(array: A, neededLength = 0): A {
  const ArrayOfKind = array.constructor as new (length: number) => A;
  const larger = new ArrayOfKind(Math.max(neededLength, 2 * array.length));
  larger.set(array);
  return larger;
}
