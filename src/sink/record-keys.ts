import { createHash } from 'node:crypto';
import type { LogRecord, TelemetryRecord } from '../record/telemetry-record.js';

const STARTED = 1;
const ENDED = 2;

/**
 * What a trace's record log holds already, so that what is sent twice is written once. A span's start and end are known
 * by its id; a log record by span, time, event type and body, and, among equal ones of one delivery, by its position:
 * the n-th of a repeated batch is the n-th of the first. (Two equal log records in different batches count as one.)
 * Memory: about 100 bytes a span or log record while the log is open.
 */
export class RecordKeys {
  private readonly spans = new Map<string, number>();
  private readonly logs = new Set<string>();

  /** Adds the record; false when it was there. `occurrences` counts equal log records within one delivery. */
  add(record: TelemetryRecord, occurrences: Map<string, number>): boolean {
    switch (record.recordType) {
      case 'SpanStart':
        return this.addSpan(record.spanId, STARTED);
      case 'SpanEnd':
        return this.addSpan(record.spanId, ENDED);
      case 'LogRecord':
        return this.addLog(record, occurrences);
    }
  }

  get size(): number {
    return this.spans.size + this.logs.size;
  }

  private addSpan(spanId: string, what: number): boolean {
    const known = this.spans.get(spanId) ?? 0;
    if ((known & what) !== 0) return false;
    this.spans.set(spanId, known | what);
    return true;
  }

  private addLog(record: LogRecord, occurrences: Map<string, number>): boolean {
    const body = record.body.length <= 40 ? record.body : createHash('sha1').update(record.body).digest('base64');
    const key = `${record.spanId}|${record.timeUnixNano}|${record.eventType}|${body}`;
    const occurrence = (occurrences.get(key) ?? 0) + 1;
    occurrences.set(key, occurrence);
    const full = occurrence === 1 ? key : `${key}#${occurrence}`;
    if (this.logs.has(full)) return false;
    this.logs.add(full);
    return true;
  }
}
