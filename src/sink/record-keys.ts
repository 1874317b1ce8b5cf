import { type Digest, eventDigest, logDigest } from '../record/log-digest.js';
import { SpanIdTable } from '../record/span-id-table.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { KnownSpans } from './known-spans.js';

/** Equal log records of one delivery so far, by their digests. */
export type Occurrences = Map<string, number>;

/** Of more equal log records than this, repeats are no longer told. */
const MAX_EQUAL = 0xfffe;
/** A content's value in the table: how many the log holds, above how many of them no event id has come for. */
const COUNT_SHIFT = 16;
const NAMELESS = 0xffff;

/**
 * What a trace's record log holds already, so that what is sent twice is written once. A span's start and end are known
 * by its id. Of log records that are equal (span, time, event type and body), those with an event id are told by that;
 * those without one, as OTLP has them, by their position: the n-th of a delivery is the n-th that the log holds. An event
 * id that is new stands for a record that came without one, as long as there is such a record left.
 *
 * (Two equal log records without an event id in different deliveries count as one. Which event ids stand for records that
 * came without one is forgotten when the log is closed: the first ones that come again stand for them then.)
 * Contents and event ids are remembered by 64 bits of a SHA-1. Memory: about 30 bytes a span, a log record's content and
 * an event id each, while the log is open.
 */
export class RecordKeys {
  readonly spans = new KnownSpans();
  private readonly logs = new SpanIdTable();
  private readonly eventIds = new SpanIdTable();

  /** Adds a record that came; false when it was there. `occurrences` counts equal log records within one delivery. */
  add(record: TelemetryRecord, occurrences: Occurrences): boolean {
    if (record.recordType !== 'LogRecord') return this.spans.add(record);
    return this.addLog(logDigest(record), record.eventId, occurrences);
  }

  /** The same for a log record of which its digest is known. */
  addLog(digest: Digest, eventId: string | null, occurrences: Occurrences): boolean {
    return eventId === null ? this.addNameless(digest, occurrences) : this.addNamed(digest, eventId);
  }

  /** Adds a record that the log holds, so that it counts whatever came before. */
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
