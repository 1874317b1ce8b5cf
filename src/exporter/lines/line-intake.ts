import { tryParseRecordLine } from '../../record/record-line.js';
import type { Resource } from '../../record/resource.js';
import type { LoggedRecord } from '../../sink/record-log.js';
import type { LoggedLines } from '../logged-lines.js';
import type { MissingParents } from '../mapping/missing-parents.js';
import type { NodeIndex } from '../mapping/node-index.js';
import type { SpanTree } from '../mapping/span-tree.js';
import type { Redactor } from '../redaction/redactor.js';
import { roleIndexOf } from './attribute-plan.js';
import { EventPlans } from './event-plans.js';
import type { KernelLines } from './kernel-lines.js';
import type { KnownLayouts } from './known-layouts.js';
import { type LineBlock, LineBlocks } from './line-blocks.js';
import { CELL, PLAIN_TEXT } from './line-cells.js';
import { LineReader } from './line-reader.js';
import { LineScanner } from './line-scanner.js';
import { LineStart } from './line-start.js';
import type { ScannedLine } from './scanned-line.js';

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
  private readonly kernel: KernelLines | undefined;
  private readonly line: LineReader;
  private readonly blocks = new LineBlocks();
  private scanner: LineScanner | undefined;
  /** The run's number with the kernel, and whether all that came in its lines was taken. */
  private kernelRun = 0;
  private isTaken = false;
  /** Whether a line was passed over that was the first of its node for the kernel, which takes it for known since. */
  private hasMissedNode = false;
  /** Lines that the kernel has read. */
  private knownCount = 0;
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
    this.kernel = layouts.kernel;
    this.line = new LineReader(this.plans);
  }

  /** @returns how many lines were no records, and were passed over. */
  push({ lines, offset, resource }: LoggedLines): number {
    const bytes = Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength);
    // Unless all of the push is taken, what the kernel gave may not have been learned.
    if (!this.isTaken) this.kernelRun = this.kernel?.newRun() ?? 0;
    this.isTaken = false;
    this.use(bytes);
    let damagedCount = 0;
    for (let start = 0; start < bytes.length; ) {
      if (this.areKnown(start)) {
        this.pushKnown(bytes, offset, resource);
        start = this.kernel?.stoppedAt ?? start;
        continue;
      }
      const lineBreak = bytes.indexOf(LINE_BREAK, start);
      const end = lineBreak === -1 ? bytes.length : lineBreak;
      // The scanner relies on the line break to stop at; the last line of damaged bytes may lack it.
      const isScanned = lineBreak !== -1 && this.scanner?.scan(start, end) === true;
      if (isScanned && this.scanner !== undefined) this.pushScanned(this.scanner, bytes, start, end, offset, resource);
      else if (!this.pushGeneral(bytes, start, end, offset, resource)) damagedCount++;
      start = end + 1;
    }
    this.keepOpenStarts();
    this.isTaken = true;
    // Open runs are many, and each would keep the latest megabyte that it was given.
    this.scanner?.use(NO_BYTES);
    this.kernel?.forget();
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

  private use(bytes: Buffer): void {
    const { scanner, kernel } = this;
    if (scanner === undefined) return;
    scanner.use(bytes);
    kernel?.begin(bytes, scanner.view, scanner.traceId, this.kernelRun);
  }

  /** Has the kernel read lines from the one at `start` on. @returns whether it knows any */
  private areKnown(start: number): boolean {
    if (this.kernel === undefined || this.scanner === undefined) return false;
    this.knownCount = this.kernel.read(start);
    return this.knownCount > 0;
  }

  /** Takes the lines that the kernel has read. */
  private pushKnown(bytes: Buffer, offset: number, resource: Resource): void {
    const { kernel, knownCount } = this;
    if (kernel === undefined) return;
    for (let index = 0; index < knownCount; index++) {
      kernel.pointAt(index);
      this.pushScanned(kernel, bytes, kernel.start, kernel.end, offset, resource);
    }
  }

  private pushScanned(
    scanned: ScannedLine,
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
      this.seeNode(scanned);
      return;
    }
    const endSeconds = line.cell(CELL.endSeconds) >>> 0;
    const endNanos = line.cell(CELL.endNanos);
    if (scanned.isJoined) {
      host.advance(line.cell(CELL.startSeconds) >>> 0, line.cell(CELL.startNanos));
      const isNew = tree.end(line);
      missingParents.arrived(line.spanHigh, line.spanLow);
      this.seeNode(scanned);
      host.advance(endSeconds, endNanos);
      if (!isNew) return;
    } else {
      host.advance(endSeconds, endNanos);
      if (!tree.end(line)) {
        this.hasMissedNode ||= !scanned.isNodeKnown;
        return;
      }
      this.seeNode(scanned);
      missingParents.arrived(line.spanHigh, line.spanLow);
    }
    missingParents.seeChild(line, resource);
    host.hold(offset + start, resource, endSeconds, endNanos, this.blocks.keep(bytes, start, end, scanned));
  }

  /** Remembers what the line says of its node, unless that is known. */
  private seeNode({ isNodeKnown }: ScannedLine): void {
    const { nodes } = this.memory;
    if (!isNodeKnown || this.hasMissedNode || nodes.hasForgotten) nodes.seeSpan(this.line);
  }

  /** As `learnNames` does of a record. */
  private learnNames({ nameCells, firstName, nameCount }: ScannedLine): void {
    const { line, plans } = this;
    const { redactor } = this.memory;
    for (let index = firstName; index < firstName + nameCount; index++) {
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
      this.use(bytes);
    }
    this.host.pushRecord({ record, resource, offset: offset + start, endOffset: offset + end + 1 });
    return true;
  }
}

const LINE_BREAK = 0x0a;
const SQL = roleIndexOf('sql');
