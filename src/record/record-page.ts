import { randomInt } from 'node:crypto';
import { endianness } from 'node:os';
import { grown } from '../core/bytes.js';
import { ofAccount, ofSender, type Resource, type Sender } from './attributes.js';
import type { RecordBatch } from './record-batch.js';
import { formatRecordLine, LineBuffer, parseRecordLine } from './record-line.js';
import type { LogRecord, SpanId, TelemetryRecord, TraceId, UnixNano } from './telemetry-record.js';

const MIN_CAPACITY = 64;
/** Slots are free while their value is this. */
const FREE = 0;

/**
 * Numbers by span id, in 12 bytes a slot (at most two slots an entry) where a Map of strings takes about 100. Open
 * addressing over the id's two halves; the hash is seeded, so that a sender cannot choose ids that all meet in one place.
 */
export class SpanIdTable {
  private high = new Int32Array(MIN_CAPACITY);
  private low = new Int32Array(MIN_CAPACITY);
  /** Value plus one; 0 marks a free slot. */
  private values = new Uint32Array(MIN_CAPACITY);
  private count = 0;

  /** @param seed any 32 bits; random when left out. What the table holds does not depend on it. */
  constructor(private readonly seed: number = randomInt(2 ** 32)) {}

  get size(): number {
    return this.count;
  }

  /** Memory that it takes, in bytes. */
  get byteCount(): number {
    return this.high.byteLength + this.low.byteLength + this.values.byteLength;
  }

  /** The number that was set; `undefined` for an unknown id. */
  get(id: SpanId): number | undefined {
    return this.getHalves(halfOf(id, 0), halfOf(id, 8));
  }

  /** @param value an integer from 0 to 2^32 - 2 */
  set(id: SpanId, value: number): void {
    this.setHalves(halfOf(id, 0), halfOf(id, 8), value);
  }

  /** As `get`, for any 64 bits given as two 32-bit integers, with a sign or without, the first the more significant one. */
  getHalves(high: number, low: number): number | undefined {
    const value = this.values[this.slotOf(high, low)] ?? FREE;
    return value === FREE ? undefined : value - 1;
  }

  /** The slot of an id, made with value 0 if it is new. Good until the next id is added. */
  slotFor(high: number, low: number): number {
    const slot = this.slotOf(high, low);
    return this.values[slot] === FREE ? this.add(high, low, slot) : slot;
  }

  valueAt(slot: number): number {
    return (this.values[slot] as number) - 1;
  }

  /** @param value as for `set` */
  setValueAt(slot: number, value: number): void {
    this.values[slot] = value + 1;
  }

  /** As `set`, for any 64 bits given as two 32-bit integers. */
  setHalves(high: number, low: number, value: number): void {
    this.setValueAt(this.slotFor(high, low), value);
  }

  /** @param free the slot where the id would be if the table need not grow */
  private add(high: number, low: number, free: number): number {
    let slot = free;
    if (2 * (this.count + 1) > this.values.length) {
      this.grow();
      slot = this.slotOf(high, low);
    }
    this.count += 1;
    this.high[slot] = high;
    this.low[slot] = low;
    this.setValueAt(slot, 0);
    return slot;
  }

