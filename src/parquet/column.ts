import type { Encoding, ParquetType, Statistics } from 'hyparquet';
import type { ByteSource } from '../core/bytes.js';
import { ARENA, isSame } from '../record/arena.js';
import { ByteBuffer, Uint32List } from './bytes.js';
import { hashOfNumber, hashOfText, NumberDictionary, TextDictionary } from './dictionary.js';
import { appendHybrid, type EncodedChunk, ListLevels, PAGE_ROWS, type PageEncoder, PresenceLevels } from './page.js';
import type { LeafColumn } from './schema.js';

/** A text that a column gets again and again: it is looked up in the dictionary once a row group. */
export class ConstantText {
  /** The row group, of those of its column, that has got it. */
  group = -1;
  /** Its number among those that the row group has got. */
  number = -1;
  /** Where the row group's dictionary has it; -1 before it was looked up. */
  index = -1;

  constructor(readonly source: ByteSource) {}
}

/** How many values of a column wait at most: about as many as one window of lines has. */
const MAX_WAITING = 1024;
/** Numbers of a value that waits: its row with the bits below, two that say what it is, and its hash. */
const WAITING_NUMBERS = 4;
const IS_TWICE = 1;
/** The value is the one of the column that came before, constants apart. */
const IS_AGAIN = 2;
const ROW_SHIFT = 2;

/**
 * Values that wait: those of one column are written in a row. Before that, the hash of each is made and its place in the table read, so that
 * the processor fetches many of them from memory at a time.
 */
class WaitingValues {
  readonly numbers = new Int32Array(MAX_WAITING * WAITING_NUMBERS);
  length = 0;
  /** What was read of tables, so that V8 does not leave it out. */
  touched = 0;

  /** @returns whether there is no room for another */
  push(row: number, rowCount: number, first: number, second: number): boolean {
    const { numbers, length } = this;
    numbers[length] = (row << ROW_SHIFT) | (rowCount - 1);
    numbers[length + 1] = first;
    numbers[length + 2] = second;
    this.length = length + WAITING_NUMBERS;
    return this.length === numbers.length;
  }
}

/** In place of where a text begins: it is a constant. */
const CONSTANT = -1;

/** A column of texts. */
export class TextColumn implements ColumnValues {
  readonly type = 'BYTE_ARRAY';
  readonly hasDictionary = true;
  readonly writer: ColumnWriter;
  private readonly texts = new TextDictionary();
  private readonly pages = new DictionaryPages(this.texts);
  private readonly plain = new ByteBuffer();
  private readonly waiting = new WaitingValues();
  /** Those that the row group has got. */
  private constants: ConstantText[] = [];
  /** The index of the text that was written last; -1 where it has to be looked up. */
  private index = -1;
  /** Row groups that it has written. */
  private group = 0;

  constructor(leaf: LeafColumn, encoder: PageEncoder) {
    this.writer = new ColumnWriter(leaf, this, encoder);
  }

  /**
   * Has a text written into a row, or into two that follow one another. It stands in the arena from `start` to `end`, and has to until `flush`.
   * @param rowCount 1 or 2
   */
  append(row: number, rowCount: number, start: number, end: number): void {
    if (this.waiting.push(row, rowCount, start, end)) this.flush();
  }

  /** The same for a text of this column alone. */
  appendConstant(row: number, rowCount: number, text: ConstantText): void {
    if (text.group !== this.group) {
      text.group = this.group;
      text.number = this.constants.push(text) - 1;
      text.index = -1;
    }
    if (this.waiting.push(row, rowCount, CONSTANT, text.number)) this.flush();
  }

  /** Writes a text that stands anywhere. */
  appendBytes(row: number, { source, length }: ByteBuffer): void {
    this.flush();
    this.write(row, 1, source, 0, length, hashOfText(source, 0, length));
  }

