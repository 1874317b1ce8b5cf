import type { HrTime } from '@opentelemetry/api';
import { Attributes } from '../../record/attributes.js';
import type { JsonValue } from '../../record/json.js';
import { ownText } from '../../record/own-text.js';
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
import type { LineBlock } from './held-lines.js';
import {
  ATTRIBUTE_CELLS,
  CELL,
  isEscaped,
  LINK_CELLS,
  type LineScanner,
  LOG_RECORD,
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
