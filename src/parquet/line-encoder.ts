import { readSync } from 'node:fs';
import { LineWindow } from '../core/lines.js';
import { recordParts } from '../record/record-line.js';
import { LineRows, type LineRowsOptions } from './line-rows.js';
import {
  type EncodedRowGroup,
  hasRoomForTwo,
  isGroupFull,
  type ParquetWriterLimits,
  RowGroupColumns,
} from './row-group.js';

/** A part of a JSONL file: the lines whose first byte lies in it. */
export interface FileRange {
  /** In bytes; may be in the middle of a line, which then belongs to the part before. */
  readonly fromOffset: number;
  /** Exclusive; all that is left of the file where it is infinite. */
  readonly toOffset: number;
}

/** How lines are read and rows are grouped. */
export interface RangeLimits extends ParquetWriterLimits {
  readonly maxLineBytes: number;
  /**
   * Whether the file is one of our own record logs: a last line without a line break is then left out, for it may be half
   * written, and its records are in the schema's own spelling.
   */
  readonly isRecordLog: boolean;
}

/** A line that is no record. */
export interface LineReject {
  /** Counts from 1 in the range. */
  readonly line: number;
  /** `undefined`: longer than the limit. */
  readonly reason: string | undefined;
}

/** The result of encoding about 1 MiB of lines. */
export interface RangeStep {
  /** Of this step. */
  readonly bytesRead: number;
  /** Lines until the end of this step, of the range. */
  readonly lineCount: number;
  /** Records of this step. */
  readonly recordCount: number;
  readonly rejects: readonly LineReject[];
  /** Row groups that were finished. */
  readonly groups: readonly EncodedRowGroup[];
}

/**
 * Turns ranges of JSONL files into row groups, one range after another: what the columns of one took serves the next. Holds one row
 * group, compressed, and about 2 MiB of lines.
 */
export class RangeEncoder {
  private readonly columns = new RowGroupColumns();
  private readonly rows: LineRows;
  private readonly window: LineWindow;

  /** @param toModern as in `LineRowsOptions` */
  constructor(
    private readonly limits: RangeLimits,
    toModern: LineRowsOptions['toModern'],
  ) {
    this.rows = new LineRows(this.columns, { isModern: limits.isRecordLog, toModern });
    this.window = new LineWindow(limits.maxLineBytes);
    // V8 takes fields that nobody has assigned again for constants, and throws the code that it has optimized away when
    // the first page and row group end. Ended once before, they cost nothing later.
    this.columns.finish();
  }

  /**
   * Reads the range in steps, so that its caller can do something else between them. Nothing is left of a range that was given up.
   * @param file an open file's descriptor; its own position is not used
   * @throws what the file system throws when the file cannot be read
   */
  *encode(file: number, { fromOffset, toOffset }: FileRange): Generator<RangeStep> {
    // The byte before tells whether a line begins at the very start.
    let position = Math.max(0, fromOffset - 1);
    const { window } = this;
    window.moveTo(position);
    if (this.columns.rowCount > 0) this.columns.finish();
    // What comes before the first line feed is then the line of the part before, or nothing.
    let lineCount = fromOffset === 0 ? 0 : -1;
    for (let isOver = false; !isOver; ) {
      const from = position;
      const bytesRead = window.fill((room) => readSync(file, room, 0, room.length, from));
      position += bytesRead;
      this.rows.begin(window.end);
      const step = { recordCount: 0, rejects: [] as LineReject[], groups: [] as EncodedRowGroup[] };
      while (window.nextLine() || (bytesRead === 0 && !this.limits.isRecordLog && window.lastLine())) {
        isOver = window.lineOffset >= toOffset;
        if (isOver) break;
        if (++lineCount > 0) this.appendLine(window, lineCount, step);
      }
      const before = this.columns.rowCount;
      this.rows.flush();
      step.recordCount += this.columns.rowCount - before;
      isOver ||= bytesRead === 0;
      if (isOver && this.columns.rowCount > 0) step.groups.push(this.columns.finish());
      yield { ...step, bytesRead, lineCount: Math.max(0, lineCount) };
    }
  }

  private appendLine(
    { source, lineStart, lineEnd, isTooLong }: LineWindow,
    line: number,
    step: { recordCount: number; readonly rejects: LineReject[]; readonly groups: EncodedRowGroup[] },
  ): void {
    const { columns, limits } = this;
    const before = columns.rowCount;
    if (isTooLong) this.rows.flush();
    const mayWait = hasRoomForTwo(columns, limits);
    const reason = isTooLong ? undefined : this.rows.append(source.bytes, lineStart, lineEnd, mayWait);
    if (isTooLong) step.rejects.push({ line, reason });
    else if (reason !== undefined) {
      const parts = recordParts(source.bytes, lineStart, lineEnd);
      const isWhole = parts.length === 1 && parts[0]?.[0] === lineStart && parts[0][1] === lineEnd;
      for (const [start, end] of isWhole ? [] : parts) {
        const wrong = this.rows.append(source.bytes, start, end);
        if (wrong !== undefined) step.rejects.push({ line, reason: wrong });
      }
      if (isWhole) step.rejects.push({ line, reason });
    }
    step.recordCount += columns.rowCount - before;
    if (columns.rowCount > before && isGroupFull(columns, limits)) step.groups.push(columns.finish());
  }
}