  /** Where the id is, or the free slot where it would be. */
  private slotOf(high: number, low: number): number {
    const mask = this.values.length - 1;
    let slot = mix(high, low, this.seed) & mask;
    const ownHigh = high | 0;
    const ownLow = low | 0;
    while (this.values[slot] !== FREE && (this.high[slot] !== ownHigh || this.low[slot] !== ownLow)) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  private grow(): void {
    const { high, low, values } = this;
    this.high = new Int32Array(2 * high.length);
    this.low = new Int32Array(2 * low.length);
    this.values = new Uint32Array(2 * values.length);
    // Tables are made and grown by the thousand: an iterator's pair for each slot would be most of what it costs.
    for (let from = 0; from < values.length; from++) {
      const value = values[from] ?? FREE;
      if (value === FREE) continue;
      const slot = this.slotOf(high[from] ?? 0, low[from] ?? 0);
      this.high[slot] = high[from] ?? 0;
      this.low[slot] = low[from] ?? 0;
      this.values[slot] = value;
    }
  }
}

/** An id's 64 bits as two unsigned 32-bit integers, the more significant one first. */
export function spanIdHalves(id: SpanId): readonly [number, number] {
  return [halfOf(id, 0), halfOf(id, 8)];
}

/** Eight hexadecimal digits of an id, from `at` on. `parseInt` of a slice takes four times as long. */
function halfOf(id: SpanId, at: number): number {
  let half = 0;
  for (let index = at; index < at + 8; index++) {
    const code = id.charCodeAt(index);
    half = (half << 4) | (code <= NINE ? code - ZERO : code - TEN);
  }
  return half >>> 0;
}

const ZERO = 0x30;
const NINE = 0x39;
/** `a` stands for ten. */
const TEN = 0x61 - 10;

/** MurmurHash3's mixing of two blocks, with its finalizer. */
function mix(high: number, low: number, seed: number): number {
  let hash = mixBlock(mixBlock(seed, high), low);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function mixBlock(hash: number, block: number): number {
  const scrambled = Math.imul(block, 0xcc9e2d51);
  const mixed = hash ^ Math.imul((scrambled << 15) | (scrambled >>> 17), 0x1b873593);
  return (Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0xe6546b64) | 0;
}

/** Where the lower half of a 64-bit number stands, in this machine's order. */
const LOW = endianness() === 'LE' ? 0 : 1;

/** Numbers that are kept of each row, by their place among its cells. */
export const CELL = {
  /** In bytes of `lines`: where a span's SpanStart line begins, its SpanEnd line begins, and that one ends. A log record has one line, between the last two. */
  startLine: 0,
  endLine: 1,
  lineEnd: 2,
  /** The halves of the span's id, as unsigned 32-bit numbers; of a log record the id of its span, two zeros for none. */
  idHigh: 3,
  idLow: 4,
  /** A parent of two zeros is none. */
  parentHigh: 5,
  parentLow: 6,
  /** Index in `eventTypes`. */
  eventType: 7,
  /** Unix nanoseconds, in halves; each pair is read as one number, too, so it begins at an even place. A log record has its time in both pairs. */
  startTimeLow: 8 + LOW,
  startTimeHigh: 9 - LOW,
  endTimeLow: 10 + LOW,
  endTimeHigh: 11 - LOW,
  /** The span's name as a JSON string in `lines`; `null` where a log record came without it. */
  nameStart: 12,
  nameEnd: 13,
  /** The one span of the same trace that it links to; two zeros for none. */
  linkHigh: 14,
  linkLow: 15,
  /** 1 where the other cells do not tell all that a summary needs: ask `recordsOf`. */
  isSpecial: 16,
  /** `unique_id`, `node_outcome` or `query_outcome`, and `phase` or `last_phase` at the span's end, as JSON strings in `lines`; two zeros for none. */
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
  /** 1 for a log record, 0 for a span. */
  isLog: 26,
  /** Of a log record: OTel's SeverityNumber, and what tells it from others (see `logDigest`). */
  severityNumber: 27,
  digestHigh: 28,
  digestLow: 29,
} as const;

const START_TIME = 8;
const END_TIME = 10;
const BACKSLASH = 0x5c;
const LINE_BREAK = 0x0a;
/** Cells that hold places in `lines`. Two zeros of a pair say that there is none. */
const PLACES = [CELL.nameStart, CELL.uniqueIdStart, CELL.outcomeStart, CELL.phaseStart, CELL.detailStart];

/** Cells of one row; an even number, see `startTimeLow`. */
export const CELLS_PER_ROW = 30;

/**
 * Spans and log records as lines of JSONL, and beside them, in numbers, what is asked of every one: so that none costs
 * objects or strings on its way to the disk. A span is a row of two lines, SpanStart and SpanEnd, one behind the other; a log
 * record is a row of one. The lines of consecutive rows touch. Lent by the decoder that fills it: not to be read after it was given back.
 */
export class RecordPage {
  /** The lines, in UTF-8 with line breaks, up to its `length`. */
  readonly out: LineBuffer;
  /** `CELLS_PER_ROW` numbers for each row. */
  cells: Uint32Array;
  private pairs: BigUint64Array;
  rowCount = 0;
  /** Full names of the event types that occur. */
  readonly eventTypes: string[] = [];

  /** Room that it begins with; it grows as needed. */
  constructor(lineBytes: number, rowCount = 64) {
    this.out = new LineBuffer(lineBytes);
    this.cells = new Uint32Array(rowCount * CELLS_PER_ROW);
    this.pairs = new BigUint64Array(this.cells.buffer);
  }

  get lines(): Buffer {
    return this.out.bytes;
  }

  /** Begins one more row, all zeros; it counts when `rowCount` is raised. Returns the place of its first cell. */
  reserve(): number {
    const at = this.rowCount * CELLS_PER_ROW;
    if (at + CELLS_PER_ROW > this.cells.length) {
      this.cells = grown(this.cells);
      this.pairs = new BigUint64Array(this.cells.buffer);
    }
    this.cells.fill(0, at, at + CELLS_PER_ROW);
    return at;
  }

  /** Forgets all rows. */
  clear(): void {
    this.out.length = 0;
    this.rowCount = 0;
    this.eventTypes.length = 0;
  }

  /** Index of an event type, which is added where it is new. */
  indexOfType(eventType: string): number {
    const known = this.eventTypes.indexOf(eventType);
    return known >= 0 ? known : this.eventTypes.push(eventType) - 1;
  }

  cell(row: number, which: number): number {
    return this.cells[row * CELLS_PER_ROW + which] as number;
  }

  isLog(row: number): boolean {
    return this.cell(row, CELL.isLog) === 1;
  }

  /** How many records the row has: a span's start and end, or the one log record. */
  recordCount(row: number): number {
    return this.isLog(row) ? 1 : 2;
  }

  spanId(row: number): SpanId {
    return hexOf(this.cell(row, CELL.idHigh), this.cell(row, CELL.idLow));
  }

  parentSpanId(row: number): SpanId {
    return hexOf(this.cell(row, CELL.parentHigh), this.cell(row, CELL.parentLow));
  }

  startTimeUnixNano(row: number): UnixNano {
    return this.pairs[(row * CELLS_PER_ROW + START_TIME) / 2] as bigint;
  }

  endTimeUnixNano(row: number): UnixNano {
    return this.pairs[(row * CELLS_PER_ROW + END_TIME) / 2] as bigint;
  }

  /** Whether it is a log record that names a span by its id alone. */
  lacksName(row: number): boolean {
    if (this.cell(row, CELL.idHigh) === 0 && this.cell(row, CELL.idLow) === 0) return false;
    return this.isLog(row) && this.lines[this.cell(row, CELL.nameStart)] === NULL[0];
  }

  /** The text whose JSON stands between two cells' values, in memory of its own; `undefined` where they are zero. */
  text(row: number, startCell: number, endCell: number): string | undefined {
    const start = this.cell(row, startCell);
    const end = this.cell(row, endCell);
    if (end === 0) return undefined;
    for (let at = start; at < end; at++) {
      if (this.lines[at] === BACKSLASH) return JSON.parse(this.lines.toString('utf8', start, end)) as string;
    }
    return this.lines.toString('utf8', start + 1, end - 1);
  }

  /** The row's lines, with their line breaks. */
  linesOf(row: number): Buffer {
    return this.lines.subarray(this.cell(row, CELL.startLine), this.cell(row, CELL.lineEnd));
  }

  /** The row's records in the order of their lines, read from these. */
  recordsOf(row: number): readonly TelemetryRecord[] {
    const last = this.record(row, CELL.endLine, CELL.lineEnd);
    if (!this.isLog(row)) return [this.record(row, CELL.startLine, CELL.endLine), last];
    if (!this.lacksName(row)) return [last];
    // With its line it would count as it stands.
    const { line: _line, ...nameless } = last;
    return [nameless];
  }

  /** Adds a log record that came as one. @param digest see `logDigest` */
  addLog(record: LogRecord, [digestHigh, digestLow]: readonly [number, number]): void {
    const { out } = this;
    const at = this.reserve();
    const { cells } = this;
    cells[at + CELL.isLog] = 1;
    // What its attributes say, its record tells.
    cells[at + CELL.isSpecial] = 1;
    cells[at + CELL.startLine] = cells[at + CELL.endLine] = out.length;
    if (record.spanId !== null) {
      const [high, low] = spanIdHalves(record.spanId);
      cells[at + CELL.idHigh] = high;
      cells[at + CELL.idLow] = low;
      cells[at + CELL.nameStart] = out.length + NAME_PLACE;
      const name = record.spanName === null ? 'null' : JSON.stringify(record.spanName);
      cells[at + CELL.nameEnd] = out.length + NAME_PLACE + Buffer.byteLength(name);
    }
    this.pairs[(at + START_TIME) / 2] = this.pairs[(at + END_TIME) / 2] = record.timeUnixNano;
    cells[at + CELL.eventType] = this.indexOfType(record.eventType);
    cells[at + CELL.severityNumber] = record.severityNumber;
    cells[at + CELL.digestHigh] = digestHigh;
    cells[at + CELL.digestLow] = digestLow;
    const { line: _line, ...bare } = record;
    out.utf8(formatRecordLine(bare));
    out.reserve(1);
    out.bytes[out.length++] = LINE_BREAK;
    cells[at + CELL.lineEnd] = out.length;
    this.rowCount += 1;
  }

  /** Adds a log record of another page, with the name of its span as JSON; as it is where that is left out. */
  copyLog(from: RecordPage, row: number, nameJson?: Uint8Array): void {
    const { out } = this;
    const at = this.reserve();
    const { cells } = this;
    const source = row * CELLS_PER_ROW;
    for (let cell = 0; cell < CELLS_PER_ROW; cell++) cells[at + cell] = from.cells[source + cell] as number;
    const lineStart = from.cell(row, CELL.startLine);
    const nameStart = from.cell(row, CELL.nameStart);
    const nameEnd = from.cell(row, CELL.nameEnd);
    const lineEnd = from.cell(row, CELL.lineEnd);
    const shift = out.length - lineStart;
    const shiftBehindName = nameJson === undefined ? shift : shift + nameJson.length - (nameEnd - nameStart);
    cells[at + CELL.eventType] = this.indexOfType(from.eventTypes[from.cell(row, CELL.eventType)] ?? '');
    cells[at + CELL.startLine] = cells[at + CELL.endLine] = out.length;
    cells[at + CELL.lineEnd] = lineEnd + shiftBehindName;
    for (const start of PLACES) {
      if (from.cell(row, start + 1) === 0) continue;
      const isName = start === CELL.nameStart;
      cells[at + start] = from.cell(row, start) + (isName ? shift : shiftBehindName);
      cells[at + start + 1] = from.cell(row, start + 1) + shiftBehindName;
    }
    out.reserve(lineEnd - lineStart + (nameJson?.length ?? 0));
    if (nameJson === undefined) out.copyFrom(from.lines, lineStart, lineEnd);
    else {
      out.copyFrom(from.lines, lineStart, nameStart);
      out.copyLong(nameJson);
      out.copyFrom(from.lines, nameEnd, lineEnd);
    }
    this.rowCount += 1;
  }

  private record(row: number, from: number, to: number): TelemetryRecord {
    return parseRecordLine(this.lines.toString('utf8', this.cell(row, from), this.cell(row, to) - 1));
  }
}

/** The name of a log record that has none, as it stands in its line. */
export const NULL = Buffer.from('null');
/** Where the name of its span stands in the line of a log record that names one by its id. */
const NAME_PLACE = Buffer.byteLength(
  `{"record_type":"LogRecord","trace_id":"${'0'.repeat(32)}","span_id":"${'0'.repeat(16)}","span_name":`,
);

function hexOf(high: number, low: number): SpanId {
  return (high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0')) as SpanId;
}

/** Consecutive rows of a page that are of one trace and one resource. Their records are made when somebody asks for them. */
export class PageBatch implements RecordBatch {
  private made: readonly TelemetryRecord[] | undefined;

  /**
   * @param from index of the first row
   * @param to index after the last row; may grow while the page is being filled
   */
  constructor(
    readonly traceId: TraceId,
    readonly resource: Resource,
    readonly page: RecordPage,
    readonly from: number,
    public to: number,
  ) {}

  get recordCount(): number {
    let count = 0;
    for (let row = this.from; row < this.to; row++) count += this.page.recordCount(row);
    return count;
  }

  get records(): readonly TelemetryRecord[] {
    if (this.made === undefined) {
      const records: TelemetryRecord[] = [];
      for (let row = this.from; row < this.to; row++) records.push(...this.page.recordsOf(row));
      this.made = records;
    }
    return this.made;
  }
}

/** How many records a batch has, without making them. */
export function recordCountOf(batch: RecordBatch): number {
  return batch instanceof PageBatch ? batch.recordCount : batch.records.length;
}

/** The batch with its resource as one of an account (`null`: the first); itself where it is. */
export function batchOfAccount(batch: RecordBatch, accountId: number | null): RecordBatch {
  return withResource(batch, ofAccount(batch.resource, accountId));
}

/** The batch with its resource as one of a sender; itself where it is. */
export function batchOfSender(batch: RecordBatch, sender: Sender): RecordBatch {
  return withResource(batch, ofSender(batch.resource, sender));
}

function withResource(batch: RecordBatch, resource: Resource): RecordBatch {
  if (resource === batch.resource) return batch;
  if (!(batch instanceof PageBatch)) return { ...batch, resource };
  return new PageBatch(batch.traceId, resource, batch.page, batch.from, batch.to);
}

/** Pages that are kept for the next requests; as many as there are usually requests at once. */
const MAX_PAGES = 4;
/** A page whose lines grew beyond this is not kept, so that one large request does not occupy memory for good. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;

/**
 * Pages that go around. A megabyte that is allocated anew for each request costs more than filling it: the system hands
 * it out zeroed page by page, and the collector counts it as garbage.
 */
export class PagePool {
  private readonly free: RecordPage[] = [];

  /** @param lineBytes how long its lines will be, about */
  take(lineBytes: number): RecordPage {
    const page = this.free.pop() ?? new RecordPage(lineBytes);
    page.clear();
    return page;
  }

  giveBack(page: RecordPage): void {
    if (this.free.length < MAX_PAGES && page.lines.length <= MAX_KEPT_BYTES) this.free.push(page);
  }
}