  /** Writes what waits. */
  flush(): void {
    const { waiting, constants } = this;
    const { numbers, length } = waiting;
    if (this.pages.isOpen) this.touch(waiting);
    for (let at = 0; at < length; at += WAITING_NUMBERS) {
      const bits = numbers[at] as number;
      const row = bits >>> ROW_SHIFT;
      const rowCount = (bits & IS_TWICE) + 1;
      const start = numbers[at + 1] as number;
      const end = numbers[at + 2] as number;
      if (start === CONSTANT) this.writeConstant(row, rowCount, constants[end] as ConstantText);
      else {
        if ((bits & IS_AGAIN) === 0) this.index = -1;
        this.write(row, rowCount, ARENA, start, end, numbers[at + 3] as number);
      }
    }
    this.index = -1;
    waiting.length = 0;
  }

  private touch(waiting: WaitingValues): void {
    const { texts } = this;
    const { numbers, length } = waiting;
    let [lastStart, lastEnd, touched] = [0, 0, 0];
    for (let at = 0; at < length; at += WAITING_NUMBERS) {
      const start = numbers[at + 1] as number;
      const end = numbers[at + 2] as number;
      if (start === CONSTANT) continue;
      if (lastStart !== 0 && end - start === lastEnd - lastStart && isSame(lastStart, start, end - start)) {
        numbers[at] = (numbers[at] as number) | IS_AGAIN;
      } else {
        const hash = hashOfText(ARENA, start, end);
        numbers[at + 3] = hash;
        touched ^= texts.touch(hash);
      }
      lastStart = start;
      lastEnd = end;
    }
    waiting.touched = touched;
  }

  /** Writes an item of a row's list; between the writer's `beginList` and this `endList`. */
  appendItem(index: number, source: ByteSource, start: number, end: number): void {
    this.writer.beginItem(index);
    this.index = -1;
    this.push(1, source, start, end, hashOfText(source, start, end));
  }

  /** Ends a row that is a list. */
  endList(row: number): void {
    this.writer.endList(row, this.isFull);
  }

  get bufferedBytes(): number {
    return this.texts.values.length + this.plain.length + this.pages.bufferedBytes;
  }

  private get isFull(): boolean {
    if (!this.pages.isOpen) return this.plain.length >= PAGE_BYTES;
    return this.texts.values.length > MAX_DICTIONARY_BYTES || this.texts.isCrowded;
  }

  appendPage(body: ByteBuffer): Encoding {
    return this.pages.appendPage(body, this.plain);
  }

  endDictionary(): void {
    this.pages.close();
  }

  dictionary() {
    return this.pages.dictionary();
  }

  bounds() {
    const bounds = this.pages.isOpen ? this.texts.bounds() : undefined;
    return bounds === undefined ? undefined : { min_value: bounds.least, max_value: bounds.greatest };
  }

  clear(): void {
    this.texts.clear();
    this.pages.clear();
    this.plain.clear();
    this.constants = [];
    this.group++;
  }

  private write(row: number, rowCount: number, source: ByteSource, start: number, end: number, hash: number): void {
    const { writer } = this;
    const taken = this.push(writer.beginRows(row, rowCount), source, start, end, hash);
    writer.endRows(row, taken, this.isFull);
    if (taken < rowCount) this.write(row + taken, rowCount - taken, source, start, end, hash);
  }

  private writeConstant(row: number, rowCount: number, text: ConstantText): void {
    const { pages, writer } = this;
    const { source, index } = text;
    if (index < 0 || !pages.isOpen) {
      const { length } = source.bytes;
      const before = this.index;
      this.index = -1;
      this.write(row, rowCount, source, 0, length, hashOfText(source, 0, length));
      text.index = this.index;
      this.index = before;
      return;
    }
    const taken = writer.beginRows(row, rowCount);
    pages.push(index, taken);
    // The dictionary has the text, so that it does not become full.
    writer.endRows(row, taken, false);
    if (taken < rowCount) this.writeConstant(row + taken, rowCount - taken, text);
  }

  /** @returns how many times it was written: once where the page may be full with it */
  private push(times: number, source: ByteSource, start: number, end: number, hash: number): number {
    const { pages, texts, plain } = this;
    if (pages.isOpen) {
      if (this.index < 0) this.index = texts.indexOf(source, start, end, hash);
      const taken = this.isFull ? 1 : times;
      pages.push(this.index, taken);
      return taken;
    }
    plain.appendUint32(end - start);
    plain.appendBytes(source, start, end);
    return 1;
  }
}

