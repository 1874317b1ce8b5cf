import type { ColumnChunk, Encoding } from 'hyparquet';
import { ByteBuffer } from './byte-buffer.js';
import { ColumnDictionary } from './column-dictionary.js';
import { ColumnStatistics } from './column-statistics.js';
import { encodePage } from './encode-page.js';
import type { LeafColumn } from './leaf-column.js';
import type { PlainEncoding } from './plain-encoding.js';
import { RleEncoder } from './rle-encoder.js';

/** Rows and bytes after which a page ends: the engine's own. */
const PAGE_ROWS = 20_000;
const PAGE_BYTES = 1024 * 1024;
/** A finished page: its bytes in the file and the first row that it holds. */
interface Page {
  readonly bytes: Uint8Array;
  readonly firstRow: number;
}

/** A finished column chunk; offsets in `chunk` count from the chunk's own first byte. */
export interface EncodedChunk {
  readonly parts: readonly Uint8Array[];
  readonly byteLength: number;
  /** The chunk's metadata when it begins at `offset` in the file. */
  chunkAt(offset: number): ColumnChunk;
  /** Where each data page lies, for the offset index. */
  pagesAt(offset: number): { offset: bigint; compressed_page_size: number; first_row_index: bigint }[];
}

/**
 * Writes one column of one row group. Only finished, compressed pages, the dictionary (at most 1 MiB) and one open page
 * (at most 1 MiB or 20,000 rows) are held. Rows that are passed over are null, so an absent value costs nothing.
 */
export class ColumnWriter<T> {
  private readonly pages: Page[] = [];
  private readonly definitions = new ByteBuffer();
  private readonly repetitions = new ByteBuffer();
  private readonly definitionEncoder: RleEncoder;
  private readonly repetitionEncoder = new RleEncoder(this.repetitions, 1);
  /** PLAIN values of the open page, once there is no dictionary. */
  private readonly plain = new ByteBuffer();
  private readonly statistics = new ColumnStatistics();
  private readonly dictionary: ColumnDictionary<T>;
  private isDictionaryOpen: boolean;
  private dictionaryPages = 0;
  /** Dictionary indexes of the open page. */
  private indexes: number[] = [];
  private valuesInPage = 0;
  private levelsInPage = 0;
  private rows = 0;
  private firstRowOfPage = 0;
  private levelCount = 0;
  private uncompressedBytes = 0;
  private pageBytes = 0;

  constructor(
    private readonly column: LeafColumn,
    private readonly encoding: PlainEncoding<T>,
  ) {
    this.definitionEncoder = new RleEncoder(this.definitions, column.maxDefinition > 1 ? 2 : 1);
    this.dictionary = new ColumnDictionary(encoding, this.statistics);
    this.isDictionaryOpen = encoding.hasDictionary;
  }

  /** Bytes held for the row group, roughly. */
  get bufferedBytes(): number {
    return this.pageBytes + this.dictionary.byteLength + this.plain.length + this.indexes.length * 8;
  }

  /** Writes the value of a row; rows between the last written one and this one become null. */
  append(row: number, value: T): void {
    this.appendNulls(row);
    this.appendLevel(this.column.maxDefinition, 0);
    this.appendValue(value);
    this.endRow();
  }

  /**
   * Writes the items of a list; no item is an empty list.
   * @param values `undefined` for an item without this value.
   */
  appendList(row: number, values: readonly (T | undefined)[]): void {
    this.appendNulls(row);
    if (values.length === 0) this.appendAbsent(1, 0);
    for (const [index, value] of values.entries()) {
      const repetition = index === 0 ? 0 : 1;
      if (value === undefined) {
        this.appendAbsent(this.column.maxDefinition - 1, repetition);
      } else {
        this.appendLevel(this.column.maxDefinition, repetition);
        this.appendValue(value);
      }
    }
    this.endRow();
  }

  /** Ends the row group of `rowCount` rows. */
  finish(rowCount: number): EncodedChunk {
    this.appendNulls(rowCount);
    if (this.levelsInPage > 0) this.endPage();
    const dictionaryPage = this.dictionaryPages > 0 ? this.dictionary.encode() : undefined;
    const dictionaryBytes = dictionaryPage?.bytes.length ?? 0;
    const uncompressedBytes = this.uncompressedBytes + (dictionaryPage?.uncompressedBytes ?? 0);
    const { pages, column, encoding, levelCount, statistics, dictionaryPages } = this;
    const byteLength = dictionaryBytes + this.pageBytes;
    return {
      parts: [...(dictionaryPage === undefined ? [] : [dictionaryPage.bytes]), ...pages.map((page) => page.bytes)],
      byteLength,
      chunkAt: (offset) => ({
        file_offset: BigInt(offset),
        meta_data: {
          type: encoding.type,
          encodings: encodingsUsed(encoding.hasDictionary, dictionaryPages),
          path_in_schema: [...column.path],
          codec: 'SNAPPY',
          num_values: BigInt(levelCount),
          total_uncompressed_size: BigInt(uncompressedBytes),
          total_compressed_size: BigInt(byteLength),
          data_page_offset: BigInt(offset + dictionaryBytes),
          ...(dictionaryPage === undefined ? {} : { dictionary_page_offset: BigInt(offset) }),
          statistics: statistics.toParquet(),
        },
      }),
      pagesAt: (offset) => {
        let next = offset + dictionaryBytes;
        return pages.map(({ bytes, firstRow }) => {
          const location = {
            offset: BigInt(next),
            compressed_page_size: bytes.length,
            first_row_index: BigInt(firstRow),
          };
          next += bytes.length;
          return location;
        });
      },
    };
  }

