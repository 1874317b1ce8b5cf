import { MAX_RECORD_BYTES } from '../../record/arena.js';
import type { Signal } from '../../record/record-batch.js';
import type { LogRecord, SpanEnd } from '../../record/telemetry-record.js';
import { lengthDelimited } from '../any-value.js';
import { PublicAttributeSchema } from '../attribute-schema.js';
import { ItemRecords } from '../item-records.js';
import { ProtobufCodec } from '../protobuf-codec.js';
import { PublicSchema } from '../public-schema.js';
import { ItemCells } from './item-cells.js';
import { Layouts } from './layouts.js';

/** Reads items of OTLP, of one thread: from the arena into cells, and of any look into records. */
class ItemReading {
  readonly layouts: Layouts;
  private readonly items: ItemCells;
  private readonly records: ItemRecords;
  private readonly codec = new ProtobufCodec();

  constructor() {
    const schema = new PublicAttributeSchema(PublicSchema.load());
    this.layouts = new Layouts(schema);
    this.items = new ItemCells(this.layouts);
    this.records = new ItemRecords(schema);
  }

  /** Reads a span into the cells of the record that is looked at. @returns whether it looks as nearly all do */
  span(start: number, end: number): boolean {
    return end - start <= MAX_RECORD_BYTES && this.items.readSpan(start, end);
  }

  /** The same for a log record. */
  log(start: number, end: number): boolean {
    return end - start <= MAX_RECORD_BYTES && this.items.readLog(start, end);
  }

  /** The record of an item, without its tag and length: of a span its end. @throws Error where it is none that was kept */
  recordOf(signal: Signal, item: Buffer): SpanEnd | LogRecord {
    const scope = lengthDelimited(2, lengthDelimited(2, item));
    const [found] = this.codec.decode(signal, lengthDelimited(1, scope)).resources[0]?.scopes[0]?.records ?? [];
    if (found === undefined) throw new Error('a request of one item has none');
    const records = 'body' in found ? this.records.ofLog(found) : this.records.ofSpan(found);
    const last = typeof records === 'string' ? undefined : records.at(-1);
    if (last === undefined || last.recordType === 'SpanStart') throw new Error('an item that was kept cannot be read');
    return last;
  }
}

let reading: ItemReading | undefined;

/** That of this thread, made when the first item is read. */
export function itemReading(): ItemReading {
  reading ??= new ItemReading();
  return reading;
}
