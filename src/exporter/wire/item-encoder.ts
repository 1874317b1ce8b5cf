import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { encodeLog } from './encode-log.js';
import { encodeSpan } from './encode-span.js';
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

  constructor(private readonly blockBytes = BLOCK_BYTES) {
    this.block = new WireWriter(0);
  }

  /** Where the next item goes, with room for most; what is written from its `length` on is an item once `span` or `log` is called. */
  writer(): WireWriter {
    if (this.block.length + ROOM_BYTES > this.block.bytes.length) this.block = new WireWriter(this.blockBytes);
    return this.block;
  }

  span(span: ReadableSpan, group: ExportGroup): EncodedSpan {
    const out = this.writer();
    const start = out.length;
    encodeSpan(out, span);
    return new EncodedSpan(out.bytes, start, out.length, group);
  }

  log(log: ReadableLogRecord, group: ExportGroup): EncodedLog {
    const out = this.writer();
    const start = out.length;
    encodeLog(out, log);
    return new EncodedLog(out.bytes, start, out.length, group);
  }
}
