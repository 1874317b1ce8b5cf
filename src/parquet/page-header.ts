/** What a page of a Parquet file says of itself, as far as it decides on memory. */
export interface PageHeader {
  /** Length of the header itself, in bytes. */
  readonly headerBytes: number;
  /** Of the page after the header, as it lies in the file. */
  readonly compressedBytes: number;
  readonly uncompressedBytes: number;
  /** Values, nulls among them; of a dictionary its entries. */
  readonly valueCount: number;
}

/** Field numbers of parquet.thrift's PageHeader, and of the three kinds of headers within it. */
const UNCOMPRESSED = 2;
const COMPRESSED = 3;
const KINDS: ReadonlySet<number> = new Set([5, 7, 8]);
const VALUE_COUNT = 1;

/** Types of Thrift's compact protocol (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md). */
const TYPE = {
  stop: 0,
  true: 1,
  false: 2,
  byte: 3,
  i16: 4,
  i32: 5,
  i64: 6,
  double: 7,
  binary: 8,
  list: 9,
  set: 10,
  struct: 12,
};

/**
 * Reads a page's header.
 * @param bytes begin with it; what comes after it does not matter
 * @throws RangeError when it does not end within `bytes`, or is none.
 */
export function parsePageHeader(bytes: Uint8Array): PageHeader {
  const reader = new CompactReader(bytes);
  let [uncompressedBytes, compressedBytes, valueCount] = [-1, -1, 0];
  reader.eachField((field, type) => {
    if (field === UNCOMPRESSED && type === TYPE.i32) uncompressedBytes = reader.zigZag();
    else if (field === COMPRESSED && type === TYPE.i32) compressedBytes = reader.zigZag();
    else if (KINDS.has(field) && type === TYPE.struct) {
      reader.eachField((inner, innerType) => {
        if (inner === VALUE_COUNT && innerType === TYPE.i32) valueCount = reader.zigZag();
        else reader.skip(innerType);
      });
    } else reader.skip(type);
  });
  if (uncompressedBytes < 0 || compressedBytes < 0 || valueCount < 0) throw new RangeError('not the header of a page');
  return { headerBytes: reader.offset, compressedBytes, uncompressedBytes, valueCount };
}

/** Levels of nesting that are followed; a real header has three. */
const MAX_DEPTH = 16;

class CompactReader {
  offset = 0;
  private depth = 0;

  constructor(private readonly bytes: Uint8Array) {}

  /** Calls `read` for each field of a struct; it reads or skips the value. */
  eachField(read: (field: number, type: number) => void): void {
    if (++this.depth > MAX_DEPTH) throw new RangeError('nested too deep');
    for (let field = 0; ; ) {
      const byte = this.byte();
      const type = byte & 0x0f;
      if (type === TYPE.stop) break;
      field = byte >> 4 === 0 ? this.zigZag() : field + (byte >> 4);
      read(field, type);
    }
    this.depth -= 1;
  }

  skip(type: number): void {
    if (type === TYPE.true || type === TYPE.false) return;
    if (type === TYPE.byte) this.advance(1);
    else if (type === TYPE.i16 || type === TYPE.i32 || type === TYPE.i64) this.varint();
    else if (type === TYPE.double) this.advance(8);
    else if (type === TYPE.binary) this.advance(this.varint());
    else if (type === TYPE.list || type === TYPE.set) this.skipList();
    else if (type === TYPE.struct) this.eachField((_, inner) => this.skip(inner));
    else throw new RangeError(`an unknown type ${type}`);
  }

  /** A signed number; exact for the 32 bits that sizes have. */
  zigZag(): number {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  private skipList(): void {
    const byte = this.byte();
    const count = byte >> 4 === 15 ? this.varint() : byte >> 4;
    const type = byte & 0x0f;
    // In a list a boolean takes a byte.
    for (let index = 0; index < count; index++) this.skip(type === TYPE.true || type === TYPE.false ? TYPE.byte : type);
  }

  private varint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      if (scale > 2 ** 63) throw new RangeError('a number that does not end');
    }
  }

  private byte(): number {
    const byte = this.bytes[this.offset];
    if (byte === undefined) throw new RangeError('the header does not end');
    this.offset += 1;
    return byte;
  }

  private advance(count: number): void {
    this.offset += count;
    if (!(this.offset <= this.bytes.byteLength)) throw new RangeError('the header does not end');
  }
}
