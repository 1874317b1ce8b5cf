import type { ByteBuffer } from './byte-buffer.js';
import type { ByteCursor } from './byte-cursor.js';
import { ByteSource } from './byte-source.js';
import type { KeyOrder } from './key-order.js';

const OBJECT = 0x7b;
const LIST = 0x5b;
const COMMA = 0x2c;
const OBJECT_END = 0x7d;
const LIST_END = 0x5d;

/** A key with its colon, as it stands in a line, and the order of the object that it may hold. */
interface OrderedKey {
  readonly bytes: ByteSource;
  readonly order: OrderedCopy | null;
}

/** Copies JSON objects with their keys in an order; those that the order does not know follow as they came. */
export class OrderedCopy {
  private readonly keys: readonly OrderedKey[];
  /** Where the values of `keys` are in the object that is copied; -1 where one is missing. */
  private readonly starts: Int32Array;
  private readonly ends: Int32Array;

  constructor(order: KeyOrder) {
    this.keys = Object.entries(order).map(([key, inner]) => ({
      bytes: ByteSource.of(`"${key}":`),
      order: inner === null ? null : new OrderedCopy(inner),
    }));
    this.starts = new Int32Array(this.keys.length);
    this.ends = new Int32Array(this.keys.length);
  }

  /**
   * Appends the value at the cursor, which `ByteCursor.value` has passed before, and passes it: an object, or the objects of
   * a list, in the order. Orders do not hold themselves, so an object within this one uses another order's places.
   */
  append(cursor: ByteCursor, out: ByteBuffer): void {
    const { bytes } = cursor;
    if (bytes[cursor.at] === LIST && bytes[cursor.at + 1] !== LIST_END) {
      do {
        out.appendUint8(bytes[cursor.at++] ?? 0);
        this.appendItem(cursor, out);
      } while (bytes[cursor.at] === COMMA);
      cursor.at++;
      out.appendUint8(LIST_END);
    } else {
      this.appendItem(cursor, out);
    }
  }

  private appendItem(cursor: ByteCursor, out: ByteBuffer): void {
    if (cursor.bytes[cursor.at] === OBJECT) {
      this.appendObject(cursor, out);
      return;
    }
    const start = cursor.at;
    cursor.value();
    out.appendBytes(cursor.source, start, cursor.at);
  }

  private appendObject(cursor: ByteCursor, out: ByteBuffer): void {
    const others = this.find(cursor);
    const end = cursor.at;
    const begin = out.length;
    this.keys.forEach(({ bytes: key, order }, index) => {
      const start = this.starts[index] ?? -1;
      if (start < 0) return;
      out.appendUint8(out.length === begin ? OBJECT : COMMA);
      out.appendBytes(key);
      if (order === null) {
        out.appendBytes(cursor.source, start, this.ends[index]);
      } else {
        cursor.at = start;
        order.append(cursor, out);
      }
    });
    for (const { start, end } of others) {
      out.appendUint8(out.length === begin ? OBJECT : COMMA);
      out.appendBytes(cursor.source, start, end);
    }
    if (out.length === begin) out.appendUint8(OBJECT);
    out.appendUint8(OBJECT_END);
    cursor.at = end;
  }

  /** Finds the values of the keys, and the entries that the order does not know; passes the object. */
  private find(cursor: ByteCursor): { readonly start: number; readonly end: number }[] {
    const { bytes } = cursor;
    const others: { start: number; end: number }[] = [];
    this.starts.fill(-1);
    do {
      const start = ++cursor.at;
      if (bytes[start] === OBJECT_END) break;
      const index = this.keys.findIndex((key) => cursor.pass(key.bytes));
      if (index < 0) cursor.key();
      const valueStart = cursor.at;
      cursor.value();
      if (index < 0) {
        others.push({ start, end: cursor.at });
      } else {
        this.starts[index] = valueStart;
        this.ends[index] = cursor.at;
      }
    } while (bytes[cursor.at] === COMMA);
    cursor.at++;
    return others;
  }
}
