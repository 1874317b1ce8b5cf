import { GrowingBytes, grown } from '../../core/bytes.js';
import { buffer, SLACK } from '../../record/arena.js';
import { ofAccount, ofSender, type Resource, type Sender } from '../../record/attributes.js';
import { cellCount, cellsBeside, MAX_CELLS, pointAt } from '../../record/cells.js';
import { type ItemBatch, type ItemOwner, itemRing } from '../../record/item-ring.js';
import type { RecordBatch, Signal } from '../../record/record-batch.js';
import { formatRecordLine, LineBuffer, parseRecordLine } from '../../record/record-line.js';
import { spanIdHalves } from '../../record/span-id-table.js';
import type { LogRecord, TelemetryRecord, TraceId } from '../../record/telemetry-record.js';
import { type ItemReading, itemReading } from './read-items.js';

/** Numbers that are kept of each item in its chunk. */
export const FIELD = {
  /** Where the item stands in the chunk's body, without its tag and length. One of no bytes has no cells: its records tell all. */
  itemStart: 0,
  itemEnd: 1,
  /** Where its cells begin, see `pointAt`; -1 where it has none. */
  cells: 2,
  /** The halves of the span's id; of a log record, of its span's. Two zeros for none. */
  idHigh: 3,
  idLow: 4,
  /** In bytes of `lines`: where a span's SpanStart line begins, its SpanEnd line begins, and that one ends. A log record has one line, between the last two. */
  startLine: 5,
  endLine: 6,
  lineEnd: 7,
  /** The span's name as a JSON string in `lines`; `null` where a log record came without it. */
  nameStart: 8,
  nameEnd: 9,
  /** What tells a log record from others, see `logDigest`. */
  digestHigh: 10,
  digestLow: 11,
  /** Which records it is: `STARTED`, `ENDED`, both, or `LOGGED`. */
  parts: 12,
  /** The event's id of a log record in `lines`, without quotes; empty where it has none. */
  eventIdStart: 13,
  eventIdEnd: 14,
} as const;

/** The records that an item is: a span's start, its end, a log record. */
export const STARTED = 1;
export const ENDED = 2;
export const LOGGED = 4;

const FIELD_COUNT = 15;
/** No layouts: cells are still to be filled. */
const NONE_SEEN = -1;
const FIRST_ITEMS = 64;
const BYTES_A_CELL = 4;
const LINE_BREAK = 0x0a;
const BACKSLASH = 0x5c;

/** The name of a log record that has none, as it stands in its line. */
const NULL = Buffer.from('null');
/** Where the name of its span stands in the line of a log record that names one by its id. */
const NAME_OFFSET = Buffer.byteLength(
  `{"record_type":"LogRecord","trace_id":"${'0'.repeat(32)}","span_id":"${'0'.repeat(16)}","span_name":`,
);

/**
 * Items of one request, as OTLP has them, with their cells and their lines of JSONL: so that none costs objects or strings on its way.
 * A span has two lines, SpanStart and SpanEnd, one behind the other; a log record has one. The lines of consecutive items touch.
 * The items stand in the arena, and are copied out of it where others need the room. Lent by the decoder that fills it:
 * not to be read after it was given back.
 *
 * Or lines of JSONL that came as such, an item each: there a span's start and end are two items, and nothing is on the wire.
 */
export class ItemChunk implements ItemOwner {
  /** The lines, in UTF-8 with line breaks, up to its `length`. */
  readonly out: LineBuffer;
  itemCount = 0;
  /** Full names of the event types that occur. */
  readonly eventTypes = new Set<string>();
  private signal: Signal | 'lines' = 'traces';
  private fields = new Int32Array(FIRST_ITEMS * FIELD_COUNT);
  /** Where the items stand; `undefined` while they are copied out of the arena. */
  private batch: ItemBatch | undefined;
  private bodyLength = 0;
  /** The body, while it does not stand in the arena. */
  private copied: GrowingBytes | undefined;
  /** The item that was looked at last, where it was brought back alone. */
  private alone: LocatedItem | undefined;
  /** One object for all that `locate` returns. */
  private latest: { -readonly [Key in keyof LocatedItem]: LocatedItem[Key] } | undefined;
  private nextCells = 0;
  private cellsEnd = 0;
  /** How often layouts had been forgotten when the cells were filled: later they name others. `NONE_SEEN` before any was. */
  private layoutsSeen = 0;
  private latestType = '';
  private reading: ItemReading | undefined;

