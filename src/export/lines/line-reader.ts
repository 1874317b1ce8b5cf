import type { HrTime } from '@opentelemetry/api';
import { Attributes, type JsonValue, ownText, type Resource } from '../../record/attributes.js';
import type { SpanStatus } from '../../record/telemetry-record.js';
import { type Interruption, interruptionOf } from '../../run/node-outcome.js';
import {
  type AttributeMapping,
  type EventMapping,
  type EventMappings,
  KIND_MASK,
  MAPPING_SHIFT,
  ROLE_MASK,
  ROLE_SHIFT,
  roleIndexOf,
} from './event-mappings.js';
import {
  ATTRIBUTE_CELLS,
  CELL,
  isEscaped,
  LINK_CELLS,
  type LineScanner,
  LOG_RECORD,
  MAX_CELLS,
  nanosAt,
  OTHER_TEXT,
  PLAIN_TEXT,
  SPAN_END,
  SPAN_START,
  secondsAt,
} from './line-scanner.js';

/** Reads a scanned line through its cells. One object for all lines: what it says is about the line it was pointed at last. */
export class LineReader {
  bytes: Buffer = EMPTY;
  view: DataView = NO_VIEW;
  start = 0;
  cells: Int32Array = NO_CELLS;
  firstCell = 0;
  /** `SPAN_START`, `SPAN_END` or `LOG_RECORD`. */
  kind = SPAN_START;
  end = 0;
  /** `null` where it was not looked for. */
  private knownUniqueId: string | undefined | null = null;
  private knownAttributes: Attributes | undefined;

  constructor(readonly mappings: EventMappings) {}

  /** Points at a line that was just scanned, in bytes that are only lent. */
  pointAtScanned(bytes: Buffer, start: number, end: number, scanned: LineScanner): void {
    this.point(bytes, scanned.view, start, end);
    this.cells = scanned.cells;
    this.firstCell = 0;
    this.kind = scanned.kind;
  }

  /** Points at the line of a span's end that was kept. */
  pointAt(block: LineBlock, index: number): void {
    this.point(block.bytes, block.view, block.startOf(index), block.endOf(index));
    this.cells = block.cells;
    this.firstCell = block.firstCellOf(index);
    this.kind = SPAN_END;
  }

  /** Lets go of the bytes that it was pointed at. */
  forget(): void {
    this.point(EMPTY, NO_VIEW, 0, 0);
  }

  cell(index: number): number {
    return this.cells[this.firstCell + index] as number;
  }

  get isEnd(): boolean {
    return this.kind === SPAN_END;
  }

  get isLog(): boolean {
    return this.kind === LOG_RECORD;
  }

  get event(): EventMapping {
    return this.mappings.events[this.cell(CELL.event)] as EventMapping;
  }

  get eventType(): string {
    const { event } = this;
    return event.isUnknown ? this.textIn(CELL.eventType) : event.eventType;
  }

  /** Both halves are 0 where a log record has no span. */
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

  /** The id of the span that it links to first, as halves; both 0 for none. */
  get linkHigh(): number {
    return this.linkHalf(0);
  }

  get linkLow(): number {
    return this.linkHalf(8);
  }

  /** Of a log record, its time. */
  get startSeconds(): number {
    return secondsAt(this.cells, this.firstCell + CELL.start);
  }

  get startNanos(): number {
    return nanosAt(this.cells, this.firstCell + CELL.start);
  }

  /** The start once more, of a start. */
  get endSeconds(): number {
    return secondsAt(this.cells, this.firstCell + (this.isEnd ? CELL.end : CELL.start));
  }

  get endNanos(): number {
    return nanosAt(this.cells, this.firstCell + (this.isEnd ? CELL.end : CELL.start));
  }

  /** When it ended. */
  get endTime(): HrTime {
    return [this.endSeconds, this.endNanos];
  }

  /** Of a log record. */
  get severityNumber(): number {
    return this.cell(CELL.severityNumber);
  }

  get body(): string {
    return this.textIn(CELL.name);
  }

  /** Of the end of a span; code 0 where it has none, or one that OpenTelemetry does not have. */
  get status(): SpanStatus {
    const hasMessage = this.cell(CELL.message) > 0;
    return { code: this.cell(CELL.statusCode), message: hasMessage ? this.textIn(CELL.message) : null };
  }

