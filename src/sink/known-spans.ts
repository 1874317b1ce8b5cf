import type { SpanId } from '../record/ids.js';
import { SpanIdTable, spanIdHalves } from '../record/span-id-table.js';
import { CELL, type SpanPage } from '../record/span-page.js';
import type { SpanEnd, SpanStart } from '../record/telemetry-record.js';
import { SpanNames } from './span-names.js';

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
  addBoth(page: SpanPage, span: number): number {
    const slot = this.table.slotFor(page.cell(span, CELL.idHigh), page.cell(span, CELL.idLow));
    const value = this.table.valueAt(slot);
    if ((value & BOTH) === BOTH) return 0;
    const name = this.names.add(page.lines, page.cell(span, CELL.nameStart), page.cell(span, CELL.nameEnd));
    this.table.setValueAt(slot, (name << NAME_SHIFT) | BOTH);
    return BOTH & ~value;
  }

  /** The span's name, if it was one of the last. */
  nameOf(id: SpanId): string | undefined {
    const value = this.table.get(id);
    return value === undefined ? undefined : this.names.get(value >>> NAME_SHIFT);
  }
}
