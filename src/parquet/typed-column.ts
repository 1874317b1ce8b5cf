import { BooleanValues } from './boolean-values.js';
import { ByteBuffer } from './byte-buffer.js';
import type { ByteSource } from './byte-source.js';
import { ColumnWriter } from './column-writer.js';
import type { LeafColumn } from './leaf-column.js';
import { type NumberKind, NumberValues } from './number-values.js';
import { TextValues } from './text-values.js';

const MAX_UINT32 = 0xffffffffn;

/** A column of texts. */
export class TextColumn {
  readonly writer: ColumnWriter;
  private readonly values = new TextValues();
  private readonly scratch = new ByteBuffer();

  constructor(leaf: LeafColumn) {
    this.writer = new ColumnWriter(leaf, this.values);
  }

  /** Writes a row's text, which lies in `source` as UTF-8 from `start` to `end`. */
  append(row: number, source: ByteSource, start: number, end: number): void {
    this.writer.beginRow(row);
    this.values.append(source, start, end);
    this.writer.endRow(this.values.isFull);
  }

  appendText(row: number, text: string): void {
    this.scratch.clear();
    this.scratch.appendText(text);
    this.append(row, this.scratch.source, 0, this.scratch.length);
  }

  /** Writes an item of a row's list; between the writer's `beginRow` and this `endRow`. */
  appendItem(index: number, source: ByteSource, start: number, end: number): void {
    this.writer.beginItem(index);
    this.values.append(source, start, end);
  }

  /** Ends a row that is a list. */
  endRow(): void {
    this.writer.endRow(this.values.isFull);
  }

  appendItemText(index: number, text: string): void {
    this.scratch.clear();
    this.scratch.appendText(text);
    this.appendItem(index, this.scratch.source, 0, this.scratch.length);
  }
}

/** A column of integers. */
export class NumberColumn {
  readonly writer: ColumnWriter;
  private readonly values: NumberValues;

  constructor(leaf: LeafColumn, kind: NumberKind) {
    this.values = new NumberValues(kind);
    this.writer = new ColumnWriter(leaf, this.values);
  }

  /** Writes a row's number of 64 bits, given as two unsigned halves. */
  append(row: number, high: number, low: number): void {
    this.writer.beginRow(row);
    this.values.append(high, low);
    this.writer.endRow(this.values.isFull);
  }

  /** Writes a row's number of 32 bits, with or without a sign. */
  appendNumber(row: number, value: number): void {
    this.append(row, 0, value >>> 0);
  }

  appendBigint(row: number, value: bigint): void {
    this.append(row, Number((value >> 32n) & MAX_UINT32), Number(value & MAX_UINT32));
  }

  /** Writes 16 hexadecimal digits as the number of their bytes read big-endian: a span id. */
  appendHex(row: number, digits: string): void {
    this.append(row, Number.parseInt(digits.slice(0, 8), 16), Number.parseInt(digits.slice(8), 16));
  }

  /** Writes an item of a row's list; between the writer's `beginRow` and this `endRow`. */
  appendItem(index: number, high: number, low: number): void {
    this.writer.beginItem(index);
    this.values.append(high, low);
  }

  /** Ends a row that is a list. */
  endRow(): void {
    this.writer.endRow(this.values.isFull);
  }

  appendItemHex(index: number, digits: string): void {
    this.appendItem(index, Number.parseInt(digits.slice(0, 8), 16), Number.parseInt(digits.slice(8), 16));
  }
}

/** A column of booleans. */
export class BooleanColumn {
  readonly writer: ColumnWriter;
  private readonly values = new BooleanValues();

  constructor(leaf: LeafColumn) {
    this.writer = new ColumnWriter(leaf, this.values);
  }

  append(row: number, value: boolean): void {
    this.writer.beginRow(row);
    this.values.append(value);
    this.writer.endRow(this.values.isFull);
  }
}
