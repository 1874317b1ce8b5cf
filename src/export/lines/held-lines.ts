import type { Resource } from '../../record/resource.js';
import { type LineScanner, MAX_CELLS } from './line-scanner.js';

/** Lines are kept together in blocks of this many bytes; a longer line has a block of its own. */
const BLOCK_BYTES = 128 * 1024;
/** Cells that a block has for each of its bytes: a line of 1 KB has about 64. */
const CELLS_PER_BYTE = 1 / 12;
/** Lines that a block has at most. */
const MAX_LINES = 1024;
/** Numbers of a line in a block: where it begins and ends in its bytes, and its first cell. */
const PLACE_NUMBERS = 3;
/** Blocks that wait to be used again: V8 collects garbage all the more often, the more memory is taken beside its heap. */
const MAX_SPARE_BLOCKS = 2;

/** A stretch of memory for lines and their cells. */
export class LineBlock {
  readonly bytes: Buffer;
  /** Of the same bytes. */
  readonly view: DataView;
  readonly cells: Int32Array;
  length = 0;
  cellCount = 0;
  /** Where each of its lines stands, see `PLACE_NUMBERS`. */
  readonly places: Int32Array;
  /** Lines that were put into it, and those of them that are still wanted. */
  lineTotal = 0;
  lineCount = 0;

  constructor(byteCount: number) {
    this.bytes = Buffer.allocUnsafeSlow(byteCount);
    this.view = new DataView(this.bytes.buffer);
    this.cells = new Int32Array(Math.max(MAX_CELLS, Math.floor(byteCount * CELLS_PER_BYTE)));
    this.places = new Int32Array(PLACE_NUMBERS * MAX_LINES);
  }

  hasRoom(byteCount: number, cellCount: number): boolean {
    const hasPlace = this.lineTotal < MAX_LINES && this.cellCount + cellCount <= this.cells.length;
    return hasPlace && this.length + byteCount <= this.bytes.length;
  }

  /** A line's first byte. */
  startOf(index: number): number {
    return this.places[PLACE_NUMBERS * index] as number;
  }

  /** The byte behind a line's last. */
  endOf(index: number): number {
    return this.places[PLACE_NUMBERS * index + 1] as number;
  }

  firstCellOf(index: number): number {
    return this.places[PLACE_NUMBERS * index + 2] as number;
  }
}

/**
 * Keeps lines and their cells, copied out of bytes that are only lent. Lines come and go in the same order, so a block is
 * used again, or let go, once its last line has gone.
 */
export class LineBlocks {
  private block: LineBlock | undefined;
  private spare: LineBlock[] = [];

  /** Keeps a line until its block is told that it is not wanted. @returns the block, whose last line it is */
  keep(bytes: Buffer, start: number, end: number, { cells, cellCount }: LineScanner): LineBlock {
    const byteCount = end - start;
    const block = this.blockFor(byteCount, cellCount);
    const at = block.length;
    bytes.copy(block.bytes, block.length, start, end);
    const kept = block.cells;
    const to = block.cellCount;
    for (let cell = 0; cell < cellCount; cell++) kept[to + cell] = cells[cell] as number;
    const place = PLACE_NUMBERS * block.lineTotal++;
    block.places[place] = at;
    block.places[place + 1] = at + byteCount;
    block.places[place + 2] = to;
    block.length += byteCount;
    block.cellCount += cellCount;
    block.lineCount++;
    return block;
  }

  /** A line of a block is not wanted any more; to be called once for each line. */
  letGo(block: LineBlock): void {
    if (--block.lineCount > 0) return;
    block.length = block.cellCount = block.lineTotal = 0;
    const isUsable = block !== this.block && block.bytes.length === BLOCK_BYTES;
    if (isUsable && this.spare.length < MAX_SPARE_BLOCKS) this.spare.push(block);
  }

  private blockFor(byteCount: number, cellCount: number): LineBlock {
    if (this.block?.hasRoom(byteCount, cellCount) === true) return this.block;
    const isUsual = byteCount <= BLOCK_BYTES;
    this.block = (isUsual ? this.spare.pop() : undefined) ?? new LineBlock(Math.max(BLOCK_BYTES, byteCount));
    return this.block;
  }
}

/** A span's end that waited for late events. */
export interface HeldSpan {
  readonly anchorOffset: number;
  readonly resource: Resource;
  /** The block that its line is in, and the line's index there. */
  readonly block: LineBlock;
  readonly index: number;
}

const MIN_CAPACITY = 64;
/** More places than these are given back once nothing is held. */
const MAX_IDLE_CAPACITY = 4096;

/**
 * Ended spans in the order of the log, first in, first out. At full load they are a hundred thousand, so they are kept in
 * columns of numbers, a ring in each: as objects they are most of what V8 has to look at and to move when it collects garbage.
 */
export class HeldSpans {
  private capacity = MIN_CAPACITY;
  private from = 0;
  private heldCount = 0;
  private columns = new Columns(MIN_CAPACITY);

  get count(): number {
    return this.heldCount;
  }

  /** @param index of its line in the block */
  add(
    anchorOffset: number,
    resource: Resource,
    endSeconds: number,
    endNanos: number,
    block: LineBlock,
    index: number,
  ): void {
    if (this.heldCount === this.capacity) this.resize(2 * this.capacity);
    const { columns } = this;
    const at = (this.from + this.heldCount) & (this.capacity - 1);
    this.heldCount++;
    columns.anchorOffsets[at] = anchorOffset;
    columns.resources[at] = resource;
    columns.endSeconds[at] = endSeconds;
    columns.endNanos[at] = endNanos;
    columns.blocks[at] = block;
    columns.indexes[at] = index;
  }

  /** Whether the oldest one ended before a time; not where there is none. */
  isOldestBefore(seconds: number, nanos: number): boolean {
    if (this.heldCount === 0) return false;
    const { endSeconds, endNanos } = this.columns;
    const own = endSeconds[this.from] as number;
    return own < seconds || (own === seconds && (endNanos[this.from] as number) < nanos);
  }

  takeOldest(): HeldSpan | undefined {
    if (this.heldCount === 0) return undefined;
    const at = this.from;
    const { anchorOffsets, resources, blocks, indexes } = this.columns;
    const anchorOffset = anchorOffsets[at] as number;
    const index = indexes[at] as number;
    const resource = resources[at] as Resource;
    const block = blocks[at] as LineBlock;
    // Let go at once: it keeps a block of lines.
    blocks[at] = undefined;
    this.from = (at + 1) & (this.capacity - 1);
    this.heldCount--;
    if (this.heldCount === 0 && this.capacity > MAX_IDLE_CAPACITY) this.resize(MIN_CAPACITY);
    return { anchorOffset, resource, block, index };
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
  readonly indexes: Int32Array;
  readonly resources: (Resource | undefined)[];
  readonly blocks: (LineBlock | undefined)[];

  constructor(capacity: number) {
    this.anchorOffsets = new Float64Array(capacity);
    this.endSeconds = new Float64Array(capacity);
    this.endNanos = new Int32Array(capacity);
    this.indexes = new Int32Array(capacity);
    this.resources = new Array(capacity).fill(undefined);
    this.blocks = new Array(capacity).fill(undefined);
  }

  take(at: number, from: Columns, place: number): void {
    this.anchorOffsets[at] = from.anchorOffsets[place] as number;
    this.endSeconds[at] = from.endSeconds[place] as number;
    this.endNanos[at] = from.endNanos[place] as number;
    this.indexes[at] = from.indexes[place] as number;
    this.resources[at] = from.resources[place];
    this.blocks[at] = from.blocks[place];
  }
}
