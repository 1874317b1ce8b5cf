import { tryParseRecordLine } from '../../record/record-line.js';
import type { Resource } from '../../record/resource.js';
import type { LoggedRecord } from '../../sink/record-log.js';
import type { MissingParents } from '../mapping/missing-parents.js';
import type { NodeIndex } from '../mapping/node-index.js';
import type { SpanTree } from '../mapping/span-tree.js';
import type { Redactor } from '../redaction/redactor.js';
import type { LoggedLines } from '../run-mapper.js';
import { roleIndexOf } from './attribute-plan.js';
import { EventPlans } from './event-plans.js';
import type { KnownLayouts } from './known-layouts.js';
import { type LineBlock, LineBlocks } from './line-blocks.js';
import { CELL, PLAIN_TEXT } from './line-cells.js';
import { LineReader } from './line-reader.js';
import { LineScanner } from './line-scanner.js';
import { LineStart } from './line-start.js';

/** What a run remembers of its records. */
export interface RunMemory {
  readonly redactor: Redactor;
  readonly tree: SpanTree;
  readonly nodes: NodeIndex;
  readonly missingParents: MissingParents;
}

/** Takes what lines bring. */
export interface LineHost {
  /** Time has passed in the run. */
  advance(seconds: number, nanos: number): void;
  /** A span has ended and waits for its events. @param block its line is the last one there */
  hold(anchorOffset: number, resource: Resource, endSeconds: number, endNanos: number, block: LineBlock): void;
  /** A line that the fast path leaves alone: all log records, and any span in an unusual layout. */
  pushRecord(logged: LoggedRecord): void;
}

const NO_BYTES = Buffer.alloc(0);
/** As many spans as begin in half a megabyte. */
const MAX_SPARE_STARTS = 512;

/** Takes a run's records as the bytes of their lines: what `OtelRunMapper.push` does with records, without making any. */
export class LineIntake {
  readonly plans: EventPlans;
  private readonly line: LineReader;
  private readonly blocks = new LineBlocks();
  private scanner: LineScanner | undefined;
  /** Starts that came with this push. */
  private starts: LineStart[] = [];
  /** To be used again: most spans end in the push that they begin in. */
  private readonly spareStarts: LineStart[] = [];

  constructor(
    private readonly memory: RunMemory,
    private readonly host: LineHost,
    layouts: KnownLayouts,
  ) {
    this.plans = new EventPlans(layouts);
    this.line = new LineReader(this.plans);
  }

  /** @returns how many lines were no records, and were passed over. */
  push({ lines, offset, resource }: LoggedLines): number {
    const bytes = Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength);
    this.scanner?.use(bytes);
    let damagedCount = 0;
    for (let start = 0; start < bytes.length; ) {
      const lineBreak = bytes.indexOf(LINE_BREAK, start);
      const end = lineBreak === -1 ? bytes.length : lineBreak;
      // The scanner relies on the line break to stop at; the last line of damaged bytes may lack it.
      const isScanned = lineBreak !== -1 && this.scanner?.scan(start, end) === true;
      if (isScanned && this.scanner !== undefined) this.pushScanned(this.scanner, bytes, start, end, offset, resource);
      else if (!this.pushGeneral(bytes, start, end, offset, resource)) damagedCount++;
      start = end + 1;
    }
    this.keepOpenStarts();
    // Open runs are many, and each would keep the latest megabyte that it was given.
    this.scanner?.use(NO_BYTES);
    this.line.forget();
    return damagedCount;
  }

  /** A line in this block that the host was given to hold is not wanted any more. */
  letGo(block: LineBlock): void {
    this.blocks.letGo(block);
  }

  /** Those of spans that ended meanwhile are nobody's any more. */
  private keepOpenStarts(): void {
    for (const start of this.starts) {
      if (start.isOpen) start.keep();
      else if (this.spareStarts.length < MAX_SPARE_STARTS) this.spareStarts.push(start);
    }
    for (const start of this.spareStarts) start.forget();
    this.starts = [];
  }

  private pushScanned(
    scanned: LineScanner,
    bytes: Buffer,
    start: number,
    end: number,
    offset: number,
    resource: Resource,
  ): void {
    const { line, host, memory } = this;
    line.pointAtScanned(bytes, start, end, scanned);
    this.learnNames(scanned);
    this.learnStatement();
    const { tree, missingParents } = memory;
    if (!line.isEnd) {
      host.advance(line.cell(CELL.startSeconds) >>> 0, line.cell(CELL.startNanos));
      const lineStart = this.spareStarts.pop() ?? new LineStart();
      lineStart.pointAt(bytes, start, end, resource);
      (tree.begin(line, lineStart) ? this.starts : this.spareStarts).push(lineStart);
      missingParents.arrived(line.spanHigh, line.spanLow);
      memory.nodes.seeSpan(line);
      return;
    }
    const endSeconds = line.cell(CELL.endSeconds) >>> 0;
    const endNanos = line.cell(CELL.endNanos);
    host.advance(endSeconds, endNanos);
    if (!tree.end(line)) return;
    memory.nodes.seeSpan(line);
    missingParents.arrived(line.spanHigh, line.spanLow);
    missingParents.seeChild(line, resource);
    host.hold(offset + start, resource, endSeconds, endNanos, this.blocks.keep(bytes, start, end, scanned));
  }

  /** As `learnNames` does of a record. */
  private learnNames({ nameCells, nameCount }: LineScanner): void {
    const { line, plans } = this;
    const { redactor } = this.memory;
    for (let index = 0; index < nameCount; index++) {
      const cell = nameCells[index] as number;
      if (line.planAt(cell).isAdapter) {
        const text = line.textAt(cell);
        if (text !== undefined) redactor.useAdapter(text);
      } else if (line.kindAt(cell) === PLAIN_TEXT) {
        const text = plans.texts.textOf(line.bytes, line.view, line.valueStart(cell), line.valueEnd(cell));
        if (plans.taughtNames.isNew()) redactor.learnOwn(text);
      } else {
        const text = line.textAt(cell);
        if (text !== undefined) redactor.learn(text);
      }
    }
  }

  /** As `learnNames` does of the end of a span. */
  private learnStatement(): void {
    const { line } = this;
    if (!line.isEnd || line.find(SQL) === 0) return;
    try {
      const statement = line.text('sql');
      if (statement !== undefined) this.memory.redactor.learnStatement(statement, line.text('adapter_type'));
    } catch (error) {
      // A damaged line is passed over when its span is sent.
      if (!(error instanceof SyntaxError)) throw error;
    }
  }

  private pushGeneral(bytes: Buffer, start: number, end: number, offset: number, resource: Resource): boolean {
    const record = tryParseRecordLine(bytes.toString('utf8', start, end));
    if (record === undefined) return false;
    if (this.scanner === undefined) {
      this.scanner = new LineScanner(record.traceId, this.plans);
      this.scanner.use(bytes);
    }
    this.host.pushRecord({ record, resource, offset: offset + start, endOffset: offset + end + 1 });
    return true;
  }
}

const LINE_BREAK = 0x0a;
const SQL = roleIndexOf('sql');
