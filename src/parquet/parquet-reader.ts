import { type FileHandle, open } from 'node:fs/promises';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import {
  type AsyncBuffer,
  type Compressors,
  type FileMetaData,
  parquetMetadataAsync,
  parquetReadObjects,
  type RowGroup,
} from 'hyparquet';
import { reasonOf } from '../core/errors.js';
import { readableBytes } from '../core/text.js';
import { ZstdUnpacker } from '../core/zstd.js';
import type { Row } from './record-from-row.js';

/** A file cannot be read as Parquet; the message says what is wrong with it. */
export class ParquetReadError extends Error {
  override readonly name = 'ParquetReadError';
}

/** Rows of a file in order, and how far the reading has come. */
interface RowChunk {
  readonly rows: readonly Row[];
  /** Number of the first of these rows, counted from 0. */
  readonly firstRow: number;
  /** The file's rows altogether. */
  readonly totalRows: number;
}

/** Rows read at a time: half a page of the engine's and our own files. */
const CHUNK_ROWS = 10_000;
/** Rows read at a time where pages are so long that each is unpacked many times: as many as fit into memory with everything that is made of them. */
const MAX_CHUNK_ROWS = 50_000;
/** How often a page is unpacked at most, as long as chunks can be longer. */
const UNPACKINGS = 20;
/** What the pages may have that are unpacked for a chunk, of all columns: values, of which each takes some 130 bytes meanwhile, and bytes. */
const MAX_HELD_VALUES = 8 * 1024 * 1024;
const MAX_HELD_BYTES = 512 * 1024 * 1024;

/**
 * Reads a Parquet file of telemetry in chunks of 10,000 rows, or up to 50,000 of a file with longer pages. Only these, and the pages that
 * they stand in, are held in memory, whatever the size of its row groups, and whether the file says where its pages are or not.
 * @throws ParquetReadError when the file is no Parquet file or is damaged; an empty file, which a killed engine leaves, says so.
 */
export async function* readParquetRows(path: string): AsyncGenerator<RowChunk> {
  const handle = await open(path, 'r');
  try {
    const file = await bufferOf(handle);
    const metadata = await readMetadata(path, file);
    const totalRows = Number(metadata.num_rows);
    for await (const { start, end, pageLocationsByGroup } of rangesOf(path, file, metadata)) {
      const options = { file, metadata, rowStart: start, rowEnd: end, parsers: PARSERS, compressors: COMPRESSORS };
      const rows = await parsed(path, () => parquetReadObjects({ ...options, ...{ pageLocationsByGroup } }));
      yield { rows, firstRow: start, totalRows };
    }
  } finally {
    await handle.close();
  }
}

/** The footer of a file of telemetry, whatever it holds besides. @throws ParquetReadError, and what the file system throws */
export async function readParquetFooter(path: string): Promise<FileMetaData> {
  const handle = await open(path, 'r');
  try {
    return await readMetadata(path, await bufferOf(handle));
  } finally {
    await handle.close();
  }
}

/** What unpacks pages, by the codecs of parquet.thrift; Snappy the reader has of its own. Each is given the size that the page claims, and makes no more of it. */
const COMPRESSORS: Compressors = {
  GZIP: (bytes, size) => gunzipSync(bytes, { maxOutputLength: Math.max(1, size) }),
  BROTLI: (bytes, size) => brotliDecompressSync(bytes, { maxOutputLength: Math.max(1, size) }),
  ZSTD: unpackZstd,
  LZ4_RAW: unpackLz4,
  LZ4: (bytes, size) => unpackHadoopLz4(bytes, size) ?? unpackLz4(bytes, size),
};

const PARSERS = {
  timestampFromNanoseconds: (nanos: bigint) => nanos,
  timestampFromMicroseconds: (micros: bigint) => micros * 1_000n,
  timestampFromMilliseconds: (millis: bigint) => millis * 1_000_000n,
  stringFromBytes: (bytes: Uint8Array | undefined) =>
    bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8'),
};

