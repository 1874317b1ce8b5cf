import type { ColumnChunk, Encoding, PageHeader, ParquetType, Statistics } from 'hyparquet';
import { ByteWriter } from 'hyparquet-writer';
import { writePageHeader } from 'hyparquet-writer/src/datapage.js';
import type { ByteSource } from '../core/bytes.js';
import { ByteBuffer, Uint32List } from './bytes.js';

/** A page as it lies in the file: its header and its compressed body. */
interface EncodedPage {
  readonly bytes: Uint8Array;
  /** Length before compression, header included. */
  readonly uncompressedBytes: number;
}

/** Encodes pages, one after the other: what it works with serves all columns of a row group. */
export class PageEncoder {
  /** The next page's body is written here first. */
  readonly body = new ByteBuffer(4096);
  private readonly compressed = new ByteBuffer(4096);
  private readonly snappy = new SnappyCompressor();

  /** Compresses a page's body with Snappy and puts its header before it. The bytes are a copy. */
  encode(body: ByteBuffer, header: Omit<PageHeader, 'uncompressed_page_size' | 'compressed_page_size'>): EncodedPage {
    const { compressed } = this;
    compressed.clear();
    this.snappy.compress(body.source, body.length, compressed);
    const head = new ByteWriter(64);
    writePageHeader(head, {
      ...header,
      uncompressed_page_size: body.length,
      compressed_page_size: compressed.length,
    });
    return {
      bytes: Buffer.concat([head.getBytes(), compressed.content()]),
      uncompressedBytes: head.offset + body.length,
    };
  }
}

/** A finished column chunk without its bytes: plain data, so that it can go from thread to thread. */
export interface EncodedChunk {
  readonly type: ParquetType;
  readonly encodings: readonly Encoding[];
  readonly path: readonly string[];
  readonly valueCount: number;
  readonly uncompressedBytes: number;
  readonly statistics: Statistics;
  /** Length of all of it, in bytes: the dictionary page, if there is one, and the data pages. */
  readonly byteLength: number;
  /** 0 where there is no dictionary. */
  readonly dictionaryBytes: number;
  readonly pages: readonly { readonly byteLength: number; readonly firstRow: number }[];
}

/** The chunk's metadata when it begins at `offset` in the file. */
export function columnChunkAt(chunk: EncodedChunk, offset: number): ColumnChunk {
  return {
    file_offset: BigInt(offset),
    meta_data: {
      type: chunk.type,
      encodings: [...chunk.encodings],
      path_in_schema: [...chunk.path],
      codec: 'SNAPPY',
      num_values: BigInt(chunk.valueCount),
      total_uncompressed_size: BigInt(chunk.uncompressedBytes),
      total_compressed_size: BigInt(chunk.byteLength),
      data_page_offset: BigInt(offset + chunk.dictionaryBytes),
      ...(chunk.dictionaryBytes === 0 ? {} : { dictionary_page_offset: BigInt(offset) }),
      statistics: chunk.statistics,
    },
  };
}

/** Where each data page lies, for the offset index. */
export function pageLocations(
  chunk: EncodedChunk,
  offset: number,
): { offset: bigint; compressed_page_size: number; first_row_index: bigint }[] {
  let next = offset + chunk.dictionaryBytes;
  return chunk.pages.map(({ byteLength, firstRow }) => {
    const location = { offset: BigInt(next), compressed_page_size: byteLength, first_row_index: BigInt(firstRow) };
    next += byteLength;
    return location;
  });
}

/** Rows after which a page ends: the engine's own. */
export const PAGE_ROWS = 20_000;

/** How many bits of each byte are set. */
const BIT_COUNTS = Uint8Array.from({ length: 256 }, (_, byte) => byte.toString(2).replaceAll('0', '').length);

/** Which rows of the open page have a value: one bit each, so that rows without one cost nothing. */
export class PresenceLevels {
  private readonly bits = new Uint8Array(Math.ceil(PAGE_ROWS / 8));

  /** @param rowInPage counts from 0 in each page @param count how many rows from it on: 1 or 2 */
  set(rowInPage: number, count: number): void {
    const { bits } = this;
    const at = rowInPage >>> 3;
    const set = (2 * count - 1) << (rowInPage & 7);
    bits[at] = (bits[at] as number) | set;
    if (set > 0xff) bits[at + 1] = 1;
  }

  /** Appends the page's definition levels and begins the next page. @returns how many rows have a value */
  appendPage(body: ByteBuffer, rowsInPage: number): number {
    const { bits } = this;
    const byteCount = (rowsInPage + 7) >>> 3;
    let present = 0;
    for (let at = 0; at < byteCount; at++) present += BIT_COUNTS[bits[at] as number] as number;
    appendBlock(body, () => appendHybridBits(body, bits, rowsInPage));
    bits.fill(0, 0, byteCount);
    return present;
  }

  clear(): void {
    this.bits.fill(0);
  }
}

/** Levels of a column inside a list, one pair for each item, empty list and row without a list. */
export class ListLevels {
  private readonly definitions = new Uint32List();
  private readonly repetitions = new Uint32List();

  get count(): number {
    return this.definitions.length;
  }

  push(definition: number, repetition: number): void {
    this.definitions.push(definition, 1);
    this.repetitions.push(repetition, 1);
  }

  pushNulls(count: number): void {
    this.definitions.pushMany(0, count);
    this.repetitions.pushMany(0, count);
  }

