import { CELL, type RecordPage } from '../record/record-page.js';
import { SpanIdTable, spanIdHalves } from '../record/span-id-table.js';
import type { SpanEnd, SpanStart } from '../record/telemetry-record.js';

/** A span's start, its end. */
export const STARTED = 1;
export const ENDED = 2;
const BOTH = STARTED | ENDED;
/** A span's value in the table: number of its name, then these two bits. */
const NAME_SHIFT = 2;

/** Which spans' starts and ends a trace's record log holds, and what those that came last are called. */
export class KnownSpans {
  private readonly table = new SpanIdTable();
  private readonly names = new SpanNames();

  /** Memory that they take, in bytes, about. */
  get byteCount(): number {
    return this.table.byteCount + this.names.byteCount;
  }

  /** Adds a span's record and its name; false when it was there. */
  add(record: SpanStart | SpanEnd): boolean {
    const [high, low] = spanIdHalves(record.spanId);
    const slot = this.table.slotFor(high, low);
    const value = this.table.valueAt(slot);
    const what = record.recordType === 'SpanStart' ? STARTED : ENDED;
    if ((value & what) !== 0) return false;
    const name = this.names.add(Buffer.from(JSON.stringify(record.spanName)));
    this.table.setValueAt(slot, (name << NAME_SHIFT) | (value & BOTH) | what);
    return true;
  }

  /** Adds both records of a page's span. Returns which of them are new: `STARTED`, `ENDED`, both or 0. */
  addBoth(page: RecordPage, span: number): number {
    const slot = this.table.slotFor(page.cell(span, CELL.idHigh), page.cell(span, CELL.idLow));
    const value = this.table.valueAt(slot);
    if ((value & BOTH) === BOTH) return 0;
    const name = this.names.add(page.lines, page.cell(span, CELL.nameStart), page.cell(span, CELL.nameEnd));
    this.table.setValueAt(slot, (name << NAME_SHIFT) | BOTH);
    return BOTH & ~value;
  }

  /** The name, as JSON, of the span whose id has these halves, if it was one of the last. Not to be kept. */
  nameJson(high: number, low: number): Uint8Array | undefined {
    const value = this.table.getHalves(high, low);
    return value === undefined ? undefined : this.names.get(value >>> NAME_SHIFT);
  }
}

/** Names that are kept: at most this many a trace, the latest; a log record of an older span gets its name inferred. */
const MAX_NAMES = 16_384;
/** Bytes of names that are kept. */
const MAX_BYTES = 2 * 1024 * 1024;
/** Names are numbered up to here; of what comes after it, none is kept. */
const MAX_NUMBER = 2 ** 29;
/** A number in a list. */
const NUMBER_BYTES = 8;
/** Stands for a name that is not kept. */
const NONE = 0;

/** Names of spans by number, as JSON: the latest ones, in two generations of which the older is dropped. */
class SpanNames {
  private recent = new Generation(1);
  private older = new Generation(1);

  /** Keeps the name whose JSON stands there. Returns its number. */
  add(from: Uint8Array, start = 0, end = from.length): number {
    const length = end - start;
    if (length > MAX_BYTES / 2 || this.recent.nextNumber >= MAX_NUMBER) return NONE;
    if (this.recent.count >= MAX_NAMES / 2 || this.recent.byteCount + length > MAX_BYTES / 2) {
      this.older = this.recent;
      this.recent = new Generation(this.older.nextNumber);
    }
    return this.recent.append(from, start, end);
  }

  /** Memory that they take, in bytes, about. */
  get byteCount(): number {
    return this.recent.capacityBytes + this.older.capacityBytes;
  }

  /** The name's JSON, not to be kept. */
  get(number: number): Uint8Array | undefined {
    return this.recent.get(number) ?? this.older.get(number);
  }
}

/** Names one behind the other, and where each ends. */
class Generation {
  private readonly ends: number[] = [];
  private bytes = Buffer.alloc(0);
  byteCount = 0;

  constructor(private readonly firstNumber: number) {}

  get count(): number {
    return this.ends.length;
  }

  get capacityBytes(): number {
    return this.bytes.length + this.ends.length * NUMBER_BYTES;
  }

  get nextNumber(): number {
    return this.firstNumber + this.ends.length;
  }

  append(from: Uint8Array, start: number, end: number): number {
    const length = end - start;
    if (this.byteCount + length > this.bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(4096, 2 * this.bytes.length, this.byteCount + length));
      this.bytes.copy(larger, 0, 0, this.byteCount);
      this.bytes = larger;
    }
    for (let index = start; index < end; index++) this.bytes[this.byteCount++] = from[index] as number;
    this.ends.push(this.byteCount);
    return this.nextNumber - 1;
  }

  get(number: number): Uint8Array | undefined {
    const place = number - this.firstNumber;
    const end = this.ends[place];
    if (end === undefined) return undefined;
    return this.bytes.subarray(this.ends[place - 1] ?? 0, end);
  }
}
