import { wrapped } from '../../otlp/any-value.js';
import type { ItemRecords } from '../../otlp/item-records.js';
import { ProtobufCodec } from '../../otlp/protobuf-codec.js';
import type { LocatedItem } from '../../otlp/wire/item-chunk.js';
import { itemReading } from '../../otlp/wire/read-items.js';
import { buffer, REGION, textAt } from '../../record/arena.js';
import { type Resource, UNKNOWN_RESOURCE } from '../../record/attributes.js';
import { Cell, cell, pointAt, SECOND_RECORD } from '../../record/cells.js';
import type { ItemBatch, ItemOwner } from '../../record/item-ring.js';
import { tryParseRecordLine } from '../../record/record-line.js';
import type { SpanEnd } from '../../record/telemetry-record.js';
import { texts } from '../../record/texts.js';
import { CellRecord, isBefore, PlainRecord } from './mapped-record.js';
import { recordPlans } from './record-plans.js';

/** A span's end that waited for late events: an item in the arena, or a copy of it, or the line of one that has no cells. */
export interface BufferedSpan {
  readonly anchorOffset: number;
  readonly resource: Resource;
  /** Where its item stands in the arena, unless there is a copy or a line. */
  readonly start: number;
  readonly end: number;
  /** See `LocatedItem`. */
  readonly cells: number;
  readonly layouts: number;
  readonly item: Buffer | undefined;
  readonly line: Buffer | undefined;
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

const MIN_CAPACITY = 64;
/** A larger ring is given back once nothing is buffered. */
const MAX_IDLE_CAPACITY = 4096;

/** Numbers of a buffered span's row. */
const ANCHOR = 0;
const END_SECONDS = 1;
const END_NANOS = 2;
const START = 3;
const END = 4;
const CELLS = 5;
const LAYOUTS = 6;
const ROW = 7;

/**
 * A queue of ended spans in the order of the log. At full load they are a hundred thousand, so they are kept in a ring of numbers:
 * as objects they are most of what V8 has to look at and to move when it collects garbage.
 */
export class BufferedSpans implements ItemOwner {
  private capacity = MIN_CAPACITY;
  private from = 0;
  private bufferedCount = 0;
  private numbers = new Float64Array(ROW * MIN_CAPACITY);
  private resources: Resource[] = [];
  private batches: (ItemBatch | undefined)[] = [];
  private items: (Buffer | undefined)[] = [];
  private lines: (Buffer | undefined)[] = [];
  /** The one that was taken last: one object for all of them. */
  private readonly taken: Writable<BufferedSpan> = {
    anchorOffset: 0,
    resource: UNKNOWN_RESOURCE,
    start: 0,
    end: 0,
    cells: 0,
    layouts: 0,
    item: undefined,
    line: undefined,
  };

  get count(): number {
    return this.bufferedCount;
  }

  /** Holds an item that stands in a batch. */
  addItem(
    anchorOffset: number,
    resource: Resource,
    endSeconds: number,
    endNanos: number,
    { batch, start, end, cells, layouts }: LocatedItem,
  ): void {
    const index = this.add(anchorOffset, resource, endSeconds, endNanos);
    const { numbers } = this;
    const row = ROW * index;
    numbers[row + START] = start;
    numbers[row + END] = end;
    numbers[row + CELLS] = cells;
    numbers[row + LAYOUTS] = layouts;
    this.batches[index] = batch;
    batch.want(this);
  }

  /** Holds the line of a span that has no cells. @param line in memory of its own */
  addLine(anchorOffset: number, resource: Resource, endSeconds: number, endNanos: number, line: Buffer): void {
    const index = this.add(anchorOffset, resource, endSeconds, endNanos);
    this.lines[index] = line;
  }

  /** Returns whether the oldest one ended before a time; not where there is none. */
  isOldestBefore(seconds: number, nanos: number): boolean {
    if (this.bufferedCount === 0) return false;
    const row = ROW * this.from;
    return isBefore(this.numbers[row + END_SECONDS] as number, this.numbers[row + END_NANOS] as number, seconds, nanos);
  }

