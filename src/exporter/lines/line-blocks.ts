import { MAX_CELLS } from './line-scanner.js';
import type { ScannedLine } from './scanned-line.js';

/** Lines are kept together in blocks of this many bytes; a longer line has a block of its own. */
const BLOCK_BYTES = 128 * 1024;
/** Cells that a block has for each of its bytes: a line of 1 KB has about 64. */
const CELLS_PER_BYTE = 1 / 12;
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
  /** Lines in it that are still wanted. */
  lineCount = 0;

  constructor(byteCount: number) {
    this.bytes = Buffer.allocUnsafeSlow(byteCount);
    this.view = new DataView(this.bytes.buffer);
    this.cells = new Int32Array(Math.max(MAX_CELLS, Math.floor(byteCount * CELLS_PER_BYTE)));
  }

  hasRoom(byteCount: number, cellCount: number): boolean {
    return this.length + byteCount <= this.bytes.length && this.cellCount + cellCount <= this.cells.length;
  }
}

/** Where a line and its cells stand in a block. */
export interface LinePlace {
  readonly block: LineBlock;
  /** The line's first byte, and the one behind its last. */
  readonly start: number;
  readonly end: number;
  /** The line's first cell. */
  readonly firstCell: number;
}

/** One for all lines that are kept. */
interface KeptPlace extends LinePlace {
  block: LineBlock;
  start: number;
  end: number;
  firstCell: number;
}

/**
 * Keeps lines and their cells, copied out of bytes that are only lent. Lines come and go in the same order, so a block is
 * used again, or let go, once its last line has gone.
 */
export class LineBlocks {
  private block: LineBlock | undefined;
  private place: KeptPlace | undefined;
  private spare: LineBlock[] = [];

  /** Keeps a line until its block is told that it is not wanted. @returns its place, good until the next line is kept */
  keep(bytes: Buffer, start: number, end: number, { cells, firstCell, cellCount }: ScannedLine): LinePlace {
    const byteCount = end - start;
    const block = this.blockFor(byteCount, cellCount);
    const at = block.length;
    bytes.copy(block.bytes, block.length, start, end);
    const kept = block.cells;
    const to = block.cellCount;
    for (let cell = 0; cell < cellCount; cell++) kept[to + cell] = cells[firstCell + cell] as number;
    block.length += byteCount;
    block.cellCount += cellCount;
    block.lineCount++;
    return this.placeAt(block, at, at + byteCount, to);
  }

  private placeAt(block: LineBlock, start: number, end: number, firstCell: number): LinePlace {
    this.place ??= { block, start, end, firstCell };
    this.place.block = block;
    this.place.start = start;
    this.place.end = end;
    this.place.firstCell = firstCell;
    return this.place;
  }

  /** A line of a block is not wanted any more; to be called once for each line. */
  letGo(block: LineBlock): void {
    if (--block.lineCount > 0) return;
    block.length = block.cellCount = 0;
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
