import { ByteSource, grown } from '../../core/bytes.js';
import { view as arena } from '../../record/arena.js';
import { SpanIdTable } from '../../record/span-id-table.js';
import { NO_EVENTS, type SpanEvents, type WireWriter } from '../wire/wire-writer.js';
import type { IdHalves } from './mapped-record.js';

/** Numbers of an event's row: where it stands in its block, and the row of the next event of its span, or the next free row. */
const START = 0;
const END = 1;
const NEXT = 2;
/** Of a span's first event alone: the row of its last one, how many it has, how many had no room, the span, and when it came. */
const LAST = 3;
const COUNT = 4;
const DROPPED = 5;
const HIGH = 6;
const LOW = 7;
const ORDER = 8;
const ROW = 9;
const NO_ROW = -1;

/**
 * Events that wait for their spans, in OTLP's protobuf: in columns of numbers and blocks of bytes, since as objects they are most of
 * what V8 moves when it collects garbage. Bounded by span and over all; what does not fit is counted as dropped.
 */
export class EventBuffer {
  /** Rows of first events by span. */
  private readonly table = new SpanIdTable();
  private rows = new Int32Array(ROW * 16);
  private rowCount = 0;
  private freeRow = NO_ROW;
  private readonly blocks: (Block | undefined)[] = [];
  private block = new Block(0);
  /** Bytes of blocks in which events wait, and of these events. */
  private blockBytes = 0;
  private eventBytes = 0;
  private eventCount = 0;
  private order = 0;
  private readonly taken = new TakenEvents();

  constructor(
    private readonly maxEventsPerSpan: number,
    private readonly maxWaitingEvents: number,
  ) {}

  /** Adds an event that stands in the arena, its tag and length included. */
  add(high: number, low: number, start: number, end: number): void {
    const row = this.rowFor(high, low);
    if (row === NO_ROW) return;
    const length = end - start;
    const block = this.blockFor(length);
    const { view } = block;
    const to = block.length;
    for (let at = 0; at < length; at += 4) view.setInt32(to + at, arena.getInt32(start + at, true), true);
    this.append(row, block, length);
  }

  /** Adds an event that is a text with one byte in each character. */
  addText(high: number, low: number, event: string): void {
    const row = this.rowFor(high, low);
    if (row === NO_ROW) return;
    const block = this.blockFor(event.length);
    block.bytes.write(event, block.length, 'latin1');
    this.append(row, block, event.length);
  }

  /** Takes a span's events out; they are good until the next one is added or taken. */
  take(high: number, low: number): SpanEvents {
    const number = this.table.getHalves(high, low);
    if (number === undefined) return NO_EVENTS;
    const { rows, blocks, taken } = this;
    taken.clear(rows[ROW * number + DROPPED] as number);
    for (let row = number; row !== NO_ROW; ) {
      const block = blocks[row];
      const at = ROW * row;
      if (block !== undefined) {
        taken.add(block, rows[at + START] as number, rows[at + END] as number);
        this.letGo(block);
      }
      blocks[row] = undefined;
      const next = rows[at + NEXT] as number;
      rows[at + NEXT] = this.freeRow;
      this.freeRow = row;
      row = next;
    }
    this.eventCount -= taken.count;
    this.eventBytes -= taken.byteCount;
    this.table.deleteHalves(high, low);
    return taken;
  }

  /** The same events, to be taken out there alone. */
  copy(): EventBuffer {
    const copy = new EventBuffer(this.maxEventsPerSpan, this.maxWaitingEvents);
    for (const first of this.firstRows()) {
      const at = ROW * first;
      const [high, low] = [this.rows[at + HIGH] as number, this.rows[at + LOW] as number];
      for (let row = first; row !== NO_ROW; row = this.rows[ROW * row + NEXT] as number) {
        const [start, end] = [this.rows[ROW * row + START] as number, this.rows[ROW * row + END] as number];
        copy.addText(high, low, this.blocks[row]?.bytes.toString('latin1', start, end) ?? '');
      }
      const known = copy.table.getHalves(high, low);
      if (known !== undefined) copy.rows[ROW * known + DROPPED] = this.rows[at + DROPPED] as number;
    }
    return copy;
  }

  /** Spans that events wait for, in the order in which their first ones came. */
  waitingSpans(): readonly IdHalves[] {
    return this.firstRows().map((row) => [this.rows[ROW * row + HIGH] as number, this.rows[ROW * row + LOW] as number]);
  }

  private firstRows(): readonly number[] {
    const orderOf = (row: number) => this.rows[ROW * row + ORDER] as number;
    return this.table.values().sort((a, b) => orderOf(a) - orderOf(b));
  }

  /** A row for one more event of a span, which counts once it is written; `NO_ROW` where it is dropped. */
  private rowFor(high: number, low: number): number {
    const number = this.table.getHalves(high, low);
    const isFull = this.eventCount >= this.maxWaitingEvents;
    if (number === undefined) return isFull ? NO_ROW : this.firstRow(high, low);
    const first = ROW * number;
    if (isFull || (this.rows[first + COUNT] as number) >= this.maxEventsPerSpan) {
      this.rows[first + DROPPED] = (this.rows[first + DROPPED] as number) + 1;
      return NO_ROW;
    }
    const row = this.newRow();
    const { rows } = this;
    rows[ROW * (rows[first + LAST] as number) + NEXT] = row;
    rows[first + LAST] = row;
    rows[first + COUNT] = (rows[first + COUNT] as number) + 1;
    return row;
  }