  /** Takes the oldest one, to be used before the next one is taken; its item stands where it does until the next one is buffered. */
  takeOldest(): BufferedSpan | undefined {
    if (this.bufferedCount === 0) return undefined;
    const { taken, numbers, from: index } = this;
    const row = ROW * index;
    taken.anchorOffset = numbers[row + ANCHOR] as number;
    taken.resource = this.resources[index] as Resource;
    taken.start = (numbers[row + START] as number) | 0;
    taken.end = (numbers[row + END] as number) | 0;
    taken.cells = (numbers[row + CELLS] as number) | 0;
    taken.layouts = (numbers[row + LAYOUTS] as number) | 0;
    taken.item = this.items[index];
    taken.line = this.lines[index];
    this.letGo(index);
    this.from = (index + 1) & (this.capacity - 1);
    this.bufferedCount -= 1;
    if (this.bufferedCount === 0 && this.capacity > MAX_IDLE_CAPACITY) this.shrink();
    return taken;
  }

  /** Copies what is buffered in a batch out of the arena. */
  spill(batch: ItemBatch): void {
    for (let nth = 0; nth < this.bufferedCount; nth++) {
      const index = (this.from + nth) & (this.capacity - 1);
      if (this.batches[index] !== batch) continue;
      const row = ROW * index;
      this.items[index] = Buffer.from(buffer.subarray(this.numbers[row + START], this.numbers[row + END]));
      this.batches[index] = undefined;
      batch.letGo();
    }
  }

  private add(anchorOffset: number, resource: Resource, endSeconds: number, endNanos: number): number {
    if (this.bufferedCount === this.capacity) this.grow();
    const index = (this.from + this.bufferedCount) & (this.capacity - 1);
    this.bufferedCount += 1;
    const { numbers } = this;
    const row = ROW * index;
    numbers[row + ANCHOR] = anchorOffset;
    numbers[row + END_SECONDS] = endSeconds;
    numbers[row + END_NANOS] = endNanos;
    this.resources[index] = resource;
    if (index === this.batches.length) {
      this.batches.push(undefined);
      this.items.push(undefined);
      this.lines.push(undefined);
    }
    return index;
  }

  /** Forgets where it stood. */
  private letGo(index: number): void {
    this.batches[index]?.letGo();
    this.batches[index] = this.items[index] = this.lines[index] = undefined;
  }

  /** Makes a ring that is full twice as large. */
  private grow(): void {
    const { from, capacity, numbers } = this;
    const inOrder = <T>(list: readonly T[]) => list.slice(from).concat(list.slice(0, from));
    this.numbers = new Float64Array(2 * numbers.length);
    this.numbers.set(numbers.subarray(ROW * from));
    this.numbers.set(numbers.subarray(0, ROW * from), ROW * (capacity - from));
    this.resources = inOrder(this.resources);
    this.batches = inOrder(this.batches);
    this.items = inOrder(this.items);
    this.lines = inOrder(this.lines);
    this.capacity = 2 * capacity;
    this.from = 0;
  }

  /** Gives the memory of a ring that is empty back. */
  private shrink(): void {
    this.numbers = new Float64Array(ROW * MIN_CAPACITY);
    this.resources = [];
    this.batches = [];
    this.items = [];
    this.lines = [];
    this.capacity = MIN_CAPACITY;
    this.from = 0;
  }
}

/** Where an item stands that was copied out of the arena. */
const COPIED = REGION.scratch + 12 * 1024 * 1024;

/** Reads buffered spans again. */
export class BufferedReader {
  private readonly reading = itemReading();
  private readonly plans = recordPlans();
  private record: CellRecord | undefined;
  private itemStart = 0;
  private itemEnd = 0;
  /** What was looked at before, while an item is. */
  private before = 0;
  private isReading = false;
  private hasCells = false;

  /** Makes room where there is none; others may have forgotten what the layouts of buffered spans are made of. No record may be in use. */
  tidy(): void {
    this.reading.layouts.tidy();
  }

  /** Looks at the record of a span: it is good until `end` is called, as it has to be. */
  begin(held: BufferedSpan): CellRecord | PlainRecord {
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

  private readItem({ start, end, item, cells, layouts }: BufferedSpan): CellRecord | PlainRecord {
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
