import { wrapped } from '../../otlp/any-value.js';
import type { ItemRecords } from '../../otlp/item-records.js';
import { ProtobufCodec } from '../../otlp/protobuf-codec.js';
import type { PlacedItem } from '../../otlp/wire/item-chunk.js';
import { itemReading } from '../../otlp/wire/read-items.js';
import { buffer, REGION, textAt } from '../../record/arena.js';
import type { Resource } from '../../record/attributes.js';
import { Cell, cell, pointAt, SECOND_RECORD } from '../../record/cells.js';
import type { ItemBatch, ItemOwner } from '../../record/item-ring.js';
import { tryParseRecordLine } from '../../record/record-line.js';
import type { SpanEnd } from '../../record/telemetry-record.js';
import { texts } from '../../record/texts.js';
import { CellRecord, PlainRecord } from './mapped-record.js';
import { recordPlans } from './record-plans.js';

/** A span's end that waited for late events: an item in the arena, or a copy of it, or the line of one that has no cells. */
export interface HeldSpan {
  readonly anchorOffset: number;
  readonly resource: Resource;
  /** Where its item stands in the arena; 0 where it does not. */
  readonly start: number;
  readonly end: number;
  /** See `PlacedItem`. */
  readonly cells: number;
  readonly layouts: number;
  readonly item: Buffer | undefined;
  readonly line: Buffer | undefined;
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

const MIN_CAPACITY = 64;
/** More places than these are given back once nothing is held. */
const MAX_IDLE_CAPACITY = 4096;

/**
 * Ended spans in the order of the log, first in, first out. At full load they are a hundred thousand, so they are kept in
 * columns of numbers, a ring in each: as objects they are most of what V8 has to look at and to move when it collects garbage.
 */
export class HeldSpans implements ItemOwner {
  private capacity = MIN_CAPACITY;
  private from = 0;
  private heldCount = 0;
  private columns = new Columns(MIN_CAPACITY);
  /** The one that was taken last: one object for all of them. */
  private taken: Writable<HeldSpan> | undefined;

  get count(): number {
    return this.heldCount;
  }

  /** Holds an item that stands in a batch. */
  addItem(
    anchorOffset: number,
    resource: Resource,
    endSeconds: number,
    endNanos: number,
    { batch, start, end, cells, layouts }: PlacedItem,
  ): void {
    const at = this.add(anchorOffset, resource, endSeconds, endNanos);
    const { columns } = this;
    columns.batches[at] = batch;
    columns.starts[at] = start;
    columns.ends[at] = end;
    columns.cells[at] = cells;
    columns.layouts[at] = layouts;
    batch.want(this);
  }

  /** Holds the line of a span that has no cells. @param line in memory of its own */
  addLine(anchorOffset: number, resource: Resource, endSeconds: number, endNanos: number, line: Buffer): void {
    const at = this.add(anchorOffset, resource, endSeconds, endNanos);
    this.columns.lines[at] = line;
  }

  /** Whether the oldest one ended before a time; not where there is none. */
  isOldestBefore(seconds: number, nanos: number): boolean {
    if (this.heldCount === 0) return false;
    const { endSeconds, endNanos } = this.columns;
    const own = endSeconds[this.from] ?? 0;
    return own < seconds || (own === seconds && (endNanos[this.from] ?? 0) < nanos);
  }

  /** Takes the oldest one, to be used before the next one is taken; its item stands where it does until the next one is held. */
  takeOldest(): HeldSpan | undefined {
    const { columns, from: at } = this;
    const resource = columns.resources[at];
    if (this.heldCount === 0 || resource === undefined) return undefined;
    const { taken } = this;
    const anchorOffset = columns.anchorOffsets[at] as number;
    const start = columns.starts[at] as number;
    const end = columns.ends[at] as number;
    const cells = columns.cells[at] as number;
    const layouts = columns.layouts[at] as number;
    const item = columns.items[at];
    const line = columns.lines[at];
    this.letGo(at);
    this.from = (at + 1) & (this.capacity - 1);
    this.heldCount -= 1;
    if (this.heldCount === 0 && this.capacity > MAX_IDLE_CAPACITY) this.resize(MIN_CAPACITY);
    if (taken === undefined) {
      this.taken = { anchorOffset, resource, start, end, cells, layouts, item, line };
      return this.taken;
    }
    taken.anchorOffset = anchorOffset;
    taken.resource = resource;
    taken.start = start;
    taken.end = end;
    taken.cells = cells;
    taken.layouts = layouts;
    taken.item = item;
    taken.line = line;
    return taken;
  }

