import { ByteSource, GrowingBytes, grown } from '../core/bytes.js';
import { ENDED, FIELD, type ItemChunk, STARTED } from '../otlp/wire/item-chunk.js';
import { type Digest, eventDigest, logDigest } from '../record/log-digest.js';
import { SpanIdTable, spanIdHalves } from '../record/span-id-table.js';
import type { SpanEnd, SpanStart, TelemetryRecord } from '../record/telemetry-record.js';

/** How many equal log records one delivery had so far, by their digests. */
export type Occurrences = SpanIdTable;

/** Maximum number of equal log records that are distinguished. */
const MAX_EQUAL = 0xfffe;
/** A content's value in the table: how many the log holds, above how many of them no event id has come for. */
const COUNT_SHIFT = 16;
const NAMELESS = 0xffff;

/**
 * The contents of a trace's record log, so that records sent twice are written once. A span's start and end are identified
 * by its id. Equal log records (span, time, event type and body) with an event id are identified by it;
 * those without one, as in OTLP, by their position: the n-th of a delivery is the n-th in the log. A new event
 * id matches a record that arrived without one, as long as there is such a record left.
 *
 * (Two equal log records without an event id in different deliveries count as one. Which event ids stand for records that
 * came without one is forgotten when the log is closed: the first ones that come again stand for them then.)
 * Contents and event ids are remembered by a hash of 64 bits. Memory: about 30 bytes a span, a log record's content and
 * an event id each, while the log is open.
 */
export class RecordKeys {
  readonly spans = new KnownSpans();
  private readonly logs = new SpanIdTable();
  private readonly eventIds = new SpanIdTable();

  /** Adds a received record; false if it is known. `occurrences` counts equal log records within one delivery. */
  add(record: TelemetryRecord, occurrences: Occurrences): boolean {
    if (record.recordType !== 'LogRecord') return this.spans.add(record);
    const digest = logDigest(record);
    return record.eventId === null ? this.addNameless(...digest, occurrences) : this.addNamed(digest, record.eventId);
  }

  /** Does the same for a log record without an event id. @param high its digest, see `logDigest` */
  addNameless(high: number, low: number, occurrences: Occurrences): boolean {
    const counted = occurrences.slotFor(high, low);
    const occurrence = occurrences.valueAt(counted) + 1;
    occurrences.setValueAt(counted, occurrence);
    const slot = this.logs.slotFor(high, low);
    if (occurrence <= this.logs.valueAt(slot) >>> COUNT_SHIFT) return false;
    this.count(slot, true);
    return true;
  }

  /** Adds a record that is in the log, whatever arrived before. */
  learn(record: TelemetryRecord): void {
    if (record.recordType !== 'LogRecord') {
      this.spans.add(record);
      return;
    }
    const digest = logDigest(record);
    if (record.eventId !== null) this.addEventId(digest, record.eventId);
    this.count(this.logs.slotFor(...digest), record.eventId === null);
  }

  /** Memory that they take, in bytes, about. */
  get byteCount(): number {
    return this.spans.byteCount + this.logs.byteCount + this.eventIds.byteCount;
  }

  /** Does the same for a log record with an event id. */
  addNamed(digest: Digest, eventId: string): boolean {
    if (!this.addEventId(digest, eventId)) return false;
    const slot = this.logs.slotFor(...digest);
    const value = this.logs.valueAt(slot);
    if ((value & NAMELESS) === 0) {
      this.count(slot, false);
      return true;
    }
    this.logs.setValueAt(slot, value - 1);
    return false;
  }

  private addEventId(digest: Digest, eventId: string): boolean {
    const [high, low] = eventDigest(digest, eventId);
    if (this.eventIds.getHalves(high, low) !== undefined) return false;
    this.eventIds.setHalves(high, low, 0);
    return true;
  }

  private count(slot: number, isNameless: boolean): void {
    const value = this.logs.valueAt(slot);
    const count = Math.min((value >>> COUNT_SHIFT) + 1, MAX_EQUAL);
    const nameless = Math.min((value & NAMELESS) + (isNameless ? 1 : 0), MAX_EQUAL);
    this.logs.setValueAt(slot, ((count << COUNT_SHIFT) | nameless) >>> 0);
  }
}

const BOTH = STARTED | ENDED;
/** A span's value in the table: number of its name, then these two bits. */
const NAME_SHIFT = 2;

/** The spans whose starts and ends are in a trace's record log, and the names of the latest ones. */
export class KnownSpans {
  private readonly table = new SpanIdTable();
  private readonly names = new SpanNames();

