import { formatRecordLine, tryParseRecordLine } from '../../record/record-line.js';
import { type Resource, UNKNOWN_RESOURCE } from '../../record/resource.js';
import { learnNamesAlone, learnStatement, type Redactor } from '../../redaction/redactor.js';
import type { NodeIndex } from '../mapping/node-index.js';
import type { MissingParents, OpenStart, SpanTree } from '../mapping/span-tree.js';
import type { LoggedLines } from '../run-mapper.js';
import { type EventMappings, roleIndexOf, TaughtNames } from './event-mappings.js';
import { type LineBlock, LineBlocks, LineReader } from './line-reader.js';
import { LineScanner, PLAIN_TEXT } from './line-scanner.js';

/** What a run remembers of its records. */
export interface RunMemory {
  readonly redactor: Redactor;
  readonly tree: SpanTree<LineStart>;
  readonly nodes: NodeIndex;
  readonly missingParents: MissingParents;
}

/** Takes what lines bring. */
export interface LineHost {
  /** Time has passed in the run. */
  advance(seconds: number, nanos: number): void;
  /** A span has ended and waits for its events. @param block its line is the last one there */
  hold(anchorOffset: number, resource: Resource, endSeconds: number, endNanos: number, block: LineBlock): void;
  /** A log record has come. @throws SyntaxError when its line turns out to be damaged */
  log(anchorOffset: number, resource: Resource, line: LineReader): void;
}

const NO_BYTES = Buffer.alloc(0);
/** As many spans as begin in half a megabyte. */
const MAX_SPARE_STARTS = 512;

/** Takes a run's records as the bytes of their lines. */
export class LineIntake {
  private readonly line: LineReader;
  private readonly blocks = new LineBlocks();
  private readonly scanner: LineScanner;
  private readonly taughtNames: TaughtNames;
  /** Starts that came with this push. */
  private starts: LineStart[] = [];
  /** To be used again: most spans end in the push that they begin in. */
  private readonly spareStarts: LineStart[] = [];

  constructor(
    private readonly memory: RunMemory,
    private readonly host: LineHost,
    mappings: EventMappings,
  ) {
    this.line = new LineReader(mappings);
    this.scanner = new LineScanner(mappings);
    this.taughtNames = new TaughtNames(mappings.texts);
  }