async function bufferOf(handle: FileHandle): Promise<AsyncBuffer> {
  const { size } = await handle.stat();
  return {
    byteLength: size,
    async slice(start, end = size) {
      const length = Math.max(0, Math.min(end, size) - start);
      const bytes = new ArrayBuffer(length);
      let filled = 0;
      while (filled < length) {
        const { bytesRead } = await handle.read(new Uint8Array(bytes), filled, length - filled, start + filled);
        if (bytesRead === 0) throw new Error('the file became shorter while it was read');
        filled += bytesRead;
      }
      return bytes;
    },
  };
}

async function readMetadata(path: string, file: AsyncBuffer): Promise<FileMetaData> {
  if (file.byteLength === 0) {
    throw new ParquetReadError(
      `${path} is empty: the engine was killed before it wrote it. Use the run's JSONL instead`,
    );
  }
  const metadata = await parsed(path, () => parquetMetadataAsync(file, { parsers: PARSERS }));
  const names = new Set(metadata.schema.map((element) => element.name));
  for (const required of ['record_type', 'trace_id', 'event_type', 'attributes']) {
    if (!names.has(required)) {
      throw new ParquetReadError(`${path} is not a telemetry file of the engine: it has no column ${required}`);
    }
  }
  return metadata;
}

/** Rows to read at a time, and where the pages of their group are, by the column's path. */
interface RowRange {
  readonly start: number;
  readonly end: number;
  readonly pageLocationsByGroup: readonly PageLocations[];
}

type PageLocations = Record<string, readonly PageLocation[]>;

/** A row group is looked at before its first range. */
async function* rangesOf(path: string, file: AsyncBuffer, metadata: FileMetaData): AsyncGenerator<RowRange> {
  let groupStart = 0;
  const pageLocationsByGroup: PageLocations[] = metadata.row_groups.map(() => ({}));
  for (const [index, group] of metadata.row_groups.entries()) {
    const groupRows = Number(group.num_rows);
    // Its columns have no pages.
    if (groupRows === 0) continue;
    const columns = await parsed(path, () => checkPages(file, group));
    const pageRows = Math.max(...columns.map(heldValues));
    const step = Math.max(CHUNK_ROWS, Math.min(MAX_CHUNK_ROWS, Math.ceil(pageRows / UNPACKINGS)));
    checkHeld(path, columns);
    pageLocationsByGroup[index] = Object.fromEntries(
      columns.flatMap((column) => (column.pages === undefined ? [] : [[column.path, column.pages]])),
    );
    for (let start = 0; start < groupRows; start += step) {
      yield { start: groupStart + start, end: groupStart + Math.min(start + step, groupRows), pageLocationsByGroup };
    }
    pageLocationsByGroup[index] = {};
    groupStart += groupRows;
  }
}

/** Values of a column that are unpacked for a chunk, at least. */
function heldValues({ pages, largestPageValues, valueCount }: ColumnPages): number {
  return pages === undefined ? valueCount : largestPageValues;
}

/** @throws ParquetReadError for a group of which a chunk takes more than there is to be */
function checkHeld(path: string, columns: readonly ColumnPages[]): void {
  let [values, bytes] = [0, 0];
  for (const column of columns) {
    values += heldValues(column);
    bytes += column.pages === undefined ? column.byteCount : column.largestPageBytes;
  }
  if (values <= MAX_HELD_VALUES && bytes <= MAX_HELD_BYTES) return;
  throw new ParquetReadError(
    `${path} has pages of ${values} values and ${readableBytes(bytes)} side by side in a row group, too many to hold. Write the file again with smaller row groups`,
  );
}

async function parsed<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (cause) {
    const reason = reasonOf(cause);
    throw new ParquetReadError(`${path} cannot be read as Parquet: ${reason}. Check that the file is complete`, {
      cause,
    });
  }
}

/** A page may have so many values; writers cut pages at about a MiB, or at a row group's end. */
const MAX_PAGE_VALUES = 4_194_304;
/** And so many bytes when it is unpacked. */
const MAX_PAGE_BYTES = 256 * 2 ** 20;
/** What is read of a page to find its header, in bytes; more only where that does not hold it. */
const HEADER_BYTES = 1_024;
const MAX_HEADER_BYTES = 2 ** 20;