  /** A text of the envelope. @param cell the first of its two */
  textIn(cell: number): string {
    const start = this.start + this.cell(cell);
    const end = this.cell(cell + 1);
    if (!isEscaped(end)) return this.bytes.toString('latin1', start, this.start + end);
    return JSON.parse(this.bytes.toString('utf8', start - 1, this.start + ~end + 1)) as string;
  }

  /** Where the trace id's digits stand in the line. */
  get traceIdStart(): number {
    return TRACE_ID_STARTS[this.kind] as number;
  }

  /** Whether the table of mappings knows its attributes, so that they have cells; else there is `attributes` alone. */
  get hasAttributeCells(): boolean {
    return this.cell(CELL.attributeCount) >= 0;
  }

  /** How many have cells. */
  get attributeCount(): number {
    return Math.max(0, this.cell(CELL.attributeCount));
  }

  /** The first cell of the first attribute, as an index of `cells`. */
  get attributesCell(): number {
    return this.firstCell + CELL.links + Math.abs(this.cell(CELL.linkCount)) * LINK_CELLS;
  }

  mappingAt(cell: number): AttributeMapping {
    return this.mappings.attributes[(this.cells[cell] as number) >> MAPPING_SHIFT] as AttributeMapping;
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

  /** Whether it has an attribute with this mapping. */
  has(mapping: AttributeMapping): boolean {
    let cell = this.attributesCell;
    for (let left = this.attributeCount; left > 0; left--, cell += ATTRIBUTE_CELLS) {
      if (this.mappingAt(cell) === mapping) return true;
    }
    return false;
  }

  /** The node that the record is about. */
  get uniqueId(): string | undefined {
    if (this.knownUniqueId === null) this.knownUniqueId = this.textOfRole('unique_id', UNIQUE_ID);
    return this.knownUniqueId;
  }

  /** An attribute that is a text. */
  text(name: string): string | undefined {
    return name === 'unique_id' ? this.uniqueId : this.textOfRole(name, roleIndexOf(name));
  }

  /** The text that stands in an attribute's cells; `undefined` where it is none. */
  textAt(cell: number, texts = this.mappings.texts): string | undefined {
    const kind = this.kindAt(cell);
    if (kind !== PLAIN_TEXT && kind !== OTHER_TEXT) return undefined;
    return texts.textOf(this.bytes, this.view, this.valueStart(cell), this.valueEnd(cell));
  }

  /** The value in an attribute's cells. @throws SyntaxError when it turns out to be damaged */
  valueAt(cell: number): JsonValue {
    const text = this.textAt(cell);
    if (text !== undefined) return text;
    return JSON.parse(this.bytes.toString('utf8', this.valueStart(cell), this.valueEnd(cell))) as JsonValue;
  }

  /** All attributes, through the general parser. */
  get attributes(): Attributes {
    this.knownAttributes ??= Attributes.fromBytes(this.bytes, this.start + this.cell(CELL.attributes), this.end - 1);
    return this.knownAttributes;
  }

  /** Whether it says that a node, or the command, was interrupted. */
  interruption(): Interruption | undefined {
    const { isLog } = this;
    if (!isLog && (!this.isEnd || !CANCELED.test(this.text('query_outcome') ?? ''))) return undefined;
    const { eventType, attributes } = this;
    return interruptionOf({ recordType: isLog ? 'LogRecord' : 'SpanEnd', eventType, attributes });
  }

  private point(bytes: Buffer, view: DataView, start: number, end: number): void {
    this.bytes = bytes;
    this.view = view;
    this.start = start;
    this.end = end;
    this.knownUniqueId = null;
    this.knownAttributes = undefined;
  }

  private textOfRole(name: string, role: number): string | undefined {
    if (role < 0 || !this.hasAttributeCells) {
      const text = this.attributes.text(name);
      return text === undefined ? undefined : ownText(text);
    }
    const cell = this.find(role);
    if (cell === 0) return undefined;
    return this.textAt(cell, role === SQL ? this.mappings.statements : this.mappings.texts);
  }

  private linkHalf(at: number): number {
    const count = this.cell(CELL.linkCount);
    if (count === 0) return 0;
    if (count > 0) {
      const start = this.start + this.cell(CELL.links + 1) + at;
      return Number.parseInt(this.bytes.toString('latin1', start, start + 8), 16) | 0;
    }
    const id = this.otherLinks()[0]?.span_id;
    return id === undefined ? 0 : Number.parseInt(id.slice(at, at + 8), 16) | 0;
  }

  /** Links that have no cells, as the line has them. */
  otherLinks(): readonly LineLink[] {
    const start = this.start + this.cell(CELL.links);
    return JSON.parse(this.bytes.toString('utf8', start, this.start + this.cell(CELL.links + 1))) as LineLink[];
  }
}

/** A link in a line that `formatRecordLine` wrote. */
interface LineLink {
  readonly trace_id: string;
  readonly span_id: string;
  readonly attributes: { readonly [name: string]: JsonValue };
}

const UNIQUE_ID = roleIndexOf('unique_id');
const SQL = roleIndexOf('sql');
const TRACE_ID_STARTS = ['SpanStart', 'SpanEnd', 'LogRecord'].map(
  (type) => `{"record_type":"${type}","trace_id":"`.length,
);
const EMPTY = Buffer.alloc(0);
const NO_CELLS = new Int32Array(0);
const NO_VIEW = new DataView(EMPTY.buffer);
const CANCELED = /cancell?ed/i;

/** Lines are kept together in blocks of this many bytes; a longer line has a block of its own. */
const BLOCK_BYTES = 128 * 1024;
/** Cells that a block has for each of its bytes: a line of 1 KB has about 64. */
const CELLS_PER_BYTE = 1 / 12;
/** Lines that a block has at most. */
const MAX_LINES = 1024;
/** Numbers of a line in a block: where it begins and ends in its bytes, and its first cell. */
const PLACE_NUMBERS = 3;
/** Blocks that wait to be used again: V8 collects garbage all the more often, the more memory is taken beside its heap. */
const MAX_SPARE_BLOCKS = 2;

/** A block of memory for lines and their cells. */
export class LineBlock {
  readonly bytes: Buffer;
  /** Of the same bytes. */
  readonly view: DataView;
  readonly cells: Int32Array;
  length = 0;
  cellCount = 0;
  /** Where each of its lines stands, see `PLACE_NUMBERS`. */
  readonly places: Int32Array;
  /** Lines that were put into it, and those of them that are still wanted. */
  lineTotal = 0;
  lineCount = 0;

