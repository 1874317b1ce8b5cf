import type { HrTime } from '@opentelemetry/api';
import type { SpanId } from '../../record/ids.js';
import { tryParseRecordLine } from '../../record/record-line.js';
import type { SpanEnd, SpanStart, SpanStatus } from '../../record/telemetry-record.js';
import type { UnixNano } from '../../record/unix-nano.js';
import { type Interruption, interruptionOf } from '../../run/node-outcome.js';
import { spanIdOf } from '../mapping/id-halves.js';
import type { EndedSpan } from '../mapping/span-outcome.js';
import type { SpanSight } from '../mapping/span-sight.js';
import { type AttributePlan, roleIndexOf } from './attribute-plan.js';
import type { EventPlan } from './event-plan.js';
import type { EventPlans } from './event-plans.js';
import type { LineBlock } from './line-blocks.js';
import {
  ATTRIBUTE_CELLS,
  CELL,
  KIND_MASK,
  LINK_CELLS,
  OTHER_TEXT,
  PLAIN_TEXT,
  PLAN_SHIFT,
  ROLE_MASK,
  ROLE_SHIFT,
} from './line-cells.js';
import type { LineScanner } from './line-scanner.js';

/** Reads a scanned line through its cells. One object for all lines: what it says is about the line it was pointed at last. */
export class LineReader implements SpanSight, EndedSpan {
  bytes: Buffer = EMPTY;
  view: DataView = NO_VIEW;
  start = 0;
  cells: Int32Array = NO_CELLS;
  firstCell = 0;
  isEnd = false;
  readonly hasOwnTexts = true;
  private end = 0;
  /** `null` where it was not looked for. */
  private knownUniqueId: string | undefined | null = null;

  constructor(private readonly plans: EventPlans) {}

  /** Points at a line that was just scanned, in bytes that are only lent. */
  pointAtScanned(bytes: Buffer, start: number, end: number, scanned: LineScanner): void {
    this.bytes = bytes;
    this.view = scanned.view;
    this.knownUniqueId = null;
    this.start = start;
    this.end = end;
    this.cells = scanned.cells;
    this.firstCell = 0;
    this.isEnd = scanned.isEnd;
  }

  /** Points at the line of a span's end that was kept. */
  pointAt(block: LineBlock, index: number): void {
    this.bytes = block.bytes;
    this.view = block.view;
    this.knownUniqueId = null;
    this.start = block.startOf(index);
    this.end = block.endOf(index);
    this.cells = block.cells;
    this.firstCell = block.firstCellOf(index);
    this.isEnd = true;
  }

  /** Lets go of the bytes that it was pointed at. */
  forget(): void {
    this.bytes = EMPTY;
    this.view = NO_VIEW;
  }

  cell(index: number): number {
    return this.cells[this.firstCell + index] as number;
  }

  get event(): EventPlan {
    return this.plans.events[this.cell(CELL.event)] as EventPlan;
  }

  get eventType(): string {
    return this.event.eventType;
  }

  get spanHigh(): number {
    return this.cell(CELL.spanHigh);
  }

  get spanLow(): number {
    return this.cell(CELL.spanLow);
  }

  get parentHigh(): number {
    return this.cell(CELL.parentHigh);
  }

  get parentLow(): number {
    return this.cell(CELL.parentLow);
  }

  get linkHigh(): number {
    return this.linkHalf(0);
  }

  get linkLow(): number {
    return this.linkHalf(8);
  }

  get spanId(): SpanId {
    return spanIdOf(this.spanHigh, this.spanLow);
  }

  get parentSpanId(): SpanId | null {
    const { parentHigh, parentLow } = this;
    return parentHigh === 0 && parentLow === 0 ? null : spanIdOf(parentHigh, parentLow);
  }

  get startTimeUnixNano(): UnixNano {
    return this.time(CELL.startSeconds);
  }

  get endTimeUnixNano(): UnixNano {
    return this.time(this.isEnd ? CELL.endSeconds : CELL.startSeconds);
  }

  /** As in its record; code 0 where that has none. */
  get status(): SpanStatus {
    const code = this.cell(CELL.statusCode);
    const start = this.start + this.cell(CELL.messageStart);
    const end = this.start + this.cell(CELL.messageEnd);
    const hasMessage = start > this.start;
    return { code, message: hasMessage ? this.bytes.toString('latin1', start, end) : null };
  }

  /** Its texts, by `text`. */
  get attributes(): this {
    return this;
  }