  /** @param lineBytes how long its lines will be, about */
  constructor(lineBytes: number) {
    this.out = new LineBuffer(lineBytes);
  }

  get lines(): Buffer {
    return this.out.bytes;
  }

  /** Takes a request's body into the arena. @returns where it begins there; `undefined` where it has no room: then no item has cells */
  begin(signal: Signal, body: Buffer): number | undefined {
    this.clear();
    this.signal = signal;
    this.bodyLength = body.length;
    this.layoutsSeen = this.items.layouts.forgottenCount;
    const batch = this.takeRoom();
    if (batch !== undefined) body.copy(buffer, batch.start);
    return batch?.start;
  }

  /**
   * Takes the lines that stand in `out` into the arena.
   * @returns the offset of the first there, and of as much free room behind them; `undefined` where it has no room: then no item has cells
   */
  beginLines(): { readonly start: number; readonly free: number; readonly end: number } | undefined {
    this.signal = 'lines';
    const { length } = this.out;
    this.layoutsSeen = this.items.layouts.forgottenCount;
    this.bodyLength = 2 * length;
    const batch = this.takeRoom();
    if (batch === undefined) return undefined;
    this.lines.copy(buffer, batch.start, 0, length);
    return { start: batch.start, free: batch.start + length + SLACK, end: batch.end };
  }

  /** Begins a chunk of log records that are copied from others. @param itemBytes what these items take; 0 of what came as records */
  beginCopies(itemBytes = 0): void {
    this.clear();
    this.signal = 'logs';
    this.layoutsSeen = NONE_SEEN;
    this.bodyLength = itemBytes;
    if (itemBytes > 0) this.takeRoom();
    this.bodyLength = 0;
  }

  /** Forgets all items. */
  clear(): void {
    this.batch?.letGo();
    this.batch = undefined;
    this.copied = undefined;
    this.alone = undefined;
    this.bodyLength = 0;
    this.out.length = 0;
    this.itemCount = 0;
    this.eventTypes.clear();
    this.latestType = '';
  }

  /** Where the cells of the next item go; -1 where there is no room for them. */
  get freeCells(): number {
    return this.batch !== undefined && this.nextCells + MAX_CELLS <= this.cellsEnd ? this.nextCells : -1;
  }

  /** Begins one more item, all zeros; it counts when `itemCount` is raised. @returns the index of its first field, for `setField` */
  reserve(): number {
    const at = this.itemCount * FIELD_COUNT;
    if (at + FIELD_COUNT > this.fields.length) this.fields = grown(this.fields);
    this.fields.fill(0, at, at + FIELD_COUNT);
    this.fields[at + FIELD.parts] = this.isOfLogs ? LOGGED : STARTED | ENDED;
    return at;
  }

  setField(at: number, which: number, value: number): void {
    this.fields[at + which] = value;
  }

  /** The item that was reserved last has the cells that are looked at, which were filled at `freeCells`. */
  keep(at: number, itemStart: number, itemEnd: number, eventType: string): void {
    const shift = this.batch?.start ?? 0;
    this.fields[at + FIELD.itemStart] = itemStart - shift;
    this.fields[at + FIELD.itemEnd] = itemEnd - shift;
    this.fields[at + FIELD.cells] = this.nextCells;
    this.nextCells += cellCount();
    this.noteType(eventType);
    this.itemCount += 1;
  }