  /** @returns how many lines were no records, and were passed over. */
  push({ lines, offset, resource }: LoggedLines): number {
    const bytes = Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength);
    let damagedCount = 0;
    for (let start = 0; start < bytes.length; ) {
      const lineBreak = bytes.indexOf(LINE_BREAK, start);
      const end = lineBreak === -1 ? bytes.length : lineBreak;
      // The scanner relies on the line break to stop at; the last line of damaged bytes may lack it.
      const isPoint = lineBreak !== -1 && this.pointAt(bytes, start, end, false);
      const isRecord = isPoint || this.pointAtRewritten(bytes, start, end);
      if (!isRecord || !this.take(offset + start, resource)) damagedCount++;
      start = end + 1;
    }
    this.keepOpenStarts();
    // Open runs are many, and each would keep the latest megabyte that it was given.
    this.scanner.use(NO_BYTES);
    this.line.forget();
    return damagedCount;
  }

  /** The start of a span that is still open. */
  read(start: LineStart): LineReader {
    const { line } = this;
    if (!this.pointAt(start.bytes, start.start, start.end, true))
      throw new Error('a line that was read cannot be read again');
    return line;
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

  private pointAt(bytes: Buffer, start: number, end: number, isChecked: boolean): boolean {
    this.scanner.use(bytes);
    if (!this.scanner.scan(start, end, isChecked)) return false;
    this.line.pointAtScanned(bytes, start, end, this.scanner);
    return true;
  }

  /** Of a line in another layout than the engine's: points at the same record in that one. @returns false for no record */
  private pointAtRewritten(bytes: Buffer, start: number, end: number): boolean {
    const record = tryParseRecordLine(bytes.toString('utf8', start, end));
    if (record === undefined) return false;
    const { line: _line, unknownFields: _unknown, ...known } = record;
    const severityNumber = clamp(record.severityNumber);
    const rewritten =
      known.recordType === 'SpanEnd' && known.status !== null
        ? { ...known, severityNumber, status: { ...known.status, code: clamp(known.status.code) } }
        : { ...known, severityNumber };
    const own = Buffer.from(`${formatRecordLine(rewritten)}\n`);
    return this.pointAt(own, 0, own.length - 1, true);
  }

  /** Takes the record that `line` points at. @returns false where it turns out to be damaged */
  private take(anchorOffset: number, resource: Resource): boolean {
    const { line, host, memory } = this;
    this.learnNames();
    try {
      if (line.isEnd || line.isLog) this.learnStatement();
    } catch (error) {
      // A span's damaged line is passed over when it is sent.
      if (!(error instanceof SyntaxError)) throw error;
    }
    const { endSeconds, endNanos } = line;
    host.advance(endSeconds, endNanos);
    if (line.isLog) return this.takeLog(anchorOffset, resource);
    const { tree, missingParents } = memory;
    if (!line.isEnd) {
      const start = this.spareStarts.pop() ?? new LineStart();
      start.pointAt(line, resource);
      (tree.begin(line, start) ? this.starts : this.spareStarts).push(start);
      missingParents.arrived(line.spanHigh, line.spanLow);
      memory.nodes.seeSpan(line);
      return true;
    }
    if (!tree.end(line)) return true;
    memory.nodes.seeSpan(line);
    missingParents.arrived(line.spanHigh, line.spanLow);
    missingParents.seeChild(line, resource);
    const block = this.blocks.keep(line.bytes, line.start, line.end, this.scanner);
    host.hold(anchorOffset, resource, endSeconds, endNanos, block);
    return true;
  }

  private takeLog(anchorOffset: number, resource: Resource): boolean {
    try {
      this.memory.nodes.seeLog(this.line);
      this.host.log(anchorOffset, resource, this.line);
      return true;
    } catch (error) {
      if (error instanceof SyntaxError) return false;
      throw error;
    }
  }

  /** As `learnNamesAlone` does, without looking for attributes that are not there. */
  private learnNames(): void {
    const { line } = this;
    if (!line.hasAttributeCells) {
      learnNamesAlone(line, this.memory.redactor);
      return;
    }
    const { nameCells, nameCount } = this.scanner;
    for (let index = 0; index < nameCount; index++) this.learnName(nameCells[index] as number);
    if (!line.isLog || line.event.isNaming) return;
    const cell = line.find(UNIQUE_ID);
    if (cell !== 0) this.learnName(cell);
  }

  private learnName(cell: number): void {
    const { line } = this;
    const { redactor } = this.memory;
    const text = line.textAt(cell);
    if (text === undefined) return;
    if (line.mappingAt(cell).isAdapter) redactor.useAdapter(text);
    else if (line.kindAt(cell) !== PLAIN_TEXT) redactor.learn(text);
    else if (this.taughtNames.isNew()) redactor.learnOwn(text);
  }

  private learnStatement(): void {
    const { line } = this;
    if (line.hasAttributeCells && line.find(SQL) === 0) return;
    learnStatement(line, this.memory.redactor);
  }
}

/** The line of a span's start, while the span is open. Most spans end soon, and nobody asks for their start. */
export class LineStart implements OpenStart {
  isOpen = false;
  bytes: Buffer = NO_BYTES;
  start = 0;
  end = 0;
  resource: Resource = UNKNOWN_RESOURCE;

  /** Points at the line that a reader points at, in bytes that are only lent. */
  pointAt({ bytes, start, end }: LineReader, resource: Resource): void {
    this.isOpen = true;
    this.bytes = bytes;
    this.start = start;
    this.end = end;
    this.resource = resource;
  }

  /** Copies the line, and its line break, out of the lent bytes, at the end of the push in which it came. */
  keep(): void {
    this.bytes = Buffer.from(this.bytes.subarray(this.start, this.end + 1));
    this.end -= this.start;
    this.start = 0;
  }

  /** Lets go of the bytes. */
  forget(): void {
    this.bytes = NO_BYTES;
    this.start = this.end = 0;
    this.resource = UNKNOWN_RESOURCE;
  }
}

function clamp(value: number): number {
  return Math.min(Math.max(value, -MAX_INT32), MAX_INT32);
}

const LINE_BREAK = 0x0a;
const MAX_INT32 = 2 ** 31 - 1;
const SQL = roleIndexOf('sql');
const UNIQUE_ID = roleIndexOf('unique_id');
