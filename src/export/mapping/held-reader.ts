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
  private itemStart = 0;
  private itemEnd = 0;
  /** What was looked at before, while an item is. */
  private before = 0;
  private isReading = false;

  /** Makes room where there is none; others may have forgotten what the layouts of held spans are made of. No record may be in use. */
  tidy(): void {
    this.reading.layouts.tidy();
  }

  /** Looks at the record of a span: it is good until `end` is called, as it has to be. */
  begin(held: HeldSpan): CellRecord | PlainRecord {
    if (held.line !== undefined) {
      const record = tryParseRecordLine(held.line.toString('utf8'));
      if (record === undefined) throw new Error('a line that was read cannot be read again');
      return new PlainRecord(record);
    }
    texts.tidy();
    const before = pointAt(SECOND_RECORD);
    if (!this.isReading) this.before = before;
    this.isReading = true;
    return this.readItem(held);
  }

  /** Looks again at what was looked at before. */
  end(): void {
    if (this.isReading) pointAt(this.before);
    this.isReading = false;
  }

  /** What plain code makes of the item that is being read. */
  plain(): PlainRecord {
    return new PlainRecord(this.reading.endOf(Buffer.from(buffer.subarray(this.itemStart, this.itemEnd))));
  }

  private readItem({ start, end, item, cells, layouts }: HeldSpan): CellRecord | PlainRecord {
    this.itemStart = item === undefined ? start : COPIED;
    this.itemEnd = item === undefined ? end : COPIED + item.copy(buffer, COPIED);
    const hasCells = item === undefined && layouts === this.reading.layouts.forgottenCount;
    if (hasCells) pointAt(cells);
    if (!hasCells && !this.reading.cells.readSpan(this.itemStart, this.itemEnd)) return this.plain();
    const plan = this.plans.of(cell(Cell.layout));
    this.record ??= new CellRecord(plan, false);
    this.record.use(plan, false);
    return this.record;
  }
}