  constructor(byteCount: number) {
    this.bytes = Buffer.allocUnsafeSlow(byteCount);
    this.view = new DataView(this.bytes.buffer);
    this.cells = new Int32Array(Math.max(MAX_CELLS, Math.floor(byteCount * CELLS_PER_BYTE)));
    this.places = new Int32Array(PLACE_NUMBERS * MAX_LINES);
  }

  hasRoom(byteCount: number, cellCount: number): boolean {
    const hasPlace = this.lineTotal < MAX_LINES && this.cellCount + cellCount <= this.cells.length;
    return hasPlace && this.length + byteCount <= this.bytes.length;
  }

  /** A line's first byte. */
  startOf(index: number): number {
    return this.places[PLACE_NUMBERS * index] as number;
  }

  /** The byte behind a line's last. */
  endOf(index: number): number {
    return this.places[PLACE_NUMBERS * index + 1] as number;
  }

  firstCellOf(index: number): number {
    return this.places[PLACE_NUMBERS * index + 2] as number;
  }
}

/**
 * Keeps lines and their cells, copied out of bytes that are only lent. Lines come and go in the same order, so a block is
 * used again, or let go, once its last line has gone.
 */
export class LineBlocks {
  private block: LineBlock | undefined;
  private spare: LineBlock[] = [];

  /** Keeps a line until it is released from its block. @returns the block, whose last line it is */
  keep(bytes: Buffer, start: number, end: number, { cells, cellCount }: LineScanner): LineBlock {
    const byteCount = end - start;
    const block = this.blockFor(byteCount, cellCount);
    const at = block.length;
    bytes.copy(block.bytes, block.length, start, end);
    const kept = block.cells;
    const to = block.cellCount;
    for (let cell = 0; cell < cellCount; cell++) kept[to + cell] = cells[cell] as number;
    const place = PLACE_NUMBERS * block.lineTotal++;
    block.places[place] = at;
    block.places[place + 1] = at + byteCount;
    block.places[place + 2] = to;
    block.length += byteCount;
    block.cellCount += cellCount;
    block.lineCount++;
    return block;
  }

  /** A line of a block is not wanted any more; to be called once for each line. */
  letGo(block: LineBlock): void {
    if (--block.lineCount > 0) return;
    block.length = block.cellCount = block.lineTotal = 0;
    const isUsable = block !== this.block && block.bytes.length === BLOCK_BYTES;
    if (isUsable && this.spare.length < MAX_SPARE_BLOCKS) this.spare.push(block);
  }

