import type { Encoding } from 'hyparquet';
import { ByteBuffer } from './byte-buffer.js';
import { type ColumnValues, MAX_DICTIONARY_BYTES, PAGE_BYTES } from './column-values.js';
import { DictionaryPages } from './dictionary-pages.js';
import { NumberDictionary } from './number-dictionary.js';

/** Which numbers: four bytes with or without a sign, or eight bytes without one (times are below 2^63). */
export type NumberKind = 'int32' | 'uint32' | 'uint64';

/** Distinct numbers from which on it is asked whether nearly all of them are. */
const USELESS_DISTINCT = 2_000;

/** Numbers, given as two halves of 32 bits; those of four bytes have 0 (or, below zero, anything) in the high one. */
export class NumberValues implements ColumnValues {
  readonly hasDictionary = true;
  readonly type: 'INT32' | 'INT64';
  private readonly numbers: NumberDictionary;
  private readonly pages: DictionaryPages;
  private readonly plain = new ByteBuffer();
  private isEmpty = true;
  private leastHigh = Number.NaN;
  private leastLow = Number.NaN;
  private greatestHigh = Number.NaN;
  private greatestLow = Number.NaN;
  /** What is added to the low half so that unsigned comparison orders signed numbers. */
  private readonly bias: number;

  constructor(private readonly kind: NumberKind) {
    this.type = kind === 'uint64' ? 'INT64' : 'INT32';
    this.bias = kind === 'int32' ? 0x80000000 : 0;
    this.numbers = new NumberDictionary(kind === 'uint64' ? 8 : 4);
    this.pages = new DictionaryPages(this.numbers);
  }

  get heldBytes(): number {
    return this.numbers.values.length + this.plain.length + this.pages.heldBytes;
  }

  get isFull(): boolean {
    if (!this.pages.isOpen) return this.plain.length >= PAGE_BYTES;
    return this.numbers.values.length > MAX_DICTIONARY_BYTES || this.numbers.isCrowded;
  }

  /** @param high unsigned, 0 for numbers of four bytes @param low unsigned */
  append(high: number, low: number): void {
    this.compare(high, (low + this.bias) >>> 0);
    if (this.pages.isOpen) {
      this.pages.push(this.numbers.indexOf(high, low));
    } else {
      this.plain.appendUint32(low);
      if (this.type === 'INT64') this.plain.appendUint32(high);
    }
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
    this.isEmpty = true;
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
    return this.kind === 'uint64' ? (BigInt(high) << 32n) | BigInt(low) : low - this.bias;
  }
}
