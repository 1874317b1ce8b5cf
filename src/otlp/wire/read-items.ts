import type { SpanEnd } from '../../record/telemetry-record.js';
import { wrapped } from '../any-value.js';
import { PublicAttributeSchema } from '../attribute-schema.js';
import { ItemRecords } from '../item-records.js';
import { ProtobufCodec } from '../protobuf-codec.js';
import { PublicSchema } from '../public-schema.js';
import { ItemCells } from './item-cells.js';
import { Layouts } from './layouts.js';
import { LineWriter } from './line-writer.js';

const NOTHING = Buffer.alloc(0);

/** Reads items of OTLP, of one thread: from the arena into cells and lines, and items of any look into records. */
export class ItemReading {
  readonly layouts: Layouts;
  readonly cells: ItemCells;
  readonly lines: LineWriter;
  readonly records: ItemRecords;
  private readonly codec = new ProtobufCodec();

  constructor() {
    const schema = new PublicAttributeSchema(PublicSchema.load());
    this.layouts = new Layouts(schema);
    this.cells = new ItemCells(this.layouts);
    this.lines = new LineWriter(this.layouts);
    this.records = new ItemRecords(schema);
  }

  /** The end of a span, of its item without tag and length. @throws Error where it is none that was kept */
  endOf(item: Buffer): SpanEnd {
    const request = this.codec.decode('traces', wrapped(NOTHING, NOTHING, item));
    const span = request.signal === 'traces' ? request.resources[0]?.scopes[0]?.records[0] : undefined;
    const records = span === undefined ? [] : this.records.ofSpan(span);
    const end = typeof records === 'string' ? undefined : records.at(-1);
    if (end?.recordType !== 'SpanEnd') throw new Error('an item that was kept cannot be read');
    return end;
  }
}

let reading: ItemReading | undefined;

/** That of this thread, made when the first item is read: layouts are numbered the same for everybody. */
export function itemReading(): ItemReading {
  reading ??= new ItemReading();
  return reading;
}