  field(index: number, which: number): number {
    return this.fields[index * FIELD_COUNT + which] as number;
  }

  /** How much of these items stands between two fields of each. */
  sizeOf(indexes: readonly number[], from: number, to: number): number {
    let size = 0;
    for (let at = 0; at < indexes.length; at++) {
      const index = indexes[at] as number;
      size += this.field(index, to) - this.field(index, from);
    }
    return size;
  }

  get isOfLogs(): boolean {
    return this.signal === 'logs';
  }

  /** Whether its items came as lines, and do not stand as items on the wire. */
  get isOfLines(): boolean {
    return this.signal === 'lines';
  }

  /** How many records each item has: a span's start and end, or the one record. */
  get recordsPerItem(): number {
    return this.signal === 'traces' ? 2 : 1;
  }

  isLog(index: number): boolean {
    return this.field(index, FIELD.parts) === LOGGED;
  }

  /** The event's id of a log record; `null` where it has none, as over OTLP. */
  eventIdOf(index: number): string | null {
    const start = this.field(index, FIELD.eventIdStart);
    return start === 0 ? null : this.lines.toString('utf8', start, this.field(index, FIELD.eventIdEnd));
  }

  /** Whether it is a log record that names a span by its id alone, and is to be given the name. */
  lacksName(index: number): boolean {
    if ((this.field(index, FIELD.idHigh) | this.field(index, FIELD.idLow)) === 0) return false;
    return this.isOfLogs && this.lines[this.field(index, FIELD.nameStart)] === NULL[0];
  }

  /** The name of the item's span, as its line has it. */
  nameOf(index: number): string {
    const start = this.field(index, FIELD.nameStart);
    const end = this.field(index, FIELD.nameEnd);
    for (let at = start; at < end; at++) {
      if (this.lines[at] === BACKSLASH) return JSON.parse(this.lines.toString('utf8', start, end)) as string;
    }
    return this.lines.toString('utf8', start + 1, end - 1);
  }

  /** The item's lines, with their line breaks. */
  linesOf(index: number): Buffer {
    return this.lines.subarray(this.field(index, FIELD.startLine), this.field(index, FIELD.lineEnd));
  }

  /** A span's SpanEnd, or the log record, without its line break. */
  lastLineOf(index: number): Buffer {
    return this.lines.subarray(this.field(index, FIELD.endLine), this.field(index, FIELD.lineEnd) - 1);
  }

  /**
   * Makes `cell` be about an item, until the next one is looked at or anything else is read into the arena.
   * @returns whether it has cells; else its records have to be asked
   */
  look(index: number): boolean {
    if (this.field(index, FIELD.itemStart) === this.field(index, FIELD.itemEnd)) return false;
    if (this.isOfLines) {
      // What their cells are numbered by was forgotten, or the room was needed: then their records tell all.
      if (this.batch === undefined || this.layoutsSeen !== this.items.layouts.forgottenCount) return false;
    } else if (this.batch === undefined) return this.lookAtCopy(index);
    else if (this.layoutsSeen !== this.items.layouts.forgottenCount) this.readAgain(this.batch);
    const cells = this.field(index, FIELD.cells);
    if (cells < 0) return false;
    pointAt(cells);
    return true;
  }

  /** Where the item stands that is looked at, for those who want it longer; good until it is called again. */
  locate(index: number): LocatedItem {
    const { batch, alone } = this;
    if (batch === undefined) {
      if (alone === undefined) throw new Error('an item is wanted that does not stand in the arena');
      return alone;
    }
    const start = batch.start + this.field(index, FIELD.itemStart);
    const end = batch.start + this.field(index, FIELD.itemEnd);
    const cells = this.field(index, FIELD.cells);
    this.latest ??= { batch, start, end, cells, layouts: this.layoutsSeen };
    const { latest } = this;
    latest.batch = batch;
    latest.start = start;
    latest.end = end;
    latest.cells = cells;
    latest.layouts = this.layoutsSeen;
    return latest;
  }

