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
