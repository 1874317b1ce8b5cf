import { createHash } from 'node:crypto';
import { SpanIdTable } from '../record/span-id-table.js';
import type { LogRecord, TelemetryRecord } from '../record/telemetry-record.js';
import { KnownSpans } from './known-spans.js';

/**
 * What a trace's record log holds already, so that what is sent twice is written once. A span's start and end are known
 * by its id; a log record by span, time, event type and body, and, among equal ones of one delivery, by its position:
 * the n-th of a repeated batch is the n-th of the first. (Two equal log records in different batches count as one.)
 * A log record is remembered by 64 bits of a SHA-1. Memory: about 30 bytes a span or log record while the log is open.
 */
export class RecordKeys {
  readonly spans = new KnownSpans();
  private readonly logs = new SpanIdTable();

  /** Adds the record; false when it was there. `occurrences` counts equal log records within one delivery. */
  add(record: TelemetryRecord, occurrences: Map<string, number>): boolean {
    return record.recordType === 'LogRecord' ? this.addLog(record, occurrences) : this.spans.add(record);
  }

  /** Memory that they take, in bytes, about. */
  get byteCount(): number {
    return this.spans.byteCount + this.logs.byteCount;
  }

  private addLog(record: LogRecord, occurrences: Map<string, number>): boolean {
    const key = `${record.spanId}|${record.timeUnixNano}|${record.eventType}|${record.body}`;
    const digest = createHash('sha1').update(key).digest();
    const name = digest.toString('latin1', 0, 8);
    const occurrence = (occurrences.get(name) ?? 0) + 1;
    occurrences.set(name, occurrence);
    const high = digest.readUInt32LE(0);
    // The n-th of equal ones is another key than the first.
    const low = (digest.readUInt32LE(4) + occurrence - 1) >>> 0;
    if (this.logs.getHalves(high, low) !== undefined) return false;
    this.logs.setHalves(high, low, 0);
    return true;
  }
}
