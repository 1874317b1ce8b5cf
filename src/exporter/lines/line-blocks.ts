import type { LinePlace } from './line-reader.js';
import { MAX_CELLS } from './line-scanner.js';
import type { ScannedLine } from './scanned-line.js';

/** Lines are kept together in blocks of this many bytes; a longer line has a block of its own. */
const BLOCK_BYTES = 128 * 1024;
/** Cells that a block has for each of its bytes: a line of 1 KB has about 64. */
const CELLS_PER_BYTE = 1 / 12;

/**
 * Keeps lines and their cells, copied out of bytes that are only lent. Lines come and go in the same order, so a block's
 * memory is free once its last line has gone; it is held by its lines alone.
 */
export class LineBlocks {
  private bytes: Buffer = Buffer.alloc(0);
  private view = new DataView(this.bytes.buffer);
  private cells = new Int32Array(0);
  private length = 0;
  private cellCount = 0;

  /** Keeps a line. */
  keep(bytes: Buffer, start: number, end: number, { cells, firstCell, cellCount }: ScannedLine): LinePlace {
    const byteCount = end - start;
    if (this.length + byteCount > this.bytes.length || this.cellCount + cellCount > this.cells.length) {
      const blockBytes = Math.max(BLOCK_BYTES, byteCount);
      this.bytes = Buffer.allocUnsafeSlow(blockBytes);
      this.view = new DataView(this.bytes.buffer);
      this.cells = new Int32Array(Math.max(MAX_CELLS, Math.floor(blockBytes * CELLS_PER_BYTE)));
      this.length = this.cellCount = 0;
    }
    const place = {
      bytes: this.bytes,
      view: this.view,
      start: this.length,
      end: this.length + byteCount,
      cells: this.cells,
      firstCell: this.cellCount,
    };
    bytes.copy(this.bytes, this.length, start, end);
    const kept = this.cells;
    for (let cell = 0; cell < cellCount; cell++) kept[this.cellCount + cell] = cells[firstCell + cell] as number;
    this.length += byteCount;
    this.cellCount += cellCount;
    return place;
  }
}
