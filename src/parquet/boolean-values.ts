import type { Encoding } from 'hyparquet';
import { ByteBuffer } from './byte-buffer.js';
import type { ColumnValues } from './column-values.js';

/** Booleans, one bit each. */
export class BooleanValues implements ColumnValues {
  readonly type = 'BOOLEAN';
  readonly hasDictionary = false;
  /** A page of 20,000 bits is never large. */
  readonly isFull = false;
  private readonly plain = new ByteBuffer();
  private count = 0;
  private hasFalse = false;
  private hasTrue = false;

  get heldBytes(): number {
    return this.plain.length;
  }

  append(value: boolean): void {
    if (this.count % 8 === 0) this.plain.appendUint8(0);
    if (value) this.plain.setBit(this.plain.length - 1, this.count % 8);
    this.count++;
    if (value) this.hasTrue = true;
    else this.hasFalse = true;
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