  /** Memory that they take, in bytes, about. */
  get byteCount(): number {
    return this.table.byteCount + this.names.byteCount;
  }

  /** Adds a span's record and its name; false when it was there. */
  add(record: SpanStart | SpanEnd): boolean {
    const [high, low] = spanIdHalves(record.spanId);
    const slot = this.table.slotFor(high, low);
    const value = this.table.valueAt(slot);
    const what = record.recordType === 'SpanStart' ? STARTED : ENDED;
    if ((value & what) !== 0) return false;
    const source = ByteSource.of(JSON.stringify(record.spanName));
    const name = this.names.add(source, 0, source.bytes.length);
    this.table.setValueAt(slot, (name << NAME_SHIFT) | (value & BOTH) | what);
    return true;
  }

  /** Adds the records of an item of a chunk. Returns which of them are new: `STARTED`, `ENDED`, both or 0. */
  addItem(chunk: ItemChunk, span: number): number {
    const slot = this.table.slotFor(chunk.field(span, FIELD.idHigh), chunk.field(span, FIELD.idLow));
    const value = this.table.valueAt(slot);
    const parts = chunk.field(span, FIELD.parts);
    if ((value & parts) === parts) return 0;
    const name = this.names.add(chunk.out.source, chunk.field(span, FIELD.nameStart), chunk.field(span, FIELD.nameEnd));
    this.table.setValueAt(slot, (name << NAME_SHIFT) | (value & BOTH) | parts);
    return parts & ~value;
  }

  /** Writes the name, as JSON, of the span with this id in place of other bytes. @returns whether it is among the latest */
  readName(high: number, low: number, into: GrowingBytes): boolean {
    const value = this.table.getHalves(high, low);
    return value !== undefined && this.names.read(value >>> NAME_SHIFT, into);
  }
}

/** Maximum number of stored names a trace, the latest ones; the name for a log record of an older span is inferred. */
const MAX_NAMES = 16_384;
/** Maximum bytes of stored names. */
const MAX_BYTES = 2 * 1024 * 1024;
/** Names are numbered up to here; later ones are not stored. */
const MAX_NUMBER = 2 ** 29;
/** Represents a name that is not stored. */
const NONE = 0;

/** Names of spans by number, as JSON: the latest ones, in two generations of which the older is dropped. */
class SpanNames {
  private recent = new Generation(1);
  private older = new Generation(1);

  /** Keeps the name whose JSON stands there. Returns its number. */
  add(from: ByteSource, start: number, end: number): number {
    const length = end - start;
    if (length > MAX_BYTES / 2 || this.recent.nextNumber >= MAX_NUMBER) return NONE;
    if (this.recent.count >= MAX_NAMES / 2 || this.recent.byteCount + length > MAX_BYTES / 2) {
      this.older = this.recent;
      this.recent = new Generation(this.older.nextNumber);
    }
    return this.recent.append(from, start, end);
  }

  /** Memory that they take, in bytes, about. */
  get byteCount(): number {
    return this.recent.capacityBytes + this.older.capacityBytes;
  }

  /** Writes the name's JSON in place of other bytes. @returns whether it is there */
  read(number: number, into: GrowingBytes): boolean {
    return this.recent.read(number, into) || this.older.read(number, into);
  }
}

const MIN_STORED_BYTES = 4096;
const FIRST_NAMES = 16;

/** Names one behind the other, and where each ends. */
class Generation {
  count = 0;
  private ends = new Int32Array(FIRST_NAMES);
  private readonly stored = new GrowingBytes(0);

  constructor(private readonly firstNumber: number) {}

  get byteCount(): number {
    return this.stored.length;
  }

  get capacityBytes(): number {
    return this.stored.bytes.length + this.ends.byteLength;
  }

  get nextNumber(): number {
    return this.firstNumber + this.count;
  }

  append(from: ByteSource, start: number, end: number): number {
    const { stored } = this;
    stored.reserve(Math.max(end - start, MIN_STORED_BYTES - stored.length));
    stored.append(from, start, end);
    if (this.count === this.ends.length) this.ends = grown(this.ends);
    this.ends[this.count++] = stored.length;
    return this.nextNumber - 1;
  }

  read(number: number, into: GrowingBytes): boolean {
    const index = number - this.firstNumber;
    if (index < 0 || index >= this.count) return false;
    into.length = 0;
    into.append(this.stored.source, index === 0 ? 0 : (this.ends[index - 1] as number), this.ends[index] as number);
    return true;
  }
}