  private firstRow(high: number, low: number): number {
    const row = this.newRow();
    const { rows } = this;
    const at = ROW * row;
    rows[at + LAST] = row;
    rows[at + COUNT] = 1;
    rows[at + DROPPED] = 0;
    rows[at + HIGH] = high;
    rows[at + LOW] = low;
    rows[at + ORDER] = this.order++;
    this.table.setHalves(high, low, row);
    return row;
  }

  private newRow(): number {
    let row = this.freeRow;
    if (row === NO_ROW) {
      row = this.rowCount++;
      if (ROW * this.rowCount > this.rows.length) this.rows = grown(this.rows);
      this.blocks.push(undefined);
    } else this.freeRow = this.rows[ROW * row + NEXT] as number;
    this.rows[ROW * row + NEXT] = NO_ROW;
    return row;
  }

  private blockFor(length: number): Block {
    const { block } = this;
    if (block.waitingCount === 0) block.length = 0;
    if (block.length + length + SLACK <= block.bytes.length) return block;
    // An event that waits for long keeps the block of all those that came with it.
    if (this.blockBytes > MAX_LOOSE_BLOCKS * BLOCK_BYTES && this.blockBytes > 4 * this.eventBytes) this.compact();
    return this.newBlock(length);
  }

  private newBlock(length: number): Block {
    if (this.block.waitingCount === 0) this.blockBytes -= this.block.bytes.length;
    this.block = new Block(length + SLACK);
    this.blockBytes += this.block.bytes.length;
    return this.block;
  }

  private letGo(block: Block): void {
    block.waitingCount -= 1;
    if (block.waitingCount === 0 && block !== this.block) this.blockBytes -= block.bytes.length;
  }

  /** Moves all events into new blocks, that of the one which is being added excepted. */
  private compact(): void {
    this.block = new Block(0);
    this.blockBytes = 0;
    for (const first of this.firstRows()) {
      for (let row = first; row !== NO_ROW; row = this.rows[ROW * row + NEXT] as number) {
        const from = this.blocks[row];
        if (from === undefined) continue;
        const [start, end] = [this.rows[ROW * row + START] as number, this.rows[ROW * row + END] as number];
        const hasRoom = this.block.length + end - start + SLACK <= this.block.bytes.length;
        const block = hasRoom ? this.block : this.newBlock(end - start);
        from.bytes.copy(block.bytes, block.length, start, end);
        this.setRange(row, block, end - start);
      }
    }
  }

  private append(row: number, block: Block, length: number): void {
    this.setRange(row, block, length);
    this.eventCount += 1;
    this.eventBytes += length;
  }

  private setRange(row: number, block: Block, length: number): void {
    this.rows[ROW * row + START] = block.length;
    this.rows[ROW * row + END] = block.length + length;
    this.blocks[row] = block;
    block.length += length;
    block.waitingCount += 1;
  }
}

/** Blocks have this size; a longer event has one of its own. */
const BLOCK_BYTES = 32 * 1024;
/** So many blocks are never compacted. */
const MAX_LOOSE_BLOCKS = 8;
/** What is copied by four bytes at a time takes up to so many more. */
const SLACK = 4;

/** Bytes of events, and how many of them wait. */
class Block extends ByteSource {
  length = 0;
  waitingCount = 0;

  constructor(byteCount: number) {
    super(Buffer.allocUnsafeSlow(byteCount === 0 ? 0 : Math.max(byteCount, BLOCK_BYTES)));
  }
}

/** The events that were taken last: one object for all spans. */
class TakenEvents implements SpanEvents {
  byteCount = 0;
  droppedCount = 0;
  count = 0;
  private readonly blocks: Block[] = [];
  private readonly ranges: number[] = [];

  clear(droppedCount: number): void {
    this.byteCount = 0;
    this.count = 0;
    this.droppedCount = droppedCount;
    // Those of a span with many events would keep as many blocks.
    if (this.blocks.length > MAX_LOOSE_BLOCKS) this.blocks.length = 0;
  }

  add(block: Block, start: number, end: number): void {
    this.blocks[this.count] = block;
    this.ranges[2 * this.count] = start;
    this.ranges[2 * this.count + 1] = end;
    this.count += 1;
    this.byteCount += end - start;
  }

  writeTo(out: WireWriter): void {
    for (let index = 0; index < this.count; index++) {
      out.append(this.blocks[index] as Block, this.ranges[2 * index] as number, this.ranges[2 * index + 1] as number);
    }
  }

  texts(): readonly string[] {
    const texts: string[] = [];
    for (let index = 0; index < this.count; index++) {
      const { bytes } = this.blocks[index] as Block;
      texts.push(bytes.toString('latin1', this.ranges[2 * index], this.ranges[2 * index + 1]));
    }
    return texts;
  }
}
