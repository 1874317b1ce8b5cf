import { endianness } from 'node:os';
import type { SpanId } from './ids.js';
import { parseRecordLine } from './record-line.js';
import type { SpanEnd, SpanStart } from './telemetry-record.js';
import type { UnixNano } from './unix-nano.js';

/** Where the lower half of a 64-bit number stands, in this machine's order. */
const LOW = endianness() === 'LE' ? 0 : 1;

/** Numbers that are kept of each span, by their place among its cells. */
export const CELL = {
  /** Where the span's SpanStart line begins in `lines`, its SpanEnd line begins, and that one ends; in bytes. */
  startLine: 0,
  endLine: 1,
  lineEnd: 2,
  /** The ids' halves, as unsigned 32-bit numbers. A parent of two zeros is none. */
  idHigh: 3,
  idLow: 4,
  parentHigh: 5,
  parentLow: 6,
  /** Index in `eventTypes`. */
  eventType: 7,
  /** Unix nanoseconds, in halves; each pair is read as one number, too, so it begins at an even place. */
  startTimeLow: 8 + LOW,
  startTimeHigh: 9 - LOW,
  endTimeLow: 10 + LOW,
  endTimeHigh: 11 - LOW,
  /** The name as a JSON string in `lines`. */
  nameStart: 12,
  nameEnd: 13,
  /** The one span of the same trace that it links to; two zeros for none. */
  linkHigh: 14,
  linkLow: 15,
  /** 1 where the other cells do not tell all that a summary needs: ask `recordsOf`. */
  isSpecial: 16,
  /** `unique_id`, `node_outcome` and `phase` or `last_phase` at the span's end, as JSON strings in `lines`; two zeros for none. */
  uniqueIdStart: 17,
  uniqueIdEnd: 18,
  outcomeStart: 19,
  outcomeEnd: 20,
  phaseStart: 21,
  phaseEnd: 22,
  /** 0 unset, 1 ok, 2 error. */
  statusCode: 23,
  /** What else its outcome depends on (`node_test_detail`, `node_outcome_detail` …): `"name":value` in `lines`; two zeros for none. */
  detailStart: 24,
  detailEnd: 25,
} as const;

const BACKSLASH = 0x5c;
const START_TIME = 8;
const END_TIME = 10;

/** Cells of one span; an even number, see `startTimeLow`. */
export const CELLS_PER_SPAN = 26;

/**
 * Spans of one request as lines of JSONL, and beside them, in numbers, what is asked of every span: so that a span costs
 * neither objects nor strings on its way to the disk. Each span has two lines, SpanStart and SpanEnd, one behind the
 * other, and the lines of consecutive spans touch. Lent by whoever decodes: not to be read after it was given back.
 */
export class SpanPage {
  /** UTF-8, with line breaks. */
  lines: Buffer = Buffer.alloc(0);
  /** `CELLS_PER_SPAN` numbers for each span. */
  cells = new Uint32Array(64 * CELLS_PER_SPAN);
  private pairs = new BigUint64Array(this.cells.buffer);
  spanCount = 0;
  /** Full names of the event types that occur. */
  readonly eventTypes: string[] = [];

  /** Makes room for one more span's cells. Returns the place of the first. */
  reserve(): number {
    const at = this.spanCount * CELLS_PER_SPAN;
    this.makeRoom(at + CELLS_PER_SPAN);
    return at;
  }

  /** Adds spans by their cells, `CELLS_PER_SPAN` of each. */
  addSpans(cells: Uint32Array): void {
    const at = this.spanCount * CELLS_PER_SPAN;
    this.makeRoom(at + cells.length);
    this.cells.set(cells, at);
    this.spanCount += cells.length / CELLS_PER_SPAN;
  }

  /** Forgets all spans. */
  clear(): void {
    this.spanCount = 0;
    this.eventTypes.length = 0;
  }

  cell(span: number, which: number): number {
    return this.cells[span * CELLS_PER_SPAN + which] as number;
  }

  spanId(span: number): SpanId {
    return hexOf(this.cell(span, CELL.idHigh), this.cell(span, CELL.idLow));
  }

  parentSpanId(span: number): SpanId {
    return hexOf(this.cell(span, CELL.parentHigh), this.cell(span, CELL.parentLow));
  }

  startTimeUnixNano(span: number): UnixNano {
    return this.pairs[(span * CELLS_PER_SPAN + START_TIME) / 2] as bigint;
  }

  endTimeUnixNano(span: number): UnixNano {
    return this.pairs[(span * CELLS_PER_SPAN + END_TIME) / 2] as bigint;
  }

  /** The text whose JSON stands between two cells' values, in memory of its own; `undefined` where they are zero. */
  text(span: number, startCell: number, endCell: number): string | undefined {
    const start = this.cell(span, startCell);
    const end = this.cell(span, endCell);
    if (end === 0) return undefined;
    for (let at = start; at < end; at++) {
      if (this.lines[at] === BACKSLASH) return JSON.parse(this.lines.toString('utf8', start, end)) as string;
    }
    return this.lines.toString('utf8', start + 1, end - 1);
  }

  /** The span's two records, read from their lines. */
  recordsOf(span: number): readonly [SpanStart, SpanEnd] {
    const start = parseRecordLine(this.lineOf(span, CELL.startLine, CELL.endLine));
    const end = parseRecordLine(this.lineOf(span, CELL.endLine, CELL.lineEnd));
    if (start.recordType !== 'SpanStart' || end.recordType !== 'SpanEnd') throw new Error('the page is not in order');
    return [start, end];
  }

  private makeRoom(cellCount: number): void {
    if (cellCount <= this.cells.length) return;
    let size = this.cells.length;
    while (size < cellCount) size *= 2;
    const larger = new Uint32Array(size);
    larger.set(this.cells);
    this.cells = larger;
    this.pairs = new BigUint64Array(larger.buffer);
  }

  private lineOf(span: number, from: number, to: number): string {
    return this.lines.toString('utf8', this.cell(span, from), this.cell(span, to) - 1);
  }
}

function hexOf(high: number, low: number): SpanId {
  return (high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0')) as SpanId;
}
