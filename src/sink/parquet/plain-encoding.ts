import type { ParquetType } from 'hyparquet';
import { ownText } from '../../record/own-text.js';
import type { ByteBuffer } from './byte-buffer.js';

/** A value as Parquet statistics carry it. */
export type StatisticValue = bigint | number | boolean;

/** How values of one kind are written one after another (Parquet's PLAIN), and ordered in statistics. */
export interface PlainEncoding<T> {
  readonly type: ParquetType;
  /** @param index how many values stand in `out` already; only booleans, packed eight to a byte, need it. */
  append(out: ByteBuffer, value: T, index: number): void;
  /** The value for statistics; `null` where their order is that of the encoded bytes. */
  statistic(value: T): StatisticValue | null;
  /** A value to be kept for long, where it may be a text cut out of a longer one. */
  own?(value: T): T;
  /** The engine writes dictionaries for everything but booleans. */
  readonly hasDictionary: boolean;
}

/** UTF-8 text behind its length. */
export const TEXT: PlainEncoding<string> = {
  type: 'BYTE_ARRAY',
  append: (out, value) => out.appendText(value),
  statistic: () => null,
  own: ownText,
  hasDictionary: true,
};

/** Span ids: 16 hexadecimal digits, written as the number of their bytes read big-endian. */
export const SPAN_ID: PlainEncoding<string> = {
  type: 'INT64',
  append(out, value) {
    out.appendUint32(Number.parseInt(value.slice(8), 16));
    out.appendUint32(Number.parseInt(value.slice(0, 8), 16));
  },
  statistic: (value) => BigInt(`0x${value}`),
  own: ownText,
  hasDictionary: true,
};

/** Times and unsigned 64-bit numbers. */
export const INT64: PlainEncoding<bigint> = {
  type: 'INT64',
  append: (out, value) => out.appendUint64(value),
  statistic: (value) => value,
  hasDictionary: true,
};

/** Signed and unsigned 32-bit numbers. */
export const INT32: PlainEncoding<number> = {
  type: 'INT32',
  append: (out, value) => out.appendUint32(value),
  statistic: (value) => value,
  hasDictionary: true,
};

/** Booleans, one bit each. */
export const BOOLEAN: PlainEncoding<boolean> = {
  type: 'BOOLEAN',
  append(out, value, index) {
    if (index % 8 === 0) out.appendUint8(0);
    if (value) out.setBit(out.length - 1, index % 8);
  },
  statistic: (value) => value,
  hasDictionary: false,
};
