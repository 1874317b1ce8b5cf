import { ByteSource } from './byte-source.js';

/** Bytes asked for at a time. */
const READ_BYTES = 1024 * 1024;
const LINE_FEED = 0x0a;

/**
 * A window on a file that moves along line by line: what is read is put behind what is left, in one buffer that is used
 * again. It grows only with a line that is longer than it, up to the limit; of longer lines only their end is looked for.
 */
export class LineWindow {
  /** Holds the present line from `lineStart` to `lineEnd`, without its line feed. */
  source = new ByteSource(Buffer.allocUnsafeSlow(2 * READ_BYTES));
  private bytes = this.source.bytes;
  lineStart = 0;
  lineEnd = 0;
  /** Where the present line's first byte stands in the file. */
  lineOffset: number;
  /** The present line is longer than the limit; its bytes are not here. */
  isTooLong = false;
  private next = 0;
  private end = 0;
  private searched = 0;
  private nextOffset: number;
  /** Where the buffer's first byte stands in the file. */
  private bufferOffset: number;
  private isSkipping = false;

  /** @param offset where in the file the reading begins */
  constructor(
    offset: number,
    private readonly maxLineBytes: number,
  ) {
    this.lineOffset = offset;
    this.nextOffset = offset;
    this.bufferOffset = offset;
  }

  /** Room for 1 MiB to be read into; then `filled` is to be called. */
  room(): Buffer {
    if (this.end - this.next > this.maxLineBytes) {
      this.isSkipping = true;
      this.next = this.end;
    }
    this.bytes.copyWithin(0, this.next, this.end);
    this.bufferOffset += this.next;
    this.searched = this.end - this.next;
    this.end -= this.next;
    this.next = 0;
    if (this.bytes.length - this.end < READ_BYTES) {
      const grown = Buffer.allocUnsafeSlow(this.bytes.length * 2);
      this.bytes.copy(grown, 0, 0, this.end);
      this.source = new ByteSource(grown);
      this.bytes = grown;
    }
    return this.bytes.subarray(this.end, this.end + READ_BYTES);
  }

  /** So many bytes were read into the room. */
  filled(byteCount: number): void {
    this.end += byteCount;
  }

  /** The lines that are here to their end. */
  wholeLines(): Buffer {
    const last = this.bytes.subarray(0, this.end).lastIndexOf(LINE_FEED);
    return this.bytes.subarray(this.next, Math.max(this.next, last + 1));
  }

  /** Goes on to the next line; `false` when more has to be read for it. */
  nextLine(): boolean {
    const feed = this.bytes.indexOf(LINE_FEED, this.searched);
    if (feed < 0 || feed >= this.end) {
      this.searched = this.end;
      return false;
    }
    this.take(feed, feed + 1);
    return true;
  }

  /** Takes what is left at the file's end as its last line; `false` when nothing is. */
  lastLine(): boolean {
    if (this.next === this.end && !this.isSkipping) return false;
    this.take(this.end, this.end);
    return true;
  }

  private take(end: number, next: number): void {
    this.isTooLong = this.isSkipping || end - this.next > this.maxLineBytes;
    this.isSkipping = false;
    this.lineStart = this.next;
    this.lineEnd = end;
    this.next = next;
    this.searched = next;
    this.lineOffset = this.nextOffset;
    this.nextOffset = this.bufferOffset + next;
  }
}
