import { GrowingBytes } from '../core/bytes.js';
import { type ItemChunk, PLACE } from '../otlp/wire/item-chunk.js';
import { type Digest, eventDigest, logDigest } from '../record/log-digest.js';
import { SpanIdTable, spanIdHalves } from '../record/span-id-table.js';
import type { SpanEnd, SpanStart, TelemetryRecord } from '../record/telemetry-record.js';

/** Equal log records of one delivery so far, by their digests. */
export type Occurrences = Map<string, number>;

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
    return this.addLog(logDigest(record), record.eventId, occurrences);
  }

  /** The same for a log record with a known digest. */
  addLog(digest: Digest, eventId: string | null, occurrences: Occurrences): boolean {
    return eventId === null ? this.addNameless(digest, occurrences) : this.addNamed(digest, eventId);
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

  private addNameless(digest: Digest, occurrences: Occurrences): boolean {
    const [high, low] = digest;
    const key = String.fromCharCode(high >>> 16, high & 0xffff, low >>> 16, low & 0xffff);
    const occurrence = (occurrences.get(key) ?? 0) + 1;
    occurrences.set(key, occurrence);
    const slot = this.logs.slotFor(high, low);
    if (occurrence <= this.logs.valueAt(slot) >>> COUNT_SHIFT) return false;
    this.count(slot, true);
    return true;
  }

  private addNamed(digest: Digest, eventId: string): boolean {
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

/** A span's start, its end. */
export const STARTED = 1;
export const ENDED = 2;
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
    const name = this.names.add(Buffer.from(JSON.stringify(record.spanName)));
    this.table.setValueAt(slot, (name << NAME_SHIFT) | (value & BOTH) | what);
    return true;
  }

  /** Adds both records of a chunk's span. Returns which of them are new: `STARTED`, `ENDED`, both or 0. */
  addBoth(chunk: ItemChunk, span: number): number {
    const slot = this.table.slotFor(chunk.place(span, PLACE.idHigh), chunk.place(span, PLACE.idLow));
    const value = this.table.valueAt(slot);
    if ((value & BOTH) === BOTH) return 0;
    const name = this.names.add(chunk.lines, chunk.place(span, PLACE.nameStart), chunk.place(span, PLACE.nameEnd));
    this.table.setValueAt(slot, (name << NAME_SHIFT) | BOTH);
    return BOTH & ~value;
  }

  /** The name, as JSON, of the span with this id, if it is among the latest. Only valid during the call. */
  nameJson(high: number, low: number): Uint8Array | undefined {
    const value = this.table.getHalves(high, low);
    return value === undefined ? undefined : this.names.get(value >>> NAME_SHIFT);
  }
}

/** Maximum number of stored names a trace, the latest ones; the name for a log record of an older span is inferred. */
const MAX_NAMES = 16_384;
/** Maximum bytes of stored names. */
const MAX_BYTES = 2 * 1024 * 1024;
/** Names are numbered up to here; later ones are not stored. */
const MAX_NUMBER = 2 ** 29;
/** A number in a list. */
const NUMBER_BYTES = 8;
/** Represents a name that is not stored. */
const NONE = 0;

/** Names of spans by number, as JSON: the latest ones, in two generations of which the older is dropped. */
class SpanNames {
  private recent = new Generation(1);
  private older = new Generation(1);

  /** Keeps the name whose JSON stands there. Returns its number. */
  add(from: Uint8Array, start = 0, end = from.length): number {
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

  /** The name's JSON, only valid during the call. */
  get(number: number): Uint8Array | undefined {
    return this.recent.get(number) ?? this.older.get(number);
  }
}

const MIN_STORED_BYTES = 4096;

/** Names one behind the other, and where each ends. */
class Generation {
  private readonly ends: number[] = [];
  private readonly stored = new GrowingBytes(0);

  constructor(private readonly firstNumber: number) {}

  get byteCount(): number {
    return this.stored.length;
  }

  get count(): number {
    return this.ends.length;
  }

  get capacityBytes(): number {
    return this.stored.bytes.length + this.ends.length * NUMBER_BYTES;
  }

  get nextNumber(): number {
    return this.firstNumber + this.ends.length;
  }

  append(from: Uint8Array, start: number, end: number): number {
    const { stored } = this;
    stored.reserve(Math.max(end - start, MIN_STORED_BYTES - stored.length));
    const { bytes } = stored;
    let to = stored.length;
    for (let index = start; index < end; index++) bytes[to++] = from[index] as number;
    stored.length = to;
    this.ends.push(to);
    return this.nextNumber - 1;
  }

  get(number: number): Uint8Array | undefined {
    const place = number - this.firstNumber;
    const end = this.ends[place];
    if (end === undefined) return undefined;
    return this.stored.bytes.subarray(this.ends[place - 1] ?? 0, end);
  }
}
