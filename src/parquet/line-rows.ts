import { CellSink } from '../otlp/wire/line-cells.js';
import { LineKind, LineScanner } from '../otlp/wire/line-scanner.js';
import { itemReading } from '../otlp/wire/read-items.js';
import { isStartBefore, StartLines } from '../otlp/wire/start-lines.js';
import { buffer, constant, isSame, MAX_RECORD_BYTES, REGION, textAt, view } from '../record/arena.js';
import { isNestedTooDeep, MAX_JSON_LEVELS } from '../record/attributes.js';
import { Cell, cell, pointAt } from '../record/cells.js';
import { formatRecordLine, parseRecordLine, RecordParseError } from '../record/record-line.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { texts } from '../record/texts.js';
import { TextRoom } from './cell-payload.js';
import { CellRows } from './cell-rows.js';
import { EventPlans } from './event-plan.js';
import { PlainRows } from './plain-rows.js';
import type { RowGroupColumns } from './row-group.js';

const LINE_BREAK = 0x0a;
/** Where lines stand, and how many bytes of them at a time: few enough for the processor's cache, unless a line has more. */
const LINES = REGION.bodies;
const WINDOW_BYTES = 512 * 1024;
/** The name that documentation gives to spans of nodes. */
const DOCUMENTED_NAME = constant('Node(');

/** How lines are read. */
export interface LineRowsOptions {
  /** Whether all records are known to be in the schema's own spelling: those of record logs are. */
  readonly isModern: boolean;
  /** Gives a record in that spelling. */
  readonly toModern: (record: TelemetryRecord) => TelemetryRecord;
}

/** Writes lines of JSONL as rows: from their cells where they look as nearly all do, else by plain code from the record that they are. */
export class LineRows {
  private readonly reading = itemReading();
  private readonly scanner = new LineScanner(this.reading.layouts, new CellSink());
  private readonly starts = new StartLines();
  private readonly plain: PlainRows;
  private readonly cells: CellRows;
  private readonly room = new TextRoom();
  /** Which of the bytes stand in the arena. */
  private windowStart = 0;
  private windowEnd = 0;
  private end = 0;
  /** The line of a start that waits to be written with its end, which was scanned, and the line of that; 0 for none. */
  private waitingStart = 0;
  private waitingEnd = 0;
  /** Where the line of the next record is written. */
  private recordStart: number = LINES;

  constructor(
    private readonly columns: RowGroupColumns,
    private readonly options: LineRowsOptions,
  ) {
    const plans = new EventPlans(columns);
    this.plain = new PlainRows(columns, plans);
    this.cells = new CellRows(columns, plans, this.reading.layouts, this.scanner, this.room);
  }

  /**
   * What is appended next stands in other bytes than before, or something else may have been done in this thread since `flush`.
   * @param end where the bytes end that are lines
   */
  begin(end: number): void {
    this.windowEnd = 0;
    this.end = end;
    this.waitingEnd = 0;
  }

  /**
   * Writes the line that lies in the bytes from `start` to `end`, without its line feed; a blank one writes nothing. Lines behind it
   * are looked at.
   * @param mayWait whether a start may be kept until the next line comes, to be written with it, or until `flush`
   * @returns why the line is no record and was passed over; `undefined` when all is well
   */
  append(bytes: Buffer, start: number, end: number, mayWait = false): string | undefined {
    if (end - start >= MAX_RECORD_BYTES) {
      this.flush();
      return this.takePlain(bytes.toString('utf8', start, end));
    }
    if (start < this.windowStart || end >= this.windowEnd) this.moveWindow(bytes, start, end);
    const offset = LINES - this.windowStart;
    const lineStart = offset + start;
    const next = offset + end + 1;
    view.setUint8(offset + end, LINE_BREAK);
    if (this.waitingEnd === lineStart) {
      this.waitingEnd = 0;
      this.cells.writePair(this.starts);
      return undefined;
    }
    this.takeWaiting();
    const limit = offset + this.windowEnd;
    if (mayWait && this.isPair(lineStart, next, limit)) {
      this.waitingStart = lineStart;
      this.waitingEnd = next;
      return undefined;
    }
    return this.takeUsual(lineStart, limit) ? undefined : this.takePlain(bytes.toString('utf8', start, end));
  }