  /** When it ended, in seconds and nanoseconds. */
  get endTime(): HrTime {
    const seconds = this.isEnd ? CELL.endSeconds : CELL.startSeconds;
    return [this.cell(seconds) >>> 0, this.cell(seconds + 1)];
  }

  get name(): string {
    return this.bytes.toString('latin1', this.start + this.cell(CELL.nameStart), this.start + this.cell(CELL.nameEnd));
  }

  /** Where the trace id's digits stand in the line. */
  get traceIdStart(): number {
    return this.isEnd ? END_TRACE_ID : START_TRACE_ID;
  }

  get attributeCount(): number {
    return this.cell(CELL.attributeCount);
  }

  /** The first cell of the first attribute, as an index of `cells`. */
  get attributesCell(): number {
    return this.firstCell + CELL.links + this.cell(CELL.linkCount) * LINK_CELLS;
  }

  planAt(cell: number): AttributePlan {
    return this.plans.attributes[(this.cells[cell] as number) >> PLAN_SHIFT] as AttributePlan;
  }

  kindAt(cell: number): number {
    return (this.cells[cell] as number) & KIND_MASK;
  }

  /** Where an attribute's value begins in `bytes`. */
  valueStart(cell: number): number {
    return this.start + (this.cells[cell + 1] as number);
  }

  /** Where it ends. */
  valueEnd(cell: number): number {
    return this.start + (this.cells[cell + 2] as number);
  }

  /** The cell of an attribute that the mapping looks at; 0 where there is none. */
  find(role: number): number {
    if ((this.cell(CELL.roles) & (1 << role)) === 0) return 0;
    const { cells } = this;
    let cell = this.attributesCell;
    for (let left = this.attributeCount; left > 0; left--, cell += ATTRIBUTE_CELLS) {
      if ((((cells[cell] as number) >> ROLE_SHIFT) & ROLE_MASK) === role + 1) return cell;
    }
    return 0;
  }

  /** The node that the span is about. */
  get uniqueId(): string | undefined {
    if (this.knownUniqueId === null) {
      const cell = this.find(UNIQUE_ID);
      this.knownUniqueId = cell === 0 ? undefined : this.textAt(cell);
    }
    return this.knownUniqueId;
  }

  /** @param name one of `ROLES` */
  text(name: string): string | undefined {
    if (name === 'unique_id') return this.uniqueId;
    const cell = this.find(roleIndexOf(name));
    return cell === 0 ? undefined : this.textAt(cell);
  }

  /** The text that stands in an attribute's cells; `undefined` where it is none. */
  textAt(cell: number): string | undefined {
    const start = this.valueStart(cell);
    const end = this.valueEnd(cell);
    const kind = this.kindAt(cell);
    if (kind === PLAIN_TEXT) return this.plans.texts.textOf(this.bytes, this.view, start, end);
    return kind === OTHER_TEXT ? (JSON.parse(this.bytes.toString('utf8', start, end)) as string) : undefined;
  }

  interruption(): Interruption | undefined {
    if (!this.isEnd || !CANCELED.test(this.text('query_outcome') ?? '')) return undefined;
    const record = this.readRecord();
    return record === undefined ? undefined : interruptionOf(record);
  }

  /** The whole record, through the general parser; `undefined` where the line turns out to be damaged. */
  readRecord(): SpanStart | SpanEnd | undefined {
    return readSpanLine(this.bytes.subarray(this.start, this.end));
  }

  private linkHalf(at: number): number {
    if (this.cell(CELL.linkCount) === 0) return 0;
    const start = this.start + this.cell(CELL.links + 1) + at;
    return Number.parseInt(this.bytes.toString('latin1', start, start + 8), 16) | 0;
  }

  private time(cell: number): UnixNano {
    return BigInt(this.cell(cell) >>> 0) * BILLION + BigInt(this.cell(cell + 1));
  }
}

/** The record of a span's line; `undefined` where it is none. */
export function readSpanLine(line: Buffer): SpanStart | SpanEnd | undefined {
  const record = tryParseRecordLine(line.toString('utf8'));
  return record?.recordType === 'LogRecord' ? undefined : record;
}

const UNIQUE_ID = roleIndexOf('unique_id');
const START_TRACE_ID = '{"record_type":"SpanStart","trace_id":"'.length;
const END_TRACE_ID = '{"record_type":"SpanEnd","trace_id":"'.length;
const EMPTY = Buffer.alloc(0);
const NO_CELLS = new Int32Array(0);
const NO_VIEW = new DataView(EMPTY.buffer);
const BILLION = 1_000_000_000n;
const CANCELED = /cancell?ed/i;