  private blockFor(byteCount: number, cellCount: number): LineBlock {
    if (this.block?.hasRoom(byteCount, cellCount) === true) return this.block;
    const isUsual = byteCount <= BLOCK_BYTES;
    this.block = (isUsual ? this.spare.pop() : undefined) ?? new LineBlock(Math.max(BLOCK_BYTES, byteCount));
    return this.block;
  }
}

/** A span's end that waited for late events. */
export interface HeldSpan {
  readonly anchorOffset: number;
  readonly resource: Resource;
  /** The block that its line is in, and the line's index there. */
  readonly block: LineBlock;
  readonly index: number;
}

const MIN_CAPACITY = 64;
/** More places than these are given back once nothing is held. */
const MAX_IDLE_CAPACITY = 4096;

/**
 * Ended spans in the order of the log, first in, first out. At full load they are a hundred thousand, so they are kept in
 * columns of numbers, a ring in each: as objects they are most of what V8 has to look at and to move when it collects garbage.
 */
export class HeldSpans {
  private capacity = MIN_CAPACITY;
  private from = 0;
  private heldCount = 0;
  private columns = new Columns(MIN_CAPACITY);

  get count(): number {
    return this.heldCount;
  }

  /** @param index of its line in the block */
  add(
    anchorOffset: number,
    resource: Resource,
    endSeconds: number,
    endNanos: number,
    block: LineBlock,
    index: number,
  ): void {
    if (this.heldCount === this.capacity) this.resize(2 * this.capacity);
    const { columns } = this;
    const at = (this.from + this.heldCount) & (this.capacity - 1);
    this.heldCount++;
    columns.anchorOffsets[at] = anchorOffset;
    columns.resources[at] = resource;
    columns.endSeconds[at] = endSeconds;
    columns.endNanos[at] = endNanos;
    columns.blocks[at] = block;
    columns.indexes[at] = index;
  }

  /** Whether the oldest one ended before a time; not where there is none. */
  isOldestBefore(seconds: number, nanos: number): boolean {
    if (this.heldCount === 0) return false;
    const { endSeconds, endNanos } = this.columns;
    const own = endSeconds[this.from] as number;
    return own < seconds || (own === seconds && (endNanos[this.from] as number) < nanos);
  }

  takeOldest(): HeldSpan | undefined {
    if (this.heldCount === 0) return undefined;
    const at = this.from;
    const { anchorOffsets, resources, blocks, indexes } = this.columns;
    const anchorOffset = anchorOffsets[at] as number;
    const index = indexes[at] as number;
    const resource = resources[at] as Resource;
    const block = blocks[at] as LineBlock;
    // Let go at once: it keeps a block of lines.
    blocks[at] = undefined;
    this.from = (at + 1) & (this.capacity - 1);
    this.heldCount--;
    if (this.heldCount === 0 && this.capacity > MAX_IDLE_CAPACITY) this.resize(MIN_CAPACITY);
    return { anchorOffset, resource, block, index };
  }

  private resize(capacity: number): void {
    const columns = new Columns(capacity);
    for (let index = 0; index < this.heldCount; index++) {
      columns.take(index, this.columns, (this.from + index) & (this.capacity - 1));
    }
    this.columns = columns;
    this.capacity = capacity;
    this.from = 0;
  }
}

/** What is held, one place in each column a span. */
class Columns {
  readonly anchorOffsets: Float64Array;
  readonly endSeconds: Float64Array;
  readonly endNanos: Int32Array;
  readonly indexes: Int32Array;
  readonly resources: (Resource | undefined)[];
  readonly blocks: (LineBlock | undefined)[];

  constructor(capacity: number) {
    this.anchorOffsets = new Float64Array(capacity);
    this.endSeconds = new Float64Array(capacity);
    this.endNanos = new Int32Array(capacity);
    this.indexes = new Int32Array(capacity);
    this.resources = new Array(capacity).fill(undefined);
    this.blocks = new Array(capacity).fill(undefined);
  }

  take(at: number, from: Columns, place: number): void {
    this.anchorOffsets[at] = from.anchorOffsets[place] as number;
    this.endSeconds[at] = from.endSeconds[place] as number;
    this.endNanos[at] = from.endNanos[place] as number;
    this.indexes[at] = from.indexes[place] as number;
    this.resources[at] = from.resources[place];
    this.blocks[at] = from.blocks[place];
  }
}