/** Which numbers: four bytes with or without a sign, or eight bytes without one (times are below 2^63). */
export type NumberKind = 'int32' | 'uint32' | 'uint64';

/** The bit by which unsigned numbers of 32 bits are ordered otherwise than signed ones. */
const SIGN = 0x80000000 | 0;

/** Distinct numbers from which on it is asked whether nearly all of them are. */
const USELESS_DISTINCT = 2_000;

/**
 * A column of integers, given as two halves of 32 bits; those of four bytes have 0 in the high one. The halves are signed, whatever the
 * number is: V8 makes an object of a whole number that is larger.
 */
export class NumberColumn implements ColumnValues {
  readonly hasDictionary = true;
  readonly type: 'INT32' | 'INT64';
  readonly writer: ColumnWriter;
  private readonly numbers: NumberDictionary;
  private readonly pages: DictionaryPages;
  private readonly plain = new ByteBuffer();
  private readonly waiting = new WaitingValues();
  /** The index of the number that was written last; -1 where it has to be looked up. */
  private index = -1;
  /** Of the dictionary's numbers, those that are in the bounds. */
  private comparedCount = 0;
  private isEmpty = true;
  private leastHigh = 0;
  private leastLow = 0;
  private greatestHigh = 0;
  private greatestLow = 0;
  /** What makes a low half one that is ordered as the signed number that it is. */
  private readonly lowSign: number;

  constructor(
    leaf: LeafColumn,
    private readonly kind: NumberKind,
    encoder: PageEncoder,
  ) {
    this.type = kind === 'uint64' ? 'INT64' : 'INT32';
    this.lowSign = kind === 'int32' ? 0 : SIGN;
    this.numbers = new NumberDictionary(kind === 'uint64' ? 8 : 4);
    this.pages = new DictionaryPages(this.numbers);
    this.writer = new ColumnWriter(leaf, this, encoder);
  }

  /** Has a number written into a row, or into two that follow one another. @param rowCount 1 or 2 @param high 0 for numbers of four bytes */
  append(row: number, rowCount: number, high: number, low: number): void {
    if (this.waiting.push(row, rowCount, high, low)) this.flush();
  }

  /** Writes what waits. */
  flush(): void {
    const { waiting } = this;
    const { numbers, length } = waiting;
    if (this.pages.isOpen) this.touch(waiting);
    for (let at = 0; at < length; at += WAITING_NUMBERS) {
      const bits = numbers[at] as number;
      if ((bits & IS_AGAIN) === 0) this.index = -1;
      const high = numbers[at + 1] as number;
      const low = numbers[at + 2] as number;
      this.write(bits >>> ROW_SHIFT, (bits & IS_TWICE) + 1, high, low, numbers[at + 3] as number);
    }
    this.index = -1;
    waiting.length = 0;
  }

  private touch(waiting: WaitingValues): void {
    const { numbers: dictionary } = this;
    const { numbers, length } = waiting;
    let touched = 0;
    for (let at = 0; at < length; at += WAITING_NUMBERS) {
      const high = numbers[at + 1] as number;
      const low = numbers[at + 2] as number;
      if (at > 0 && numbers[at - 2] === low && numbers[at - 3] === high) {
        numbers[at] = (numbers[at] as number) | IS_AGAIN;
        continue;
      }
      const hash = hashOfNumber(high, low);
      numbers[at + 3] = hash;
      touched ^= dictionary.touch(hash);
    }
    waiting.touched = touched;
  }

  /** Writes an item of a row's list; between the writer's `beginList` and this `endList`. */
  appendItem(index: number, high: number, low: number): void {
    this.writer.beginItem(index);
    this.index = -1;
    this.push(1, high, low, hashOfNumber(high, low));
  }

  /** Ends a row that is a list. */
  endList(row: number): void {
    this.writer.endList(row, this.isFull);
  }

  get bufferedBytes(): number {
    return this.numbers.values.length + this.plain.length + this.pages.bufferedBytes;
  }

