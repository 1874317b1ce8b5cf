import type { Encoding } from 'hyparquet';
import type { ByteBuffer } from './byte-buffer.js';
import { appendHybrid } from './hybrid-encoding.js';
import { Uint32List } from './uint32-list.js';

/** Distinct values, each with an index. */
interface Dictionary {
  readonly values: ByteBuffer;
  readonly count: number;
}

/** The pages that refer to a dictionary: the indexes of the open one, and whether there will be more of them. */
export class DictionaryPages {
  /** Whether values are looked up; afterwards pages hold the values themselves. */
  isOpen = true;
  private readonly indexes = new Uint32List();
  private pageCount = 0;
  /** Values in pages that refer to the dictionary. */
  valueCount = 0;

  constructor(private readonly distinct: Dictionary) {}

  get heldBytes(): number {
    return this.indexes.length * 4;
  }

  push(index: number): void {
    this.indexes.push(index);
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

  dictionary(): { readonly bytes: Uint8Array; readonly count: number } | undefined {
    if (this.pageCount === 0) return undefined;
    return { bytes: this.distinct.values.content(), count: this.distinct.count };
  }

  clear(): void {
    this.isOpen = true;
    this.pageCount = 0;
    this.valueCount = 0;
    this.indexes.clear();
  }
}
