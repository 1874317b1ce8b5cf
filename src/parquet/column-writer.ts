import type { Encoding } from 'hyparquet';
import { ByteBuffer } from './byte-buffer.js';
import { ListLevels, PresenceLevels } from './column-levels.js';
import type { ColumnValues } from './column-values.js';
import { encodePage } from './encode-page.js';
import type { EncodedChunk } from './encoded-chunk.js';
import type { LeafColumn } from './leaf-column.js';

/** Rows after which a page ends: the engine's own. */
const PAGE_ROWS = 20_000;

/** A finished page: its bytes in the file and the first row that it holds. */
interface Page {
  readonly bytes: Uint8Array;
  readonly firstRow: number;
}

/**
 * Writes one column, row group after row group. Only finished, compressed pages, the dictionary (at most 1 MiB) and one
 * open page (at most 1 MiB or 20,000 rows) are held. Rows that are passed over are null, so an absent value costs nothing.
 * A value is written between `beginRow` and `endRow`, straight into the column's values.
 */
export class ColumnWriter {
  private pages: Page[] = [];
  private readonly presence: PresenceLevels | undefined;
  private readonly list: ListLevels | undefined;
  private readonly body = new ByteBuffer();
  private rows = 0;
  private firstRowOfPage = 0;
  private levelCount = 0;
  private nullCount = 0;
  private uncompressedBytes = 0;
  private pageBytes = 0;

  constructor(
    private readonly column: LeafColumn,
    private readonly values: ColumnValues,
  ) {
    this.list = column.maxRepetition > 0 ? new ListLevels() : undefined;
    this.presence = column.maxRepetition === 0 && column.maxDefinition > 0 ? new PresenceLevels() : undefined;
  }

  /** Bytes held for the row group, roughly. */
  get bufferedBytes(): number {
    return this.pageBytes + this.values.heldBytes;
  }

  /** The next value is that of `row`; rows between the last written one and this one become null. */
  beginRow(row: number): void {
    if (this.rows < row) this.appendNulls(row);
    this.presence?.set(row - this.firstRowOfPage);
  }

  /** @param isFull whether the column's values say that the page has to end */
  endRow(isFull: boolean): void {
    this.rows++;
    if (isFull) this.endFullPage();
    else if (this.rows - this.firstRowOfPage === PAGE_ROWS) this.endPage();
  }

  /** The next value is the item `index` of the list of this row. */
  beginItem(index: number): void {
    this.list?.push(this.column.maxDefinition, index === 0 ? 0 : 1);
  }

  /** The list of this row has no item. */
  appendEmptyList(): void {
    this.list?.push(1, 0);
    this.nullCount++;
  }

  /** Ends the row group of `rowCount` rows: tells its chunk, puts the bytes behind `out` and begins the next one. */
  finish(rowCount: number, out: Uint8Array[]): EncodedChunk {
    this.appendNulls(rowCount);
    if (this.rows > this.firstRowOfPage) this.endPage();
    const { values, column } = this;
    const dictionary = values.dictionary();
    const dictionaryPage =
      dictionary === undefined
        ? undefined
        : encodePage(dictionary.bytes, {
            type: 'DICTIONARY_PAGE',
            dictionary_page_header: { num_values: dictionary.count, encoding: 'PLAIN' },
          });
    if (dictionaryPage !== undefined) out.push(dictionaryPage.bytes);
    for (const page of this.pages) out.push(page.bytes);
    const dictionaryBytes = dictionaryPage?.bytes.length ?? 0;
    const chunk: EncodedChunk = {
      type: values.type,
      encodings: encodingsUsed(values.hasDictionary, dictionary !== undefined),
      path: column.path,
      valueCount: this.levelCount,
      uncompressedBytes: this.uncompressedBytes + (dictionaryPage?.uncompressedBytes ?? 0),
      statistics: { null_count: BigInt(this.nullCount), ...values.bounds() },
      byteLength: dictionaryBytes + this.pageBytes,
      dictionaryBytes,
      pages: this.pages.map(({ bytes, firstRow }) => ({ byteLength: bytes.length, firstRow })),
    };
    this.clear();
    return chunk;
  }

  private clear(): void {
    this.pages = [];
    this.presence?.clear();
    this.list?.clear();
    this.values.clear();
    this.rows = 0;
    this.firstRowOfPage = 0;
    this.levelCount = 0;
    this.nullCount = 0;
    this.uncompressedBytes = 0;
    this.pageBytes = 0;
  }

  private appendNulls(beforeRow: number): void {
    while (this.rows < beforeRow) {
      const count = Math.min(beforeRow - this.rows, this.firstRowOfPage + PAGE_ROWS - this.rows);
      this.list?.pushNulls(count);
      this.nullCount += count;
      this.rows += count;
      if (this.rows - this.firstRowOfPage === PAGE_ROWS) this.endPage();
    }
  }

  private endFullPage(): void {
    this.endPage();
    this.values.endDictionary();
  }

  private endPage(): void {
    const { body, list } = this;
    const rowsInPage = this.rows - this.firstRowOfPage;
    const levelsInPage = list?.count ?? rowsInPage;
    body.clear();
    list?.appendPage(body);
    this.presence?.appendPage(body, rowsInPage);
    const encoding = this.values.appendPage(body);
    const { bytes, uncompressedBytes } = encodePage(body.content(), {
      type: 'DATA_PAGE',
      data_page_header: {
        num_values: levelsInPage,
        encoding,
        definition_level_encoding: 'RLE',
        repetition_level_encoding: 'RLE',
      },
    });
    this.uncompressedBytes += uncompressedBytes;
    this.pages.push({ bytes, firstRow: this.firstRowOfPage });
    this.pageBytes += bytes.length;
    this.levelCount += levelsInPage;
    this.firstRowOfPage = this.rows;
  }
}

function encodingsUsed(hasDictionary: boolean, isDictionaryUsed: boolean): Encoding[] {
  if (!hasDictionary) return ['PLAIN', 'RLE'];
  return isDictionaryUsed ? ['PLAIN', 'RLE', 'RLE_DICTIONARY'] : ['PLAIN', 'RLE'];
}