/** The pages of a column in a row group. */
export interface ColumnPages {
  /** Names from the top level on, joined by dots. */
  readonly path: string;
  /** Its data pages; `undefined` where it is not known which rows they have. */
  readonly pages: readonly PageLocation[] | undefined;
  readonly valueCount: number;
  readonly largestPageValues: number;
  /** Of all pages unpacked, and of the largest one. */
  readonly byteCount: number;
  readonly largestPageBytes: number;
}

/** Where a page lies, and its first row in its group. */
interface PageLocation {
  readonly offset: bigint;
  readonly compressed_page_size: number;
  readonly first_row_index: bigint;
}

/**
 * Looks at the headers of all pages of a row group before anything is unpacked: a few bytes can claim gigabytes, for which
 * a reader would make room. What stands inside of the pages is not looked at. Which rows a page has follows from its values where each row
 * has one: in columns without lists, and where all lists are empty or have one entry.
 * @throws Error when a page is larger than a real one, a column lies outside of the file, or the group has more rows than
 * its pages.
 */
export async function checkPages(file: AsyncBuffer, group: RowGroup): Promise<readonly ColumnPages[]> {
  const columns: ColumnPages[] = [];
  for (const { meta_data: column } of group.columns) {
    if (column === undefined) throw new Error('a column has no description');
    // 0 stands for none with some writers.
    const dictionaryAt = Number(column.dictionary_page_offset ?? 0) || Number.POSITIVE_INFINITY;
    const start = Math.min(dictionaryAt, Number(column.data_page_offset));
    const end = start + Number(column.total_compressed_size);
    if (!(start >= 0 && end >= start && end <= file.byteLength)) throw new Error('a column lies outside of the file');
    let [valueCount, byteCount, largestPageValues, largestPageBytes] = [0, 0, 0, 0];
    const pages: PageLocation[] = [];
    for (let at = start; at < end; ) {
      const page = await readHeader(file, at, end);
      if (page.valueCount > MAX_PAGE_VALUES) throw new Error(`a page claims ${page.valueCount} values`);
      if (page.uncompressedBytes > MAX_PAGE_BYTES) {
        throw new Error(`a page claims ${readableBytes(page.uncompressedBytes)}`);
      }
      const compressed_page_size = page.headerBytes + page.compressedBytes;
      if (!page.isDictionary) {
        pages.push({ offset: BigInt(at), compressed_page_size, first_row_index: BigInt(valueCount) });
        valueCount += page.valueCount;
        largestPageValues = Math.max(largestPageValues, page.valueCount);
      }
      byteCount += page.uncompressedBytes;
      largestPageBytes = Math.max(largestPageBytes, page.uncompressedBytes);
      at += compressed_page_size;
    }
    if (group.num_rows > valueCount) throw new Error(`a row group claims ${group.num_rows} rows, more than it has`);
    columns.push({
      path: column.path_in_schema.join('.'),
      pages: group.num_rows === BigInt(valueCount) ? pages : undefined,
      ...{ valueCount, byteCount, largestPageValues, largestPageBytes },
    });
  }
  return columns;
}

async function readHeader(file: AsyncBuffer, at: number, end: number): Promise<PageHeader> {
  for (let length = HEADER_BYTES; ; length *= 32) {
    const bytes = new Uint8Array(await file.slice(at, Math.min(at + length, end)));
    try {
      return parsePageHeader(bytes);
    } catch (error) {
      if (!(error instanceof RangeError) || length > MAX_HEADER_BYTES || at + length >= end) throw error;
    }
  }
}

/** What a page of a Parquet file says of itself, as far as it decides on memory. */
interface PageHeader {
  /** Length of the header itself, in bytes. */
  readonly headerBytes: number;
  /** Of the page after the header, as it lies in the file. */
  readonly compressedBytes: number;
  readonly uncompressedBytes: number;
  /** Values, nulls among them; of a dictionary its entries. */
  readonly valueCount: number;
  readonly isDictionary: boolean;
}