  /** The item's records in the order of their lines, read from these. */
  recordsOf(index: number): readonly TelemetryRecord[] {
    if (this.isOfLines) return [this.record(index, FIELD.startLine, FIELD.lineEnd)];
    const last = this.record(index, FIELD.endLine, FIELD.lineEnd);
    if (!this.isOfLogs) return [this.record(index, FIELD.startLine, FIELD.endLine), last];
    if (!this.lacksName(index)) return [last];
    // With its line it would count as it stands.
    const { line: _line, ...nameless } = last;
    return [nameless];
  }

  /** Adds a log record that came as one. @param digest see `logDigest` */
  addLog(record: LogRecord, [digestHigh, digestLow]: readonly [number, number]): void {
    const { out } = this;
    const at = this.reserve();
    // What its attributes say, its record tells.
    this.setField(at, FIELD.cells, -1);
    this.setField(at, FIELD.startLine, out.length);
    this.setField(at, FIELD.endLine, out.length);
    if (record.spanId !== null) {
      const [high, low] = spanIdHalves(record.spanId);
      const name = record.spanName === null ? 'null' : JSON.stringify(record.spanName);
      this.setField(at, FIELD.idHigh, high);
      this.setField(at, FIELD.idLow, low);
      this.setField(at, FIELD.nameStart, out.length + NAME_OFFSET);
      this.setField(at, FIELD.nameEnd, out.length + NAME_OFFSET + Buffer.byteLength(name));
    }
    this.setField(at, FIELD.digestHigh, digestHigh);
    this.setField(at, FIELD.digestLow, digestLow);
    this.noteType(record.eventType);
    const { line: _line, ...bare } = record;
    out.utf8(formatRecordLine(bare));
    out.reserve(1);
    out.bytes[out.length++] = LINE_BREAK;
    this.setField(at, FIELD.lineEnd, out.length);
    this.itemCount += 1;
  }

  /** Adds log records of another chunk to one of copies. @param indexes their numbers there; afterwards those here */
  copyLogs(from: ItemChunk, indexes: number[]): void {
    for (const eventType of from.eventTypes) this.eventTypes.add(eventType);
    for (let at = 0; at < indexes.length; at++) {
      this.copyLog(from, indexes[at] as number);
      indexes[at] = this.itemCount - 1;
    }
  }

  private copyLog(from: ItemChunk, index: number): void {
    const at = this.reserve();
    const source = index * FIELD_COUNT;
    for (let which = 0; which < FIELD_COUNT; which++) this.setField(at, which, from.fields[source + which] as number);
    this.copyItem(from, index, at);
    const start = from.field(index, FIELD.startLine);
    this.shiftLine(at, this.out.length - start, 0);
    this.out.append(from.out.source, start, from.field(index, FIELD.lineEnd));
    this.itemCount += 1;
  }

  /** Adds a log record once more, with the name of its span. @param name its JSON */
  nameLog(index: number, name: GrowingBytes): void {
    const { out } = this;
    const start = this.field(index, FIELD.startLine);
    const nameStart = this.field(index, FIELD.nameStart);
    const nameEnd = this.field(index, FIELD.nameEnd);
    const end = this.field(index, FIELD.lineEnd);
    const at = this.reserve();
    this.fields.copyWithin(at, index * FIELD_COUNT, (index + 1) * FIELD_COUNT);
    this.shiftLine(at, out.length - start, name.length - (nameEnd - nameStart));
    out.reserve(end - start + name.length);
    out.append(out.source, start, nameStart);
    out.append(name.source, 0, name.length);
    out.append(out.source, nameEnd, end);
    this.itemCount += 1;
  }