  /** Copies what is held in a batch out of the arena. */
  spill(batch: ItemBatch): void {
    const { columns } = this;
    for (let index = 0; index < this.heldCount; index++) {
      const at = (this.from + index) & (this.capacity - 1);
      if (columns.batches[at] !== batch) continue;
      const item = Buffer.from(buffer.subarray(columns.starts[at], columns.ends[at]));
      this.letGo(at);
      columns.items[at] = item;
    }
  }

  private add(anchorOffset: number, resource: Resource, endSeconds: number, endNanos: number): number {
    if (this.heldCount === this.capacity) this.resize(2 * this.capacity);
    const { columns } = this;
    const at = (this.from + this.heldCount) & (this.capacity - 1);
    this.heldCount += 1;
    columns.anchorOffsets[at] = anchorOffset;
    columns.resources[at] = resource;
    columns.endSeconds[at] = endSeconds;
    columns.endNanos[at] = endNanos;
    return at;
  }

  /** Forgets where it stood. */
  private letGo(at: number): void {
    const { columns } = this;
    const batch = columns.batches[at];
    batch?.letGo();
    columns.batches[at] = undefined;
    columns.items[at] = undefined;
    columns.lines[at] = undefined;
    columns.starts[at] = columns.ends[at] = 0;
  }

  private resize(capacity: number): void {
    const columns = new Columns(capacity);
    for (let index = 0; index < this.heldCount; index++) {
      columns.take(index, this.columns, (this.from + index) & (this.capacity - 1));
    }
    this.columns = columns;
    this.capacity = capacity;
    this.from = 0;
  }
}

/** What is held, one place in each column a span. */
class Columns {
  readonly anchorOffsets: Float64Array;
  readonly endSeconds: Float64Array;
  readonly endNanos: Int32Array;
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  readonly cells: Int32Array;
  readonly layouts: Int32Array;
  readonly resources: (Resource | undefined)[];
  readonly batches: (ItemBatch | undefined)[];
  readonly items: (Buffer | undefined)[];
  readonly lines: (Buffer | undefined)[];

  constructor(capacity: number) {
    this.anchorOffsets = new Float64Array(capacity);
    this.endSeconds = new Float64Array(capacity);
    this.endNanos = new Int32Array(capacity);
    this.starts = new Int32Array(capacity);
    this.ends = new Int32Array(capacity);
    this.cells = new Int32Array(capacity);
    this.layouts = new Int32Array(capacity);
    this.resources = new Array(capacity).fill(undefined);
    this.batches = new Array(capacity).fill(undefined);
    this.items = new Array(capacity).fill(undefined);
    this.lines = new Array(capacity).fill(undefined);
  }

  take(at: number, from: Columns, place: number): void {
    this.anchorOffsets[at] = from.anchorOffsets[place] ?? 0;
    this.endSeconds[at] = from.endSeconds[place] ?? 0;
    this.endNanos[at] = from.endNanos[place] ?? 0;
    this.starts[at] = from.starts[place] ?? 0;
    this.ends[at] = from.ends[place] ?? 0;
    this.cells[at] = from.cells[place] ?? 0;
    this.layouts[at] = from.layouts[place] ?? 0;
    this.resources[at] = from.resources[place];
    this.batches[at] = from.batches[place];
    this.items[at] = from.items[place];
    this.lines[at] = from.lines[place];
  }
}

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
