import { type Resource, UNKNOWN_RESOURCE } from '../../record/resource.js';
import type { SpanStart } from '../../record/telemetry-record.js';
import type { OpenStart } from '../mapping/span-tree.js';
import { readSpanLine } from './line-reader.js';

/** The start of a span that was read from its line. Most spans end soon, and nobody asks for their start. */
export class LineStart implements OpenStart {
  isOpen = false;
  private bytes = NO_BYTES;
  private start = 0;
  private end = 0;
  private from: Resource = UNKNOWN_RESOURCE;

  get resource(): Resource {
    return this.from;
  }

  /** Points at a start's line in bytes that are only lent. */
  pointAt(bytes: Buffer, start: number, end: number, resource: Resource): void {
    this.isOpen = true;
    this.bytes = bytes;
    this.start = start;
    this.end = end;
    this.from = resource;
  }

  /** Copies the line out of the lent bytes, at the end of the push in which it came. */
  keep(): void {
    this.bytes = Buffer.from(this.bytes.subarray(this.start, this.end));
    this.end -= this.start;
    this.start = 0;
  }

  /** Lets go of the bytes. */
  forget(): void {
    this.bytes = NO_BYTES;
    this.start = this.end = 0;
    this.from = UNKNOWN_RESOURCE;
  }

  readRecord(): SpanStart | undefined {
    const record = readSpanLine(this.bytes.subarray(this.start, this.end));
    return record?.recordType === 'SpanStart' ? record : undefined;
  }
}

const NO_BYTES: Buffer = Buffer.alloc(0);