/** Field numbers of parquet.thrift's PageHeader, and of the three kinds of headers within it. */
const UNCOMPRESSED = 2;
const COMPRESSED = 3;
const KINDS: ReadonlySet<number> = new Set([5, 7, 8]);
const DICTIONARY = 7;
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
  let isDictionary = false;
  reader.eachField((field, type) => {
    if (field === UNCOMPRESSED && type === TYPE.i32) uncompressedBytes = reader.zigZag();
    else if (field === COMPRESSED && type === TYPE.i32) compressedBytes = reader.zigZag();
    else if (KINDS.has(field) && type === TYPE.struct) {
      isDictionary = field === DICTIONARY;
      reader.eachField((inner, innerType) => {
        if (inner === VALUE_COUNT && innerType === TYPE.i32) valueCount = reader.zigZag();
        else reader.skip(innerType);
      });
    } else reader.skip(type);
  });
  if (uncompressedBytes < 0 || compressedBytes < 0 || valueCount < 0) throw new RangeError('not the header of a page');
  return { headerBytes: reader.offset, compressedBytes, uncompressedBytes, valueCount, isDictionary };
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

/** Unpacks a page of zstd. @param size that it has to have, in bytes @throws Error for what is no such zstd */
function unpackZstd(bytes: Uint8Array, size: number): Uint8Array {
  const page = new Uint8Array(size);
  const zstd = new ZstdUnpacker();
  let length = 0;
  const take = (blocks: Iterable<Uint8Array>) => {
    for (const block of blocks) {
      if (length + block.length > size) throw new Error('a page is longer than it says');
      page.set(block, length);
      length += block.length;
    }
  };
  take(zstd.push(bytes));
  take(zstd.end());
  return page.subarray(0, length);
}

/** A run's length goes on in further bytes when its four bits are all set. */
const LONG_RUN = 15;
const MIN_MATCH = 4;

/** Unpacks a block of LZ4 (https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md). @param size as for `unpackZstd` @throws Error for what is none */
function unpackLz4(bytes: Uint8Array, size: number): Uint8Array {
  const page = new Uint8Array(size);
  let [at, length] = [0, 0];
  const runLength = (bits: number): number => {
    let run = bits;
    for (let more = bits === LONG_RUN ? 255 : 0; more === 255; run += more) more = bytes[at++] ?? 0;
    return run;
  };
  while (at < bytes.length) {
    const token = bytes[at++] ?? 0;
    const literals = runLength(token >> 4);
    if (at + literals > bytes.length || length + literals > size) throw new Error('a page is no LZ4 block of its size');
    page.set(bytes.subarray(at, at + literals), length);
    at += literals;
    length += literals;
    if (at >= bytes.length) break;
    const distance = (bytes[at] ?? 0) + (bytes[at + 1] ?? 0) * 256;
    at += 2;
    const match = runLength(token & LONG_RUN) + MIN_MATCH;
    if (distance === 0 || distance > length || length + match > size)
      throw new Error('a page is no LZ4 block of its size');
    // Byte by byte: a match may reach into what it makes itself.
    for (const end = length + match; length < end; length++) page[length] = page[length - distance] ?? 0;
  }
  return page.subarray(0, length);
}

/** Unpacks LZ4 as Hadoop frames it, which the codec's older name may stand for; `undefined` where it is not framed so. */
function unpackHadoopLz4(bytes: Uint8Array, size: number): Uint8Array | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const page = new Uint8Array(size);
  let [at, length] = [0, 0];
  while (at < bytes.length) {
    if (at + 8 > bytes.length) return undefined;
    const unpackedBytes = view.getUint32(at);
    const packedBytes = view.getUint32(at + 4);
    at += 8;
    if (at + packedBytes > bytes.length || length + unpackedBytes > size) return undefined;
    page.set(unpackLz4(bytes.subarray(at, at + packedBytes), unpackedBytes), length);
    at += packedBytes;
    length += unpackedBytes;
  }
  return length === size ? page : undefined;
}
