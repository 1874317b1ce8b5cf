import { PublicAttributeSchema } from '../attribute-schema.js';
import { ItemRecords } from '../item-records.js';
import { PublicSchema } from '../public-schema.js';
import { ItemCells } from './item-cells.js';
import { Layouts } from './layouts.js';
import { LineWriter } from './line-writer.js';

/** Reads items of OTLP, of one thread: from the arena into cells and lines, and items of any look into records. */
export class ItemReading {
  readonly layouts: Layouts;
  readonly cells: ItemCells;
  readonly lines: LineWriter;
  readonly records: ItemRecords;

  constructor() {
    const schema = new PublicAttributeSchema(PublicSchema.load());
    this.layouts = new Layouts(schema);
    this.cells = new ItemCells(this.layouts);
    this.lines = new LineWriter(this.layouts);
    this.records = new ItemRecords(schema);
  }
}

let reading: ItemReading | undefined;

/** That of this thread, made when the first item is read: layouts are numbered the same for everybody. */
export function itemReading(): ItemReading {
  reading ??= new ItemReading();
  return reading;
}