  /** @param at the index of the first field of an item whose fields are those of another one, whose line stands so much further on @param growth how much longer its name is */
  private shiftLine(at: number, shift: number, growth: number): void {
    const { fields } = this;
    for (let which: number = FIELD.startLine; which <= FIELD.nameEnd; which++) {
      const isBehindName = which === FIELD.lineEnd || which === FIELD.nameEnd;
      fields[at + which] = (fields[at + which] as number) + (isBehindName ? shift + growth : shift);
    }
  }

  /** Copies its body out of the arena. */
  spill(batch: ItemBatch): void {
    if (batch !== this.batch) return;
    if (this.isOfLines) {
      this.batch = undefined;
      batch.letGo();
      return;
    }
    const copied = new GrowingBytes(this.bodyLength);
    buffer.copy(copied.bytes, 0, batch.start, batch.start + this.bodyLength);
    copied.length = this.bodyLength;
    this.copied = copied;
    this.batch = undefined;
    batch.letGo();
  }

  private get items(): ItemReading {
    this.reading ??= itemReading();
    return this.reading;
  }

  private copyItem(from: ItemChunk, index: number, at: number): void {
    const { batch, bodyLength: to } = this;
    const source = from.batch === undefined ? from.copied?.bytes : buffer;
    const start = from.field(index, FIELD.itemStart);
    const length = from.field(index, FIELD.itemEnd) - start;
    const hasRoom = batch !== undefined && source !== undefined && batch.start + to + length <= batch.end;
    this.setField(at, FIELD.itemStart, hasRoom ? to : 0);
    this.setField(at, FIELD.itemEnd, hasRoom ? to + length : 0);
    if (!hasRoom) return;
    const begin = start + (from.batch?.start ?? 0);
    if (source === buffer) buffer.copyWithin(batch.start + to, begin, begin + length);
    else source.copy(buffer, batch.start + to, begin, begin + length);
    this.bodyLength += length;
  }

  private noteType(eventType: string): void {
    if (eventType === this.latestType) return;
    this.latestType = eventType;
    this.eventTypes.add(eventType);
  }

  private takeRoom(): ItemBatch | undefined {
    // Items of many short attributes may have more cells than bytes.
    const byteCount = this.bodyLength + (this.bodyLength >> 1) + BYTES_A_CELL * MAX_CELLS;
    const batch = itemRing.take(byteCount);
    this.batch = batch;
    if (batch === undefined) return undefined;
    batch.want(this);
    this.nextCells = cellsBeside(batch.start);
    this.cellsEnd = this.nextCells + Math.floor(byteCount / BYTES_A_CELL);
    return batch;
  }

  /**
   * Brings one item back into the arena and fills its cells. One by one: a delivery that has no room in all of it is gone through once for each of its
   * traces.
   */
  private lookAtCopy(index: number): boolean {
    const { copied } = this;
    this.alone = undefined;
    const from = this.field(index, FIELD.itemStart);
    const length = this.field(index, FIELD.itemEnd) - from;
    const batch = copied && itemRing.take(length + BYTES_A_CELL * MAX_CELLS);
    if (copied === undefined || batch === undefined) return false;
    const { start } = batch;
    const end = start + length;
    const cells = cellsBeside(start);
    copied.bytes.copy(buffer, start, from, from + length);
    pointAt(cells);
    if (!this.read(start, end)) return false;
    itemRing.shorten(batch, start + Math.max(length, BYTES_A_CELL * cellCount()));
    this.alone = { batch, start, end, cells, layouts: this.items.layouts.forgottenCount };
    return true;
  }

  /** Fills the cells of all items anew: what their layouts are numbered by was forgotten. */
  private readAgain({ start: shift }: ItemBatch): void {
    this.layoutsSeen = this.items.layouts.forgottenCount;
    this.nextCells = cellsBeside(shift);
    const before = pointAt(0);
    for (let index = 0; index < this.itemCount; index++) {
      const at = this.freeCells;
      pointAt(Math.max(at, 0));
      const isRead =
        at >= 0 && this.read(shift + this.field(index, FIELD.itemStart), shift + this.field(index, FIELD.itemEnd));
      if (isRead) this.nextCells += cellCount();
      this.setField(index * FIELD_COUNT, FIELD.cells, isRead ? at : -1);
    }
    pointAt(before);
  }