  private appendNulls(beforeRow: number): void {
    while (this.rows < beforeRow) {
      const count = Math.min(beforeRow - this.rows, this.firstRowOfPage + PAGE_ROWS - this.rows);
      if (this.column.maxDefinition > 0) this.definitionEncoder.append(0, count);
      if (this.column.maxRepetition > 0) this.repetitionEncoder.append(0, count);
      this.levelsInPage += count;
      this.statistics.nullCount += count;
      this.rows += count;
      this.endPageIfFull();
    }
  }

  private appendAbsent(definition: number, repetition: number): void {
    this.appendLevel(definition, repetition);
    this.statistics.nullCount++;
  }

  private appendLevel(definition: number, repetition: number): void {
    if (this.column.maxDefinition > 0) this.definitionEncoder.append(definition);
    if (this.column.maxRepetition > 0) this.repetitionEncoder.append(repetition);
    this.levelsInPage++;
  }

  private appendValue(value: T): void {
    if (this.isDictionaryOpen) {
      this.indexes.push(this.dictionary.indexOf(value));
      return;
    }
    const statistic = this.encoding.statistic(value);
    if (statistic !== null) this.statistics.seeValue(statistic);
    this.encoding.append(this.plain, value, this.valuesInPage++);
  }

  private endRow(): void {
    this.rows++;
    if (this.isDictionaryOpen && this.dictionary.isFull) this.closeDictionary();
    this.endPageIfFull();
  }

  private closeDictionary(): void {
    this.endPage();
    this.isDictionaryOpen = false;
    this.dictionary.close();
    if (this.encoding.type === 'BYTE_ARRAY') this.statistics.giveUp();
  }

  private endPageIfFull(): void {
    if (this.rows - this.firstRowOfPage >= PAGE_ROWS || this.plain.length >= PAGE_BYTES) this.endPage();
  }

  private endPage(): void {
    const body = new ByteBuffer(this.plain.length + 1024);
    if (this.column.maxRepetition > 0) this.appendLevels(body, this.repetitions, this.repetitionEncoder);
    if (this.column.maxDefinition > 0) this.appendLevels(body, this.definitions, this.definitionEncoder);
    let encoding: Encoding = 'PLAIN';
    if (this.isDictionaryOpen) {
      encoding = 'RLE_DICTIONARY';
      this.dictionaryPages++;
      this.appendIndexes(body);
    } else {
      body.appendBytes(this.plain.view());
      this.plain.clear();
    }
    const { bytes, uncompressedBytes } = encodePage(body.view(), {
      type: 'DATA_PAGE',
      data_page_header: {
        num_values: this.levelsInPage,
        encoding,
        definition_level_encoding: 'RLE',
        repetition_level_encoding: 'RLE',
      },
    });
    this.uncompressedBytes += uncompressedBytes;
    this.pages.push({ bytes, firstRow: this.firstRowOfPage });
    this.pageBytes += bytes.length;
    this.levelCount += this.levelsInPage;
    this.levelsInPage = 0;
    this.valuesInPage = 0;
    this.firstRowOfPage = this.rows;
  }

  private appendLevels(body: ByteBuffer, levels: ByteBuffer, encoder: RleEncoder): void {
    encoder.finish();
    body.appendUint32(levels.length);
    body.appendBytes(levels.view());
    levels.clear();
  }

  private appendIndexes(body: ByteBuffer): void {
    const { bitWidth } = this.dictionary;
    body.appendUint8(bitWidth);
    const encoder = new RleEncoder(body, bitWidth);
    for (const index of this.indexes) encoder.append(index);
    encoder.finish();
    this.indexes = [];
  }
}

function encodingsUsed(hasDictionary: boolean, dictionaryPages: number): Encoding[] {
  if (!hasDictionary) return ['PLAIN', 'RLE'];
  return dictionaryPages > 0 ? ['PLAIN', 'RLE', 'RLE_DICTIONARY'] : ['PLAIN', 'RLE'];
}
