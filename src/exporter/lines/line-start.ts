import type { Resource } from '../../record/resource.js';
import type { SpanStart } from '../../record/telemetry-record.js';
import type { OpenStart } from '../mapping/span-tree.js';
import { readSpanLine } from './line-reader.js';

/** The start of a span that was read from its line. Most spans end soon, and nobody asks for their start. */
export class LineStart implements OpenStart {
  isOpen = true;

  constructor(
    private bytes: Buffer,
    private start: number,
    private end: number,
    readonly resource: Resource,
  ) {}

  /** Copies the line out of the lent bytes, at the end of the push in which it came. */
  keep(): void {
    this.bytes = Buffer.from(this.bytes.subarray(this.start, this.end));
    this.end -= this.start;
    this.start = 0;
  }

  readRecord(): SpanStart | undefined {
    const record = readSpanLine(this.bytes.subarray(this.start, this.end));
    return record?.recordType === 'SpanStart' ? record : undefined;
  }
}