  private get isFull(): boolean {
    if (!this.pages.isOpen) return this.plain.length >= PAGE_BYTES;
    return this.numbers.values.length > MAX_DICTIONARY_BYTES || this.numbers.isCrowded;
  }

  appendPage(body: ByteBuffer): Encoding {
    const encoding = this.pages.appendPage(body, this.plain);
    if (this.pages.isOpen && this.isDictionaryUseless()) this.endDictionary();
    return encoding;
  }

  endDictionary(): void {
    this.pages.close();
  }

  dictionary() {
    return this.pages.dictionary();
  }

  bounds() {
    if (this.isEmpty) return undefined;
    return {
      min_value: this.statistic(this.leastHigh, this.leastLow),
      max_value: this.statistic(this.greatestHigh, this.greatestLow),
    };
  }

  clear(): void {
    this.numbers.clear();
    this.pages.clear();
    this.plain.clear();
    this.comparedCount = 0;
    this.isEmpty = true;
  }

  private write(row: number, rowCount: number, high: number, low: number, hash: number): void {
    const { writer } = this;
    const taken = this.push(writer.beginRows(row, rowCount), high, low, hash);
    writer.endRows(row, taken, this.isFull);
    if (taken < rowCount) this.write(row + taken, rowCount - taken, high, low, hash);
  }

  /** @returns how many times it was written: once where the page may be full with it */
  private push(times: number, high: number, low: number, hash: number): number {
    const { pages, numbers, plain } = this;
    if (!pages.isOpen) {
      this.compare(high ^ SIGN, low ^ this.lowSign);
      plain.appendUint32(low);
      if (this.type === 'INT64') plain.appendUint32(high);
      return 1;
    }
    if (this.index < 0) {
      this.index = numbers.indexOf(high, low, hash);
      // One that is there already was compared when it came first.
      if (this.index >= this.comparedCount) {
        this.compare(high ^ SIGN, low ^ this.lowSign);
        this.comparedCount = numbers.count;
      }
    }
    const taken = this.isFull ? 1 : times;
    pages.push(this.index, taken);
    return taken;
  }

  /** Values that are all different, such as times of ends, take less room, and no time to be found, without one. */
  private isDictionaryUseless(): boolean {
    return this.numbers.count > USELESS_DISTINCT && this.numbers.count > 0.9 * this.pages.valueCount;
  }

  private compare(high: number, low: number): void {
    if (this.isEmpty || high < this.leastHigh || (high === this.leastHigh && low < this.leastLow)) {
      this.leastHigh = high;
      this.leastLow = low;
    }
    if (this.isEmpty || high > this.greatestHigh || (high === this.greatestHigh && low > this.greatestLow)) {
      this.greatestHigh = high;
      this.greatestLow = low;
    }
    this.isEmpty = false;
  }

  private statistic(high: number, low: number): number | bigint {
    const ownLow = low ^ this.lowSign;
    if (this.kind === 'int32') return ownLow;
    if (this.kind === 'uint32') return ownLow >>> 0;
    return (BigInt((high ^ SIGN) >>> 0) << 32n) | BigInt(ownLow >>> 0);
  }
}

/** A column of booleans, one bit each. */
export class BooleanColumn implements ColumnValues {
  readonly type = 'BOOLEAN';
  readonly hasDictionary = false;
  readonly writer: ColumnWriter;
  private readonly plain = new ByteBuffer();
  private count = 0;
  private hasFalse = false;
  private hasTrue = false;

  constructor(leaf: LeafColumn, encoder: PageEncoder) {
    this.writer = new ColumnWriter(leaf, this, encoder);
  }

  /** Writes a value into a row, or into two that follow one another. @param rowCount 1 or 2 */
  append(row: number, rowCount: number, value: boolean): void {
    const { writer, plain } = this;
    const taken = writer.beginRows(row, rowCount);
    for (let time = 0; time < taken; time++) {
      if (this.count % 8 === 0) plain.appendUint8(0);
      if (value) plain.setBit(plain.length - 1, this.count % 8);
      this.count++;
    }
    if (value) this.hasTrue = true;
    else this.hasFalse = true;
    // A page of 20,000 bits is never large.
    writer.endRows(row, taken, false);
    if (taken < rowCount) this.append(row + taken, rowCount - taken, value);
  }

