import { EncodedLog } from './encoded-log.js';
import { EncodedSpan } from './encoded-span.js';
import type { ExportGroup } from './export-group.js';
import { WireWriter } from './wire-writer.js';

/** Items share blocks of about this many bytes; one that is larger has a block of its own. */
const BLOCK_BYTES = 256 * 1024;
/** A block with less room than this is full: most items need no more, and those that do make it grow. */
const ROOM_BYTES = 4 * 1024;

/** Encodes items one behind the other into blocks of bytes. What was handed out is not written to again. */
export class ItemEncoder {
  private block: WireWriter;
  /** Where the item that was written last begins. */
  private start = 0;

  constructor(private readonly blockBytes = BLOCK_BYTES) {
    this.block = new WireWriter(0);
  }

  /** A span that is written now, its tag and length included. @throws what `write` does */
  span(group: ExportGroup, write: (out: WireWriter) => void): EncodedSpan {
    const out = this.written(write);
    return new EncodedSpan(out.bytes, this.start, out.length, group);
  }

  /** As `span`, of a line that may turn out to be damaged: `undefined` then. */
  spanOf(group: ExportGroup, write: (out: WireWriter) => void): EncodedSpan | undefined {
    try {
      return this.span(group, write);
    } catch (error) {
      if (error instanceof SyntaxError) return undefined;
      throw error;
    }
  }

  /** A log record that is written now. @throws what `write` does */
  log(group: ExportGroup, write: (out: WireWriter) => void): EncodedLog {
    const out = this.written(write);
    return new EncodedLog(out.bytes, this.start, out.length, group);
  }

  private written(write: (out: WireWriter) => void): WireWriter {
    if (this.block.length + ROOM_BYTES > this.block.bytes.length) this.block = new WireWriter(this.blockBytes);
    const { block } = this;
    this.start = block.length;
    try {
      write(block);
    } catch (error) {
      block.length = this.start;
      throw error;
    }
    return block;
  }
}
