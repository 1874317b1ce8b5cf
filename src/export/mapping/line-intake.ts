import { type CellBatch, FIELD, type LocatedItem } from '../../otlp/wire/item-chunk.js';
import { ItemSink } from '../../otlp/wire/line-items.js';
import { LineKind, LineScanner } from '../../otlp/wire/line-scanner.js';
import { itemReading } from '../../otlp/wire/read-items.js';
import { buffer, MAX_RECORD_BYTES, REGION, SLACK } from '../../record/arena.js';
import type { Resource } from '../../record/attributes.js';
import { Cell, cell, cellsBeside, keepCells, pointAt, waitingBytes } from '../../record/cells.js';
import { type ItemBatch, itemRing } from '../../record/item-ring.js';
import { tryParseRecordLine } from '../../record/record-line.js';
import { ERROR } from '../../record/severity.js';
import { texts } from '../../record/texts.js';
import { Learned, LearnedTexts } from '../../redaction/known-names.js';
import { learnNames, type Redactor } from '../../redaction/redactor.js';
import type { SqlDialect } from '../../redaction/sanitize-sql.js';
import { isCanceledOutcome } from '../../run/node-outcome.js';
import type { LoggedLines } from '../run-mapper.js';
import { attributeText, CellRecord, type MappedRecord, PlainRecord, StartLine } from './mapped-record.js';
import type { NodeIndex } from './node-index.js';
import { type RecordPlan, recordPlans } from './record-plans.js';
import type { SharedMapping } from './shared-mapping.js';
import type { MissingParents, SpanTree } from './span-tree.js';

const LINE_BREAK = 0x0a;
const NO_BYTES = Buffer.alloc(0);
/** Where the lines of a push stand, and how many bytes of them have room. */
const LINES = REGION.bodies;
const MAX_LINES_BYTES = REGION.texts - REGION.bodies - SLACK;
/** Items have room for this many bytes at a time. */
const BATCH_BYTES = 256 * 1024;
/** An item may be longer than its line, by not more than the scanner says, and its cells take room as well. */
const BYTES_A_LINE_BYTE = 3;
const MORE_BYTES = 4096 + SLACK;

/** What a run remembers of its records. */
export interface RunMemory {
  readonly redactor: Redactor;
  readonly tree: SpanTree;
  readonly nodes: NodeIndex;
  readonly missingParents: MissingParents;
}

/** Takes what lines bring. */
export interface LineHost {
  /** Time has passed in the run. @returns whether it has dealt with that; else the line is to be taken again by the next push */
  advance(seconds: number, nanos: number): boolean;
  /** A span has ended and waits for its events. @param item good for the time of the call */
  bufferSpan(anchorOffset: number, resource: Resource, record: MappedRecord, item: LocatedItem): void;
  /** The same of a span that has no cells. @param line good for the time of the call */
  bufferLine(anchorOffset: number, resource: Resource, record: MappedRecord, line: Buffer): void;
  /** A log record has come; `LineIntake.plainLog` is what plain code makes of it. @throws SyntaxError when it turns out to be damaged */
  log(anchorOffset: number, resource: Resource, record: CellRecord | PlainRecord): void;
}

/** A start whose end mostly is the next line: then it says nothing new. */
interface WaitingStart {
  readonly line: Buffer;
  readonly resource: Resource;
  readonly high: number;
  readonly low: number;
}

/** Takes a run's records as the bytes of their lines: through cells where they look as nearly all do. */
export class LineIntake {
  private readonly reading = itemReading();
  private readonly scanner = new LineScanner(this.reading.layouts, new ItemSink());
  private readonly plans = recordPlans();
  private readonly taught = new LearnedTexts();
  private record: CellRecord | undefined;
  private batch: ItemBatch | undefined;
  /** Where the next item goes in the batch. */
  private next = 0;
  /** Which of the pushed bytes stand in the arena. */
  private windowStart = 0;
  private windowEnd = 0;
  private waitingStart: WaitingStart | undefined;
  /** That of the run's statements, mostly. */
  private dialect: SqlDialect | undefined;
  private damagedCount = 0;
  /** Where the line of the log record stands that is being taken. */
  private logLine: Buffer = NO_BYTES;
  private logStart = 0;
  private logEnd = 0;
  /** Whether the line that is being taken is to be taken again. */
  private isStopped = false;
  /** Offset of that line; `undefined` where all that was pushed last was taken. */
  stoppedAt: number | undefined;
  /** Offset of the line that is being taken, or was taken last. */
  lineOffset = 0;

