import type { ByteBuffer } from './byte-buffer.js';
import { appendHybrid, appendHybridBits } from './hybrid-encoding.js';
import { Uint32List } from './uint32-list.js';

/** Which rows of the open page have a value: one bit each, so that rows without one cost nothing. */
export class PresenceLevels {
  private bits = new Uint8Array(128);

  /** @param rowInPage counts from 0 in each page */
  set(rowInPage: number): void {
    const at = rowInPage >>> 3;
    if (at >= this.bits.length) this.grow(at + 1);
    this.bits[at] = (this.bits[at] ?? 0) | (1 << (rowInPage & 7));
  }

  /** Appends the page's definition levels and begins the next page. */
  appendPage(body: ByteBuffer, rowsInPage: number): void {
    if (this.bits.length * 8 < rowsInPage) this.grow(Math.ceil(rowsInPage / 8));
    appendBlock(body, () => appendHybridBits(body, this.bits, rowsInPage));
    this.clear();
  }

  clear(): void {
    this.bits.fill(0);
  }

  /** A column's first value may stand far into the page, so doubling once may not be enough. */
  private grow(neededBytes: number): void {
    const { bits } = this;
    this.bits = new Uint8Array(Math.max(neededBytes, bits.length * 2));
    this.bits.set(bits);
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
    this.definitions.push(definition);
    this.repetitions.push(repetition);
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