  private read(start: number, end: number): boolean {
    const { cells } = this.items;
    return this.isOfLogs ? cells.readLog(start, end) : cells.readSpan(start, end);
  }

  private record(index: number, from: number, to: number): TelemetryRecord {
    return parseRecordLine(this.lines.toString('utf8', this.field(index, from), this.field(index, to) - 1));
  }
}

/** An item in the arena, whose cells stand beside it. */
export interface LocatedItem {
  readonly batch: ItemBatch;
  readonly start: number;
  readonly end: number;
  /** Where its cells begin. */
  readonly cells: number;
  /** How often layouts had been forgotten when the cells were filled: later they name others. */
  readonly layouts: number;
}

/** Consecutive items of a chunk that are of one trace and one resource. Their records are made when somebody asks for them. */
export class CellBatch implements RecordBatch {
  private made: readonly TelemetryRecord[] | undefined;

  /**
   * @param from index of the first item
   * @param to index after the last item; may grow while the chunk is being filled
   */
  constructor(
    readonly traceId: TraceId,
    readonly resource: Resource,
    readonly chunk: ItemChunk,
    readonly from: number,
    public to: number,
  ) {}

  get recordCount(): number {
    return (this.to - this.from) * this.chunk.recordsPerItem;
  }

  /** The length of their lines. */
  get lineBytes(): number {
    return this.chunk.field(this.to - 1, FIELD.lineEnd) - this.chunk.field(this.from, FIELD.startLine);
  }

  get first(): TelemetryRecord | undefined {
    return this.chunk.recordsOf(this.from)[0];
  }

  get records(): readonly TelemetryRecord[] {
    if (this.made === undefined) {
      const records: TelemetryRecord[] = [];
      for (let index = this.from; index < this.to; index++) records.push(...this.chunk.recordsOf(index));
      this.made = records;
    }
    return this.made;
  }
}

/** How many records a batch has, without making them. */
export function recordCountOf(batch: RecordBatch): number {
  return batch instanceof CellBatch ? batch.recordCount : batch.records.length;
}

/** The batch with its resource as one of an account (`null`: the first); itself where it is. */
export function batchOfAccount(batch: RecordBatch, accountId: number | null): RecordBatch {
  return withResource(batch, ofAccount(batch.resource, accountId));
}

/** The batch with its resource as one of a sender; itself where it is. */
export function batchOfSender(batch: RecordBatch, sender: Sender): RecordBatch {
  return withResource(batch, ofSender(batch.resource, sender));
}

/** The batch with another resource. */
export function withResource(batch: RecordBatch, resource: Resource): RecordBatch {
  if (resource === batch.resource) return batch;
  if (!(batch instanceof CellBatch)) return { ...batch, resource };
  return new CellBatch(batch.traceId, resource, batch.chunk, batch.from, batch.to);
}

/** Chunks that are kept for the next requests; as many as there are usually requests at once. */
const MAX_CHUNKS = 4;
/** A chunk whose lines grew beyond this is not kept, so that one large request does not occupy memory for good. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;

/**
 * Chunks that go around. A megabyte that is allocated anew for each request costs more than filling it: the system hands
 * it out zeroed page by page, and the collector counts it as garbage.
 */
export class ChunkPool {
  private readonly free: ItemChunk[] = [];

  /** @param lineBytes how long its lines will be, about */
  take(lineBytes: number): ItemChunk {
    return this.free.pop() ?? new ItemChunk(lineBytes);
  }

  giveBack(chunk: ItemChunk): void {
    chunk.clear();
    if (this.free.length < MAX_CHUNKS && chunk.lines.length <= MAX_KEPT_BYTES) this.free.push(chunk);
  }
}
