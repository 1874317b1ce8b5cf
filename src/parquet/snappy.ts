import type { ByteBuffer, ByteSource } from './bytes.js';

/** Matches are looked for within blocks of this length, so that a place in one fits 16 bits. */
const BLOCK_BYTES = 65_536;
const MAX_TABLE_BITS = 14;
/** Blocks shorter than this, and the last bytes of others, are literals. */
const MARGIN_BYTES = 15;

/**
 * Compresses with Snappy, as https://github.com/google/snappy/blob/main/format_description.txt has it: literals, and copies of
 * what came before in the same block, found by a hash of four bytes.
 */
export class SnappyCompressor {
  /** Where in the block four bytes of a hash were seen last. */
  private readonly table = new Uint16Array(1 << MAX_TABLE_BITS);

  /** Compresses the first `length` bytes of a source and appends them. */
  compress(source: ByteSource, length: number, out: ByteBuffer): void {
    out.appendVarint(length);
    for (let start = 0; start < length; start += BLOCK_BYTES) {
      this.compressBlock(source, start, Math.min(start + BLOCK_BYTES, length), out);
    }
  }

  private compressBlock(source: ByteSource, start: number, end: number, out: ByteBuffer): void {
    const { table } = this;
    const { view } = source;
    const bits = Math.max(8, Math.min(MAX_TABLE_BITS, 32 - Math.clz32(end - start)));
    const shift = 32 - bits;
    table.fill(0, 0, 1 << bits);
    const limit = end - MARGIN_BYTES;
    let literal = start;
    // The longer nothing is found, the larger the steps become.
    let misses = 32;
    for (let at = start + 1; at < limit; ) {
      const word = view.getInt32(at, true);
      const slot = Math.imul(word, 0x1e35a7bd) >>> shift;
      const candidate = start + (table[slot] ?? 0);
      table[slot] = at - start;
      if (view.getInt32(candidate, true) !== word) {
        at += misses++ >>> 5;
        continue;
      }
      if (at > literal) appendLiteral(out, source, literal, at);
      const matched = matchEnd(source, candidate + 4, at + 4, end);
      appendCopy(out, at - candidate, matched - at);
      if (matched < limit)
        table[Math.imul(view.getInt32(matched - 1, true), 0x1e35a7bd) >>> shift] = matched - 1 - start;
      at = matched;
      literal = matched;
      misses = 32;
    }
    if (end > literal) appendLiteral(out, source, literal, end);
  }
}

/** Where the bytes at `at` cease to be those at `earlier`. */
function matchEnd({ bytes, view }: ByteSource, earlier: number, at: number, end: number): number {
  let from = earlier;
  let to = at;
  while (to + 4 <= end && view.getInt32(from, true) === view.getInt32(to, true)) {
    from += 4;
    to += 4;
  }
  while (to < end && bytes[from] === bytes[to]) {
    from++;
    to++;
  }
  return to;
}

function appendLiteral(out: ByteBuffer, source: ByteSource, start: number, end: number): void {
  const last = end - start - 1;
  if (last < 60) {
    out.appendUint8(last << 2);
  } else if (last < 256) {
    out.appendUint8(60 << 2);
    out.appendUint8(last);
  } else {
    out.appendUint8(61 << 2);
    out.appendUint8(last & 0xff);
    out.appendUint8(last >>> 8);
  }
  out.appendBytes(source, start, end);
}

/** Appends copies of at most 64 bytes each, none of them shorter than four. */
function appendCopy(out: ByteBuffer, offset: number, length: number): void {
  let left = length;
  for (; left > 64; left -= left >= 68 ? 64 : 60) appendLongCopy(out, offset, left >= 68 ? 64 : 60);
  if (left < 12 && offset < 2048) {
    out.appendUint8(((offset >>> 8) << 5) | ((left - 4) << 2) | 1);
    out.appendUint8(offset & 0xff);
  } else {
    appendLongCopy(out, offset, left);
  }
}

function appendLongCopy(out: ByteBuffer, offset: number, length: number): void {
  out.appendUint8(((length - 1) << 2) | 2);
  out.appendUint8(offset & 0xff);
  out.appendUint8(offset >>> 8);
}