  get bufferedBytes(): number {
    return this.plain.length;
  }

  appendPage(body: ByteBuffer): Encoding {
    body.appendBytes(this.plain.source, 0, this.plain.length);
    this.plain.clear();
    this.count = 0;
    return 'PLAIN';
  }

  endDictionary(): void {}

  dictionary(): undefined {
    return undefined;
  }

  bounds() {
    return this.hasTrue || this.hasFalse ? { min_value: !this.hasFalse, max_value: this.hasTrue } : undefined;
  }

  clear(): void {
    this.plain.clear();
    this.count = 0;
    this.hasFalse = false;
    this.hasTrue = false;
  }
}

/** Size at which a dictionary is given up and further pages hold the values themselves: the engine's (parquet-rs's) own. */
const MAX_DICTIONARY_BYTES = 1024 * 1024;
/** Size at which a page without a dictionary ends: the engine's own. */
const PAGE_BYTES = 1024 * 1024;

/** The values of one column of a row group: those of the open page, and the dictionary that its pages refer to. */
interface ColumnValues {
  readonly type: ParquetType;
  /** The engine writes dictionaries for everything but booleans. */
  readonly hasDictionary: boolean;
  /** Bytes held, roughly. */
  readonly bufferedBytes: number;
  /** Appends the values of the open page to its body, and begins the next page. */
  appendPage(body: ByteBuffer): Encoding;
  /** Further pages will hold the values themselves. */
  endDictionary(): void;
  /** The dictionary page's body; `undefined` where no page refers to it. Valid until `clear`. */
  dictionary(): Dictionary | undefined;
  /** The least and greatest value; none where not all values were looked at. */
  bounds(): Pick<Statistics, 'min_value' | 'max_value'> | undefined;
  /** Begins the next row group. */
  clear(): void;
}

/** A finished page: its bytes in the file and the first row that it holds. */
interface Page {
  readonly bytes: Uint8Array;
  readonly firstRow: number;
}

/**
 * Writes one column, row group after row group. Only finished, compressed pages, the dictionary (at most 1 MiB) and one
 * open page (at most 1 MiB or 20,000 rows) are held. Rows that are passed over are null, so an absent value costs nothing.
 * A value is written between `beginRows` and `endRows`, straight into the column's values; a list between `beginList` and
 * `endList`.
 */
export class ColumnWriter {
  private pages: Page[] = [];
  private readonly presence: PresenceLevels | undefined;
  private readonly list: ListLevels | undefined;
  private firstRowOfPage = 0;
  /** The row behind the last one that the open page can have. */
  private pageEnd = PAGE_ROWS;
  /** Of a column of lists, the row whose levels come next. */
  private nextList = 0;
  private levelCount = 0;
  private nullCount = 0;
  private uncompressedBytes = 0;
  private pageBytes = 0;

  constructor(
    private readonly column: LeafColumn,
    private readonly values: ColumnValues,
    private readonly encoder: PageEncoder,
  ) {
    this.list = column.maxRepetition > 0 ? new ListLevels() : undefined;
    this.presence = column.maxRepetition === 0 && column.maxDefinition > 0 ? new PresenceLevels() : undefined;
  }

  /** Bytes held for the row group, roughly. */
  get bufferedBytes(): number {
    return this.pageBytes + this.values.bufferedBytes;
  }

  /**
   * The next value is that of `row`, and of the one behind it where `count` is 2; rows between the last written one and this one
   * become null.
   * @returns how many of them the open page can have
   */
  beginRows(row: number, count: number): number {
    if (row >= this.pageEnd) this.endPages(row);
    return row + count > this.pageEnd ? this.pageEnd - row : count;
  }

  /** Ends the rows that were begun, as many of them as have the value. @param isFull whether the column's values say that the page has to end */
  endRows(row: number, count: number, isFull: boolean): void {
    this.presence?.set(row - this.firstRowOfPage, count);
    const end = row + count;
    if (isFull || end === this.pageEnd) this.endPage(end);
    if (isFull) this.values.endDictionary();
  }

