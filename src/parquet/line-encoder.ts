import { isUtf8 } from 'node:buffer';
import { readSync } from 'node:fs';
import { ByteSource } from './bytes.js';
import { LineRows, type LineRowsOptions } from './line-rows.js';
import { type EncodedRowGroup, isGroupFull, type ParquetWriterLimits, RowGroupColumns } from './row-group.js';

/** A part of a JSONL file: the lines whose first byte lies in it. */
export interface Stretch {
  /** In bytes; may be in the middle of a line, which then belongs to the part before. */
  readonly fromOffset: number;
  /** Exclusive; all that is left of the file where it is infinite. */
  readonly toOffset: number;
}

/** How lines are read and rows are grouped. */
export interface StretchLimits extends ParquetWriterLimits {
  readonly maxLineBytes: number;
  /**
   * Whether the file is one of our own record logs: a last line without a line break is then left out, for it may be half
   * written, and its records are in the schema's own spelling.
   */
  readonly isRecordLog: boolean;
}

/** A line that is no record. */
export interface LineReject {
  /** Counts from 1 in the stretch. */
  readonly line: number;
  /** `undefined`: longer than the limit. */
  readonly reason: string | undefined;
}

/** What came of about 1 MiB of lines. */
export interface StretchStep {
  /** Of this step. */
  readonly bytesRead: number;
  /** Lines until the end of this step, of the stretch. */
  readonly lineCount: number;
  /** Records of this step. */
  readonly recordCount: number;
  readonly rejects: readonly LineReject[];
  /** Row groups that were finished. */
  readonly groups: readonly EncodedRowGroup[];
}

/** Turns stretches of JSONL files into row groups. Holds one row group, compressed, and about 2 MiB of lines. */
export class StretchEncoder {
  private readonly columns = new RowGroupColumns();
  private readonly rows: LineRows;

  /** @param toModern as in `LineRowsOptions` */
  constructor(
    private readonly limits: StretchLimits,
    toModern: LineRowsOptions['toModern'],
  ) {
    this.rows = new LineRows(this.columns, { isModern: limits.isRecordLog, toModern });
    // V8 takes fields that nobody has assigned again for constants, and throws the code that it has optimized away when
    // the first page and row group end. Ended once before, they cost nothing later.
    this.columns.finish();
  }

  /**
   * Reads the stretch in steps, so that whoever runs it can do something else between them.
   * @param file an open file's descriptor; its own position is not used
   * @throws what the file system throws when the file cannot be read
   */
  *encode(file: number, { fromOffset, toOffset }: Stretch): Generator<StretchStep> {
    // The byte before tells whether a line begins at the very start.
    let position = Math.max(0, fromOffset - 1);
    const window = new LineWindow(position, this.limits.maxLineBytes);
    // What comes before the first line feed is then the line of the part before, or nothing.
    let lineCount = fromOffset === 0 ? 0 : -1;
    for (let isOver = false; !isOver; ) {
      const room = window.room();
      const bytesRead = readSync(file, room, 0, room.length, position);
      position += bytesRead;
      window.filled(bytesRead);
      const isValid = isUtf8(window.wholeLines());
      const step = { recordCount: 0, rejects: [] as LineReject[], groups: [] as EncodedRowGroup[] };
      while (window.nextLine() || (bytesRead === 0 && !this.limits.isRecordLog && window.lastLine())) {
        isOver = window.lineOffset >= toOffset;
        if (isOver) break;
        if (++lineCount > 0) this.appendLine(window, isValid && bytesRead > 0, lineCount, step);
      }
      isOver ||= bytesRead === 0;
      if (isOver && this.columns.rowCount > 0) step.groups.push(this.columns.finish());
      yield { ...step, bytesRead, lineCount: Math.max(0, lineCount) };
    }
  }

  private appendLine(
    { source, lineStart, lineEnd, isTooLong }: LineWindow,
    isValidUtf8: boolean,
    line: number,
    step: { recordCount: number; readonly rejects: LineReject[]; readonly groups: EncodedRowGroup[] },
  ): void {
    const { columns, limits } = this;
    const before = columns.rowCount;
    const reason = isTooLong ? undefined : this.rows.append(source, lineStart, lineEnd, isValidUtf8);
    if (isTooLong || reason !== undefined) step.rejects.push({ line, reason });
    step.recordCount += columns.rowCount - before;
    if (columns.rowCount > before && isGroupFull(columns, limits)) step.groups.push(columns.finish());
  }
}

/** Bytes asked for at a time. */
const READ_BYTES = 1024 * 1024;
const LINE_FEED = 0x0a;

/**
 * A window on a file that moves along line by line: what is read is put behind what is left, in one buffer that is used
 * again. It grows only with a line that is longer than it, up to the limit; of longer lines only their end is looked for.
 */
class LineWindow {
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