  /** Writes all that waits: a start, and values of columns. */
  flush(): void {
    this.takeWaiting();
    this.flushColumns();
    this.recordStart = LINES;
  }

  /** Writes a record, by way of its line; by `flush` at the latest. */
  appendRecord(record: TelemetryRecord): void {
    const line = formatRecordLine(record);
    if (this.recordStart > LINES + WINDOW_BYTES) this.flush();
    const start = this.recordStart;
    if (line.length < MAX_RECORD_BYTES) {
      const end = start + buffer.write(line, start);
      view.setUint8(end, LINE_BREAK);
      this.recordStart = end + 1;
      if (this.takeUsual(start, end + 1)) return;
    }
    this.plain.write(record);
  }

  private takeWaiting(): void {
    const { waitingStart, waitingEnd } = this;
    if (waitingEnd === 0) return;
    this.waitingEnd = 0;
    if (!this.takeUsual(waitingStart, waitingEnd)) this.takePlain(textAt(waitingStart, waitingEnd - 1));
  }

  private flushColumns(): void {
    this.columns.flush();
    this.room.clear();
  }

  /** @returns what the line is, one of `LineKind` */
  private scan(start: number, limit: number): number {
    const { scanner, room } = this;
    this.reading.layouts.tidy();
    texts.tidy();
    // Others may look at a record of theirs.
    pointAt(0);
    if (room.isFull) this.flushColumns();
    const kind = scanner.scan(start, limit, room.end);
    room.end = scanner.sink.to;
    return kind;
  }

  /** @returns whether the line looks as nearly all do; else nothing was written */
  private takeUsual(start: number, limit: number): boolean {
    const { scanner, cells } = this;
    const kind = this.scan(start, limit);
    if (kind === LineKind.other) return false;
    if (kind !== LineKind.log) return cells.writeSpan(kind === LineKind.span);
    return (this.options.isModern || !isDocumented(scanner)) && cells.writeLog();
  }

  /** Whether a start stands before its end, so that only that has to be read. */
  private isPair(start: number, end: number, limit: number): boolean {
    if (!isStartBefore(start, end, limit)) return false;
    const { reading, scanner, starts } = this;
    if (this.scan(end, limit) !== LineKind.span) return false;
    const layout = reading.layouts.layout(cell(Cell.layout));
    return starts.isStartOf(scanner, layout, start, end) && this.cells.isPair(starts);
  }

  private takePlain(lineText: string): string | undefined {
    const text = lineText.endsWith('\r') ? lineText.slice(0, -1) : lineText;
    if (text.trim() === '') return undefined;
    if (isNestedTooDeep(text)) return `nested deeper than ${MAX_JSON_LEVELS} levels`;
    try {
      const record = parseRecordLine(text);
      this.plain.write(this.options.isModern ? record : this.options.toModern(record));
      return undefined;
    } catch (error) {
      if (error instanceof RecordParseError) return error.message;
      throw error;
    }
  }

  private moveWindow(bytes: Buffer, start: number, end: number): void {
    this.flush();
    this.windowStart = start;
    this.windowEnd = Math.min(this.end, Math.max(end + 1, start + WINDOW_BYTES));
    bytes.copy(buffer, LINES, start, this.windowEnd);
  }
}

/** Whether a log record's span is named as documentation does. */
function isDocumented({ spanNameStart, spanNameEnd }: LineScanner<CellSink>): boolean {
  const { at, length } = DOCUMENTED_NAME;
  return spanNameEnd - spanNameStart >= length && isSame(at, spanNameStart, length);
}