  /** Appends the page's repetition and definition levels and begins the next page. */
  appendPage(body: ByteBuffer): void {
    const { definitions, repetitions } = this;
    appendBlock(body, () => appendHybrid(body, repetitions.values, repetitions.length, 1));
    // Lists have definition levels up to 3.
    appendBlock(body, () => appendHybrid(body, definitions.values, definitions.length, 2));
    this.clear();
  }

  clear(): void {
    this.definitions.clear();
    this.repetitions.clear();
  }
}

/** Levels stand behind their length in four bytes. */
function appendBlock(body: ByteBuffer, append: () => void): void {
  const start = body.length;
  body.appendUint32(0);
  append();
  body.setUint32(start, body.length - start - 4);
}

/** Bytes of equal bits that are worth a run of their own, in place of as many bytes of literals. */
const MIN_EQUAL_BYTES = 4;

/**
 * Writes numbers in Parquet's hybrid of runs and bit-packing (Encodings.md): runs of eight and more equal values
 * become a run, others are bit-packed in groups of eight.
 * @param count how many of `values` to write
 * @param bitWidth 1 to 24
 */
export function appendHybrid(out: ByteBuffer, values: Uint32Array, count: number, bitWidth: number): void {
  let literals = 0;
  let at = 0;
  while (at < count) {
    const value = values[at];
    let end = at + 1;
    while (end < count && values[end] === value) end++;
    // A run can begin only where a group of eight is full.
    const begin = literals + ((at - literals + 7) & ~7);
    if (end - begin >= 8) {
      appendLiterals(out, values, literals, begin, bitWidth);
      out.appendVarint((end - begin) * 2);
      for (let bits = 0; bits < bitWidth; bits += 8) out.appendUint8(((value ?? 0) >>> bits) & 0xff);
      literals = end;
    }
    at = end;
  }
  appendLiterals(out, values, literals, count, bitWidth);
}

/** Writes bits, the lowest of each byte first, in the same hybrid with a width of one. @param count of bits */
function appendHybridBits(out: ByteBuffer, bits: Uint8Array, count: number): void {
  const byteCount = (count + 7) >>> 3;
  let literals = 0;
  let at = 0;
  while (at < byteCount) {
    const byte = bits[at];
    let end = at + 1;
    if (byte === 0x00 || byte === 0xff) while (end < byteCount && bits[end] === byte) end++;
    if (end - at >= MIN_EQUAL_BYTES) {
      appendBitLiterals(out, bits, literals, at);
      // The last byte may hold fewer than eight bits.
      out.appendVarint((Math.min(end * 8, count) - at * 8) * 2);
      out.appendUint8(byte === 0xff ? 1 : 0);
      literals = end;
    }
    at = end;
  }
  appendBitLiterals(out, bits, literals, byteCount);
}

function appendBitLiterals(out: ByteBuffer, bits: Uint8Array, start: number, end: number): void {
  if (start >= end) return;
  out.appendVarint((end - start) * 2 + 1);
  for (let at = start; at < end; at++) out.appendUint8(bits[at] ?? 0);
}

/** Bit-packs values, the last group filled up with zeros. */
function appendLiterals(out: ByteBuffer, values: Uint32Array, start: number, end: number, bitWidth: number): void {
  if (start >= end) return;
  const groups = (end - start + 7) >>> 3;
  out.appendVarint(groups * 2 + 1);
  out.reserve(groups * bitWidth);
  const { bytes } = out;
  let to = out.length;
  let pending = 0;
  let pendingBits = 0;
  for (let i = start; i < start + groups * 8; i++) {
    pending |= (i < end ? (values[i] as number) : 0) << pendingBits;
    pendingBits += bitWidth;
    while (pendingBits >= 8) {
      bytes[to++] = pending;
      pending >>>= 8;
      pendingBits -= 8;
    }
  }
  out.length = to;
}

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
    // As the format's authors have it for the longest result.
    out.reserve(32 + length + Math.ceil(length / 6));
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
      const candidate = start + (table[slot] as number);
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
  while (
    to + 8 <= end &&
    ((view.getInt32(from, true) ^ view.getInt32(to, true)) |
      (view.getInt32(from + 4, true) ^ view.getInt32(to + 4, true))) ===
      0
  ) {
    from += 8;
    to += 8;
  }
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

// What follows is written where there is room already.

function appendLiteral(out: ByteBuffer, source: ByteSource, start: number, end: number): void {
  const last = end - start - 1;
  const { bytes } = out;
  let to = out.length;
  if (last < 60) {
    bytes[to++] = last << 2;
  } else if (last < 256) {
    bytes[to++] = 60 << 2;
    bytes[to++] = last;
  } else {
    bytes[to++] = 61 << 2;
    bytes[to++] = last;
    bytes[to++] = last >>> 8;
  }
  out.length = to;
  out.appendBytes(source, start, end);
}

/** Appends copies of at most 64 bytes each, none of them shorter than four. */
function appendCopy(out: ByteBuffer, offset: number, length: number): void {
  const { bytes } = out;
  let to = out.length;
  let left = length;
  while (left > 64) {
    const part = left >= 68 ? 64 : 60;
    bytes[to] = ((part - 1) << 2) | 2;
    bytes[to + 1] = offset;
    bytes[to + 2] = offset >>> 8;
    to += 3;
    left -= part;
  }
  const isShort = left < 12 && offset < 2048;
  bytes[to] = isShort ? ((offset >>> 8) << 5) | ((left - 4) << 2) | 1 : ((left - 1) << 2) | 2;
  bytes[to + 1] = offset;
  bytes[to + 2] = offset >>> 8;
  out.length = to + (isShort ? 2 : 3);
}