  /** The same as `beginRows` for a row that is a list. */
  beginList(row: number): void {
    if (row >= this.pageEnd) this.endPages(row);
    this.passLists(row);
  }

  /** The same as `endRows` for it. */
  endList(row: number, isFull: boolean): void {
    this.nextList = row + 1;
    this.endRows(row, 1, isFull);
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
    this.endPages(rowCount);
    if (rowCount > this.firstRowOfPage) this.endPage(rowCount);
    const { values, column } = this;
    const dictionary = values.dictionary();
    const dictionaryPage =
      dictionary === undefined
        ? undefined
        : this.encoder.encode(dictionary.values, {
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
    this.firstRowOfPage = 0;
    this.pageEnd = PAGE_ROWS;
    this.nextList = 0;
    this.levelCount = 0;
    this.nullCount = 0;
    this.uncompressedBytes = 0;
    this.pageBytes = 0;
  }

  /** Ends the pages that have all of their rows before one. */
  private endPages(row: number): void {
    while (row >= this.pageEnd) this.endPage(this.pageEnd);
  }

  /** Rows before this one that are not written are no lists. */
  private passLists(row: number): void {
    const { list } = this;
    if (list === undefined || row === this.nextList) return;
    list.pushNulls(row - this.nextList);
    this.nullCount += row - this.nextList;
    this.nextList = row;
  }

  private endPage(end: number): void {
    const { list, presence, encoder } = this;
    const { body } = encoder;
    const rowsInPage = end - this.firstRowOfPage;
    this.passLists(end);
    const levelsInPage = list?.count ?? rowsInPage;
    body.clear();
    list?.appendPage(body);
    if (presence !== undefined) this.nullCount += rowsInPage - presence.appendPage(body, rowsInPage);
    const encoding = this.values.appendPage(body);
    const { bytes, uncompressedBytes } = encoder.encode(body, {
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
    this.firstRowOfPage = end;
    this.pageEnd = end + PAGE_ROWS;
  }
}

function encodingsUsed(hasDictionary: boolean, isDictionaryUsed: boolean): Encoding[] {
  if (!hasDictionary) return ['PLAIN', 'RLE'];
  return isDictionaryUsed ? ['PLAIN', 'RLE', 'RLE_DICTIONARY'] : ['PLAIN', 'RLE'];
}

/** Distinct values, each with an index. */
interface Dictionary {
  readonly values: ByteBuffer;
  readonly count: number;
}

/** The pages that refer to a dictionary: the indexes of the open one, and whether there will be more of them. */
class DictionaryPages {
  /** Whether values are looked up; afterwards pages hold the values themselves. */
  isOpen = true;
  private readonly indexes = new Uint32List();
  private pageCount = 0;
  /** Values in pages that refer to the dictionary. */
  valueCount = 0;

  constructor(private readonly distinct: Dictionary) {}

  get bufferedBytes(): number {
    return this.indexes.length * 4;
  }

  push(index: number, times: number): void {
    this.indexes.push(index, times);
  }

  close(): void {
    this.isOpen = false;
  }

  /** Appends the open page's indexes, or the values in `plain` once the dictionary is closed. */
  appendPage(body: ByteBuffer, plain: ByteBuffer): Encoding {
    if (!this.isOpen) {
      body.appendBytes(plain.source, 0, plain.length);
      plain.clear();
      return 'PLAIN';
    }
    this.pageCount++;
    this.valueCount += this.indexes.length;
    const bitWidth = Math.max(1, 32 - Math.clz32(Math.max(0, this.distinct.count - 1)));
    body.appendUint8(bitWidth);
    appendHybrid(body, this.indexes.values, this.indexes.length, bitWidth);
    this.indexes.clear();
    return 'RLE_DICTIONARY';
  }

  dictionary(): Dictionary | undefined {
    if (this.pageCount === 0) return undefined;
    return this.distinct;
  }

  clear(): void {
    this.isOpen = true;
    this.pageCount = 0;
    this.valueCount = 0;
    this.indexes.clear();
  }
}
