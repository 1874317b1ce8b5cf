import { wrapped } from '../../otlp/any-value.js';
import type { ItemRecords } from '../../otlp/item-records.js';
import { ProtobufCodec } from '../../otlp/protobuf-codec.js';
import { itemReading } from '../../otlp/wire/read-items.js';
import { buffer, REGION, textAt } from '../../record/arena.js';
import { Cell, cell, pointAt, SECOND_RECORD } from '../../record/cells.js';
import { tryParseRecordLine } from '../../record/record-line.js';
import type { SpanEnd } from '../../record/telemetry-record.js';
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
  private hasCells = false;

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
    this.before = pointAt(SECOND_RECORD);
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
    const known = this.ofLine();
    if (known !== undefined) return known;
    const item = Buffer.from(buffer.subarray(this.itemStart, this.itemEnd));
    return new PlainRecord(endOf(item, this.reading.records));
  }

  /** The record of the line that is written of the item that is looked at, which is parsed several times faster; `undefined` where it has no cells. */
  private ofLine(): PlainRecord | undefined {
    if (!this.hasCells) return undefined;
    const { lines } = this.reading;
    const end = lines.span(REGION.lines);
    const record = lines.isUnusual ? undefined : tryParseRecordLine(textAt(lines.endLine, end - 1));
    return record === undefined ? undefined : new PlainRecord(record);
  }

  private readItem({ start, end, item, cells, layouts }: HeldSpan): CellRecord | PlainRecord {
    this.itemStart = item === undefined ? start : COPIED;
    this.itemEnd = item === undefined ? end : COPIED + item.copy(buffer, COPIED);
    const { reading } = this;
    const areKept = item === undefined && layouts === reading.layouts.forgottenCount;
    if (areKept) pointAt(cells);
    this.hasCells = areKept || reading.cells.readSpan(this.itemStart, this.itemEnd);
    if (!this.hasCells) return this.plain();
    const plan = this.plans.of(cell(Cell.layout));
    this.record ??= new CellRecord(plan, false);
    this.record.use(plan, false);
    return this.record;
  }
}

const NOTHING = Buffer.alloc(0);
/** Made when the first item is read that has no cells: hardly any. */
let codec: ProtobufCodec | undefined;

/** The end of a span, of its item without tag and length. @throws Error where it is none that was kept */
function endOf(item: Buffer, records: ItemRecords): SpanEnd {
  codec ??= new ProtobufCodec();
  const request = codec.decode('traces', wrapped(NOTHING, NOTHING, item));
  const span = request.signal === 'traces' ? request.resources[0]?.scopes[0]?.records[0] : undefined;
  const all = span === undefined ? [] : records.ofSpan(span);
  const end = typeof all === 'string' ? undefined : all.at(-1);
  if (end?.recordType !== 'SpanEnd') throw new Error('an item that was kept cannot be read');
  return end;
}