  constructor(
    private readonly memory: RunMemory,
    private readonly host: LineHost,
    private readonly shared: SharedMapping,
  ) {}

  /** @returns how many lines were no records, and were passed over. */
  push(pushed: LoggedLines): number {
    this.reading.layouts.tidy();
    this.damagedCount = 0;
    this.isStopped = false;
    this.stoppedAt = undefined;
    if (pushed.items === undefined || pushed.items.chunk.isOfLines) this.pushLines(pushed);
    else this.pushItems(pushed.items, pushed);
    this.logLine = NO_BYTES;
    if (this.stoppedAt !== undefined) this.lineOffset = this.stoppedAt - 1;
    return this.damagedCount;
  }

  private pushLines({ lines, offset, resource }: LoggedLines): void {
    const bytes = Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength);
    this.windowStart = this.windowEnd = 0;
    this.batch = undefined;
    // Others may look at a record of theirs.
    pointAt(0);
    for (let start = 0; start < bytes.length; ) {
      const lineBreak = bytes.indexOf(LINE_BREAK, start);
      const end = lineBreak === -1 ? bytes.length : lineBreak;
      const isUsual = lineBreak !== -1 && end - start <= MAX_RECORD_BYTES;
      if (end >= this.windowEnd) this.moveWindow(bytes, start);
      texts.tidy();
      this.lineOffset = offset + start;
      if (!(isUsual && this.takeUsual(bytes, start, end, offset + start, resource))) {
        this.count(this.takePlain(bytes.subarray(start, end), offset + start, resource));
      }
      if (this.isStopped) {
        this.stoppedAt = offset + start;
        break;
      }
      start = end + 1;
    }
    this.keepStart();
    if (this.batch !== undefined) itemRing.shorten(this.batch, this.next);
    this.batch = undefined;
  }

  /** Takes items by the cells that they were appended by: as `pushLines` takes their lines. */
  private pushItems(items: CellBatch, { offset, resource }: LoggedLines): void {
    const { chunk, from, to } = items;
    const base = offset - chunk.field(from, FIELD.startLine);
    for (let index = from; index < to; index++) {
      texts.tidy();
      this.lineOffset = base + chunk.field(index, FIELD.startLine);
      // A start whose end is the next line says nothing new.
      this.settle();
      if (this.isStopped) {
        this.stoppedAt = base + chunk.field(index, FIELD.startLine);
        break;
      }
      const anchorOffset = base + chunk.field(index, FIELD.endLine);
      this.lineOffset = anchorOffset;
      if (!(chunk.look(index) && this.takeItem(items, index, anchorOffset))) {
        this.count(this.takePlain(chunk.lastLineOf(index), anchorOffset, resource));
      }
      if (this.isStopped) {
        this.stoppedAt = anchorOffset;
        break;
      }
    }
  }

  /** What plain code makes of the log record that is being taken. @throws SyntaxError when it is damaged */
  plainLog(): PlainRecord {
    return plainOf(this.logLine, this.logStart, this.logEnd);
  }

  /** The start that was read last counts, though its end has not come. Where time is not dealt with by then, it goes on waiting. */
  settle(): void {
    const start = this.waitingStart;
    if (start === undefined) return;
    this.isStopped = false;
    const isRecord = this.takeStart(start.line, start.resource);
    if (this.isStopped) return;
    this.waitingStart = undefined;
    this.count(isRecord);
  }

  /** @returns whether the line looks as nearly all do; else nothing was taken */
  private takeUsual(bytes: Buffer, start: number, end: number, anchorOffset: number, resource: Resource): boolean {
    const to = this.roomFor(BYTES_A_LINE_BYTE * (end - start) + MORE_BYTES);
    if (to === 0) return false;
    const { scanner, reading } = this;
    const shift = LINES - this.windowStart;
    const kind = scanner.scan(shift + start, shift + this.windowEnd, to);
    if (kind === LineKind.start) {
      this.settle();
      if (this.isStopped) return true;
      const line = bytes.subarray(start, end);
      this.waitingStart = { line, resource, high: scanner.idHigh, low: scanner.idLow };
      return true;
    }
    const isLog = kind === LineKind.log;
    if (!isLog && kind !== LineKind.span) return false;
    const { start: itemStart, to: itemEnd } = scanner.sink;
    const { cells } = reading;
    if (!(isLog ? cells.readLog(itemStart, itemEnd) : cells.readSpan(itemStart, itemEnd))) return false;
    const record = this.begin(isLog);
    if (record === undefined) return this.isStopped;
    if (isLog) {
      this.logLine = bytes;
      this.logStart = start;
      this.logEnd = end;
      this.host.log(anchorOffset, resource, record);
    } else if (this.addEnd(record, resource)) {
      keepCells(itemStart);
      // The next one's cells stand behind these, too.
      this.next = (itemStart + Math.max(itemEnd - itemStart, waitingBytes()) + 3) & ~3;
      this.host.bufferSpan(anchorOffset, resource, record, this.locatedItem(itemStart, itemEnd));
    }
    return true;
  }

  /** Takes the item that is looked at. @returns as `takeUsual` */
  private takeItem({ chunk, resource }: CellBatch, index: number, anchorOffset: number): boolean {
    const isLog = chunk.isOfLogs;
    const record = this.begin(isLog);
    if (record === undefined) return this.isStopped;
    if (isLog) {
      this.logLine = chunk.lines;
      this.logStart = chunk.field(index, FIELD.endLine);
      this.logEnd = chunk.field(index, FIELD.lineEnd) - 1;
      this.host.log(anchorOffset, resource, record);
    } else if (this.addEnd(record, resource)) this.host.bufferSpan(anchorOffset, resource, record, chunk.locate(index));
    return true;
  }

  /** Begins with the record that is looked at. @returns `undefined` where plain code has to take it, or it is to be taken again, as `isStopped` says */
  private begin(isLog: boolean): CellRecord | undefined {
    // An error is written by plain code, which knows what errors say.
    if (isLog && cell(Cell.code) >= ERROR.number) return undefined;
    const plan = this.plans.of(cell(Cell.layout));
    const outcome = plan.isQuery ? attributeText(plan, plan.queryOutcome) : undefined;
    if (outcome !== undefined && isCanceledOutcome(outcome)) return undefined;
    this.passStart(isLog ? 0 : cell(Cell.idHigh), isLog ? 0 : cell(Cell.idLow));
    if (this.isStopped) return undefined;
    // What was waiting may have been read over them.
    const record = this.recordOf(plan, isLog);
    this.learn(plan, isLog);
    this.isStopped = !this.host.advance(record.endSeconds, record.endNanos);
    return this.isStopped ? undefined : record;
  }

  /** Takes a record of any look. @returns whether it is one */
  private takePlain(line: Buffer, anchorOffset: number, resource: Resource): boolean {
    const found = tryParseRecordLine(line.toString('utf8'));
    if (found === undefined) return false;
    const record = new PlainRecord(found);
    const isEnd = found.recordType === 'SpanEnd';
    this.passStart(isEnd ? record.spanHigh : 0, isEnd ? record.spanLow : 0);
    if (this.isStopped) return true;
    if (found.recordType === 'SpanStart') return this.takeStart(line, resource, record);
    const { host, memory } = this;
    try {
      learnNames(found, memory.redactor);
      this.isStopped = !host.advance(record.endSeconds, record.endNanos);
      if (this.isStopped) return true;
      if (found.recordType === 'LogRecord') {
        memory.nodes.seeLog(record);
        host.log(anchorOffset, resource, record);
      } else if (this.addEnd(record, resource)) host.bufferLine(anchorOffset, resource, record, line);
      return true;
    } catch (error) {
      if (error instanceof SyntaxError) return false;
      throw error;
    }
  }

  private takeStart(line: Buffer, resource: Resource, read?: PlainRecord): boolean {
    const { host, memory } = this;
    const start = new StartLine(Buffer.from(line), resource);
    try {
      const record = read ?? start.read();
      learnNames(record.record, memory.redactor);
      this.isStopped = !host.advance(record.startSeconds, record.startNanos);
      if (this.isStopped) return true;
      memory.tree.begin(record, start);
      memory.missingParents.arrived(record.spanHigh, record.spanLow);
      memory.nodes.seeSpan(record);
      return true;
    } catch (error) {
      if (error instanceof SyntaxError) return false;
      throw error;
    }
  }

  /** @returns whether the span had not ended before */
  private addEnd(record: MappedRecord, resource: Resource): boolean {
    const { tree, nodes, missingParents } = this.memory;
    if (!tree.end(record)) return false;
    nodes.seeSpan(record);
    missingParents.arrived(record.spanHigh, record.spanLow);
    missingParents.seeChild(record, resource);
    return true;
  }

  /** The start that waits says nothing new where the line behind it is the end of its span; else it counts. */
  private passStart(high: number, low: number): void {
    const start = this.waitingStart;
    if (start === undefined) return;
    if (start.high === high && start.low === low) this.waitingStart = undefined;
    else this.settle();
  }

  /** Copies the line of a start that waits out of the bytes that are only borrowed. */
  private keepStart(): void {
    const start = this.waitingStart;
    if (start !== undefined) this.waitingStart = { ...start, line: Buffer.from(start.line) };
  }

  /** As `learnNames` does, without looking for attributes that are not there, and once for equal texts. */
  private learn(plan: RecordPlan, isLog: boolean): void {
    const { redactor } = this.memory;
    for (const index of plan.isNaming || isLog ? plan.names : NONE) {
      const known = attributeText(plan, index);
      if (known === undefined) continue;
      if (plan.attributes[index]?.isAdapter === true) redactor.useAdapter(known.text);
      else if (this.taught.isNew(known, Learned.words)) redactor.learnWords(this.shared.wordsOf(known));
    }
    const sql = redactor.level === 'literals' ? attributeText(plan, plan.sql) : undefined;
    if (sql === undefined) return;
    const dialect = redactor.dialectOf(attributeText(plan, plan.adapterType)?.text);
    // Read by another database's rules it may have other identifiers.
    this.dialect ??= dialect;
    if (dialect !== this.dialect || this.taught.isNew(sql, Learned.identifiers))
      redactor.learnIdentifiers(this.shared.statements.of(sql, dialect).identifiers);
  }

  private recordOf(plan: RecordPlan, isLog: boolean): CellRecord {
    this.record ??= new CellRecord(plan, isLog);
    this.record.use(plan, isLog);
    return this.record;
  }

  private locatedItem(start: number, end: number): LocatedItem {
    if (this.batch === undefined) throw new Error('an item stands in no batch');
    return { batch: this.batch, start, end, cells: cellsBeside(start), layouts: this.reading.layouts.forgottenCount };
  }

  private moveWindow(bytes: Buffer, start: number): void {
    this.windowStart = start;
    this.windowEnd = Math.min(bytes.length, start + MAX_LINES_BYTES);
    bytes.copy(buffer, LINES, start, this.windowEnd);
  }

  /** Reserves room for an item; 0 where there is none. */
  private roomFor(byteCount: number): number {
    if (this.batch !== undefined && this.next + byteCount <= this.batch.end) return this.next;
    if (this.batch !== undefined) itemRing.shorten(this.batch, this.next);
    this.batch = itemRing.take(Math.max(BATCH_BYTES, byteCount));
    this.next = this.batch?.start ?? 0;
    return this.next;
  }

  private count(isRecord: boolean): void {
    if (!isRecord) this.damagedCount += 1;
  }
}

const NONE: readonly number[] = [];

function plainOf(bytes: Buffer, start: number, end: number): PlainRecord {
  const record = tryParseRecordLine(bytes.toString('utf8', start, end));
  if (record === undefined) throw new SyntaxError('a line that has cells is no record');
  return new PlainRecord(record);
}
