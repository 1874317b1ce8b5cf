import { SpanIdTable } from '../record/span-id-table.js';
import type { LogRecord, TelemetryRecord } from '../record/telemetry-record.js';
import { KnownSpans } from '../sink/known-spans.js';
import { contentDigest, logContent } from '../sink/log-content.js';

/**
 * Which records the JSONL of a trace brought, so that of the same records over OTLP those are found that it lacks: spans'
 * starts and ends by id; log records, which have no id over OTLP, by span, time, event type and body, as often as they
 * occur. About 30 bytes a record.
 */
export class JsonlKeys {
  private readonly spans = new KnownSpans();
  /** By 64 bits of a SHA-1: how many log records the JSONL brought that did not come over OTLP yet. */
  private readonly logs = new SpanIdTable();

  /** The JSONL brought a record. */
  note(record: TelemetryRecord): void {
    if (record.recordType === 'LogRecord') {
      const slot = this.slotOf(record);
      this.logs.setValueAt(slot, this.logs.valueAt(slot) + 1);
    } else {
      this.spans.add(record);
    }
  }

  /** Whether the JSONL lacks a record that came over OTLP; to be asked once for each. */
  lacks(record: TelemetryRecord): boolean {
    if (record.recordType !== 'LogRecord') return this.spans.add(record);
    const slot = this.slotOf(record);
    const count = this.logs.valueAt(slot);
    if (count === 0) return true;
    this.logs.setValueAt(slot, count - 1);
    return false;
  }

  private slotOf(record: LogRecord): number {
    const digest = contentDigest(logContent(record));
    return this.logs.slotFor(digest.readUInt32LE(0), digest.readUInt32LE(4));
  }
}
