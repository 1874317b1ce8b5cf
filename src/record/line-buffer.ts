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

/** Bytes of JSONL lines being assembled; grows as needed. Written to by position, without a string in between. */
export class LineBuffer extends GrowingBytes {
  /** What texts were read from last: mostly a request, of all of whose texts one view does. */
  private source: Buffer = EMPTY;
  private sourceView = viewOf(EMPTY);

  /** Text that is known to be ASCII and to need no escape. */
  ascii(text: string): void {
    const { bytes } = this;
    let at = this.length;
    for (let index = 0; index < text.length; index++) bytes[at++] = text.charCodeAt(index);
    this.length = at;
  }

  /** Bytes as they are; short ones, so a loop beats a call. */
  copy(from: Uint8Array): void {
    const { bytes } = this;
    let at = this.length;
    for (let index = 0; index < from.length; index++) bytes[at++] = from[index] as number;
    this.length = at;
  }

  /** Bytes as they are; so many that a call beats a loop. */
  copyLong(from: Uint8Array): void {
    this.bytes.set(from, this.length);
    this.length += from.length;
  }

  /** A part of other bytes as it is. */
  copyFrom(from: Buffer, start: number, end: number): void {
    from.copy(this.bytes, this.length, start, end);
    this.length += end - start;
  }

  /** A stretch of what was written before, once more. */
  repeat(from: number, to: number): void {
    this.bytes.copyWithin(this.length, from, to);
    this.length += to - from;
  }

  /** Bytes as lowercase hexadecimal. */
  hex(from: Uint8Array, start: number, end: number): void {
    const { bytes } = this;
    let at = this.length;
    for (let index = start; index < end; index++) {
      const byte = from[index] as number;
      bytes[at++] = HEX[byte >> 4] as number;
      bytes[at++] = HEX[byte & 15] as number;
    }
    this.length = at;
  }

  /** An unsigned 64-bit number of two halves, in decimal digits. */
  decimal(low: number, high: number): void {
    // Long division by 1e9 in steps of 16 bits: each intermediate result stays exact in a double.
    let rest = 0;
    let quotient = 0;
    rest = high >>> 16;
    quotient = Math.floor(rest / BILLION);
    rest = (rest % BILLION) * 65_536 + (high & 0xffff);
    quotient = quotient * 65_536 + Math.floor(rest / BILLION);
    rest = (rest % BILLION) * 65_536 + (low >>> 16);
    quotient = quotient * 65_536 + Math.floor(rest / BILLION);
    rest = (rest % BILLION) * 65_536 + (low & 0xffff);
    quotient = quotient * 65_536 + Math.floor(rest / BILLION);
    rest %= BILLION;
    if (quotient === 0) this.ascii(String(rest));
    else {
      this.ascii(String(quotient));
      const { bytes } = this;
      for (let at = this.length + 8; at >= this.length; at--) {
        bytes[at] = 0x30 + (rest % 10);
        rest = Math.floor(rest / 10);
      }
      this.length += 9;
    }
  }

  /**
   * UTF-8 bytes as a JSON string with its quotes; what is not UTF-8 becomes U+FFFD, as reading it as text would make it.
   * Reserves its own room.
   */
  jsonString(from: Buffer, start: number, end: number): void {
    this.reserve((end - start) * 6 + 2);
    const { bytes } = this;
    const begin = this.length;
    let at = begin;
    bytes[at++] = QUOTE;
    const { view } = this;
    const fromView = this.viewOf(from);
    for (let index = start; ; index++) {
      // Four plain bytes at a time: with a high bit, below a blank, a quote or a backslash, one of these differences is negative.
      for (; index + 4 <= end; index += 4, at += 4) {
        const four = fromView.getInt32(index, true);
        const special = four | (four - BLANKS) | ((four ^ QUOTES) - ONES) | ((four ^ BACKSLASHES) - ONES);
        if ((special & HIGH_BITS) !== 0) break;
        view.setInt32(at, four, true);
      }
      while (index < end && KINDS[from[index] as number] === 0) bytes[at++] = from[index++] as number;
      if (index === end) break;
      const byte = from[index] as number;
      const kind = KINDS[byte] as number;
      if (kind === NOT_ASCII) {
        this.utf8(JSON.stringify(from.toString('utf8', start, end)));
        return;
      }
      bytes[at++] = BACKSLASH;
      if (kind === SHORT) bytes[at++] = SHORT_ESCAPES[byte] as number;
      else {
        bytes[at++] = 0x75;
        bytes[at++] = 0x30;
        bytes[at++] = 0x30;
        bytes[at++] = HEX[byte >> 4] as number;
        bytes[at++] = HEX[byte & 15] as number;
      }
    }
    bytes[at++] = QUOTE;
    this.length = at;
  }

  private viewOf(from: Buffer): DataView {
    if (from !== this.source) {
      this.source = from;
      this.sourceView = viewOf(from);
    }
    return this.sourceView;
  }

  /** Any text; reserves its own room. */
  utf8(text: string): void {
    this.reserve(text.length * 3);
    this.length += this.bytes.write(text, this.length, 'utf8');
  }
}

const EMPTY = Buffer.alloc(0);
const BILLION = 1_000_000_000;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const HEX = Buffer.from('0123456789abcdef', 'latin1');
const SHORT_ESCAPES = new Uint8Array(256);
for (const [byte, letter] of [
  [0x08, 'b'],
  [0x09, 't'],
  [0x0a, 'n'],
  [0x0c, 'f'],
  [0x0d, 'r'],
  [QUOTE, '"'],
  [BACKSLASH, '\\'],
] as const) {
  SHORT_ESCAPES[byte] = letter.charCodeAt(0);
}
/** How a byte stands in a JSON string: as it is (0), with a short escape, with a long one, as part of a longer character. */
const SHORT = 1;
const LONG_ESCAPE = 2;
const NOT_ASCII = 3;
/** The same byte four times. */
const ONES = 0x01010101;
const BLANKS = 0x20202020;
const QUOTES = 0x22222222;
const BACKSLASHES = 0x5c5c5c5c;
const HIGH_BITS = 0x80808080;
const KINDS = new Uint8Array(256);
for (let byte = 0; byte < 256; byte++) {
  if (SHORT_ESCAPES[byte] !== 0) KINDS[byte] = SHORT;
  else if (byte < 0x20) KINDS[byte] = LONG_ESCAPE;
  else if (byte >= 0x80) KINDS[byte] = NOT_ASCII;
}

/** Whether the bytes from `start` to `end` are these. By a loop: for the few that ids, keys and names have, a call into the runtime takes longer. */
export function isSame(bytes: Uint8Array, from: Uint8Array, start: number, end: number): boolean {
  if (bytes.length !== end - start) return false;
  for (let index = 0; index < bytes.length; index++) if (bytes[index] !== from[start + index]) return false;
  return true;
}
