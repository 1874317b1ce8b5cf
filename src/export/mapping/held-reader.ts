import { itemReading } from '../../otlp/wire/read-items.js';
import { buffer, REGION } from '../../record/arena.js';
import { Cell, cell, pointAt, SECOND_RECORD } from '../../record/cells.js';
import { tryParseRecordLine } from '../../record/record-line.js';
import { texts } from '../../record/texts.js';
import { CellRecord } from './cell-record.js';
import type { HeldSpan } from './held-spans.js';
import { PlainRecord } from './mapped-record.js';
import { recordPlans } from './record-plans.js';

/** Where an item stands that was copied out of the arena. */
const COPIED = REGION.scratch + 12 * 1024 * 1024;

/** Reads held spans again. */
export class HeldReader {
  private readonly reading = itemReading();
  private readonly plans = recordPlans();
  private record: CellRecord | undefined;
  private start = 0;
  private end = 0;

  /** Makes room where there is none; others may have forgotten what the layouts of held spans are made of. No record may be in use. */
  tidy(): void {
    this.reading.layouts.tidy();
  }

  /** Calls `use` with the record of a span, which is only good for that time. */
  read(held: HeldSpan, use: (record: CellRecord | PlainRecord) => void): void {
    if (held.line !== undefined) {
      const record = tryParseRecordLine(held.line.toString('utf8'));
      if (record === undefined) throw new Error('a line that was read cannot be read again');
      use(new PlainRecord(record));
      return;
    }
    texts.tidy();
    const before = pointAt(SECOND_RECORD);
    try {
      use(this.readItem(held));
    } finally {
      pointAt(before);
    }
  }

  /** What plain code makes of the item that is being read. */
  plain(): PlainRecord {
    return new PlainRecord(this.reading.endOf(Buffer.from(buffer.subarray(this.start, this.end))));
  }

  private readItem({ start, end, item, cells, layouts }: HeldSpan): CellRecord | PlainRecord {
    this.start = item === undefined ? start : COPIED;
    this.end = item === undefined ? end : COPIED + item.copy(buffer, COPIED);
    const hasCells = item === undefined && layouts === this.reading.layouts.forgottenCount;
    if (hasCells) pointAt(cells);
    if (!hasCells && !this.reading.cells.readSpan(this.start, this.end)) return this.plain();
    const plan = this.plans.of(cell(Cell.layout));
    this.record ??= new CellRecord(plan, false);
    this.record.use(plan, false);
    return this.record;
  }
}
