import { FIXED32, FIXED64, LENGTH, VARINT } from '../wire-type.js';

/** The bytes are not framed as any encoder frames them; protobufjs reads them (and says what is wrong, if anything) and frames them anew. */
export class UnusualShape extends Error {
  override readonly name = 'UnusualShape';
}

/** Thrown again and again, so that it costs no stack trace. */
export const UNUSUAL = new UnusualShape('framed as no encoder does it');

/** 64 bits in groups of seven. */
const MAX_VARINT_BYTES = 10;

/** Walks over protobuf's wire format. What it meets beyond the usual framing ends it. */
export class WireCursor {
  position = 0;

  constructor(readonly bytes: Buffer) {}

  /** A field's number and wire type. Number 0 is no field's: whoever reads it refuses the whole body. */
  tag(end: number): number {
    const tag = this.varint32(end);
    if (tag >>> 3 === 0) throw UNUSUAL;
    return tag;
  }

  /** A varint below 2^32: tags and lengths. */
  varint32(end: number): number {
    const { bytes } = this;
    let byte = bytes[this.position++] as number;
    if (byte < 0x80 && this.position <= end) return byte;
    let value = byte & 0x7f;
    for (let shift = 7; shift < 28; shift += 7) {
      byte = bytes[this.position++] as number;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80 && this.position <= end) return value;
    }
    throw UNUSUAL;
  }

  /** A 32-bit integer with a sign; a negative one has ten bytes. */
  int32(end: number): number {
    const byte = this.bytes[this.position] as number;
    if (byte >= 0x80 || this.position >= end) return Number(BigInt.asIntN(32, this.int64(end)));
    this.position += 1;
    return byte;
  }

  /** A 64-bit integer with a sign. */
  int64(end: number): bigint {
    const last = Math.min(end, this.position + MAX_VARINT_BYTES);
    let value = 0n;
    for (let shift = 0n; this.position < last; shift += 7n) {
      const byte = this.bytes[this.position++] as number;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, value);
    }
    throw UNUSUAL;
  }

  /** The text of a length-delimited field; what is not UTF-8 in it becomes U+FFFD. */
  text(end: number): string {
    const textEnd = this.lengthEnd(end);
    const text = this.bytes.toString('utf8', this.position, textEnd);
    this.position = textEnd;
    return text;
  }

  /** The end of a length-delimited field that begins here. */
  lengthEnd(end: number): number {
    const fieldEnd = this.varint32(end) + this.position;
    if (fieldEnd > end) throw UNUSUAL;
    return fieldEnd;
  }

  /** Passes over a field's value. */
  skip(wireType: number, end: number): void {
    switch (wireType) {
      case VARINT:
        this.skipVarint(end);
        break;
      case FIXED64:
        this.position += 8;
        break;
      case LENGTH:
        this.position = this.lengthEnd(end);
        break;
      case FIXED32:
        this.position += 4;
        break;
      default:
        throw UNUSUAL;
    }
    if (this.position > end) throw UNUSUAL;
  }

  private skipVarint(end: number): void {
    const last = Math.min(end, this.position + MAX_VARINT_BYTES);
    while ((this.bytes[this.position++] as number) >= 0x80) if (this.position >= last) throw UNUSUAL;
  }
}

/** A protobuf field of wire type 2: tag, length, content. */
export function lengthDelimited(number: number, content: Uint8Array): Buffer {
  const head = [(number << 3) | LENGTH];
  let length = content.length;
  for (; length >= 0x80; length >>>= 7) head.push((length & 0x7f) | 0x80);
  head.push(length);
  return Buffer.concat([Buffer.from(head), content]);
}
