import type { LineScanner } from './line-scanner.js';
import { MAX_CELLS } from './line-scanner.js';

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
