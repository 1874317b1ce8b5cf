import type { RecordBatch } from '../record/record-batch.js';
import { SpanBatch } from '../record/span-batch.js';
import { SpanIdTable, spanIdHalves } from '../record/span-id-table.js';
import { CELL } from '../record/span-page.js';
import type { LogRecord, SpanEnd, SpanStart, TelemetryRecord } from '../record/telemetry-record.js';
import { contentDigest, logContent } from '../sink/log-content.js';

/** What the JSONL brought of a span. */
const STARTED = 1;
const ENDED = 2;
const BOTH = STARTED | ENDED;

/**
 * Which records the JSONL of a trace brought, so that of the same records over OTLP those are found that it lacks: spans'
 * starts and ends by id; log records, which have no id over OTLP, by span, time, event type and body, as often as they
 * occur. About 30 bytes a record.
 */
export class JsonlKeys {
  private readonly spans = new SpanIdTable();
  /** By 64 bits of a SHA-1: how many log records the JSONL brought that did not come over OTLP yet. */
  private readonly logs = new SpanIdTable();

  /** The JSONL brought a record. */
  note(record: TelemetryRecord): void {
    if (record.recordType === 'LogRecord') this.count(logKeyOf(record), 1);
    else this.addSpan(record);
  }

  /** Whether the JSONL lacks a record that came over OTLP; to be asked once for each. */
  lacks(record: TelemetryRecord): boolean {
    return record.recordType === 'LogRecord' ? !this.count(logKeyOf(record), -1) : this.addSpan(record);
  }

  /** Whether the JSONL lacks nothing of what came over OTLP; what is asked of it then counts as asked, and otherwise not. */
  hasAll(batches: readonly RecordBatch[]): boolean {
    const counted: LogKey[] = [];
    const has = (record: TelemetryRecord) => {
      if (record.recordType !== 'LogRecord') return this.hasSpan(spanIdHalves(record.spanId), partOf(record));
      const key = logKeyOf(record);
      if (!this.count(key, -1)) return false;
      counted.push(key);
      return true;
    };
    const hasIt = batches.every((batch) =>
      batch instanceof SpanBatch ? this.hasSpans(batch) : batch.records.every(has),
    );
    if (!hasIt) for (const key of counted) this.count(key, 1);
    return hasIt;
  }

  private hasSpans({ page, from, to }: SpanBatch): boolean {
    for (let span = from; span < to; span++) {
      if (!this.hasSpan([page.cell(span, CELL.idHigh), page.cell(span, CELL.idLow)], BOTH)) return false;
    }
    return true;
  }

  private hasSpan([high, low]: readonly [number, number], parts: number): boolean {
    return ((this.spans.getHalves(high, low) ?? 0) & parts) === parts;
  }

  /** @returns false when it was there. */
  private addSpan(record: SpanStart | SpanEnd): boolean {
    const [high, low] = spanIdHalves(record.spanId);
    const slot = this.spans.slotFor(high, low);
    const value = this.spans.valueAt(slot);
    this.spans.setValueAt(slot, value | partOf(record));
    return (value & partOf(record)) === 0;
  }

  /** @returns false where there would be fewer than none, and nothing is counted. */
  private count([high, low]: LogKey, by: 1 | -1): boolean {
    const count = (this.logs.getHalves(high, low) ?? 0) + by;
    if (count < 0) return false;
    this.logs.setHalves(high, low, count);
    return true;
  }
}

/** 64 bits of a log record's content, in halves. */
type LogKey = readonly [number, number];

function logKeyOf(record: LogRecord): LogKey {
  const digest = contentDigest(logContent(record));
  return [digest.readUInt32LE(0), digest.readUInt32LE(4)];
}

function partOf({ recordType }: SpanStart | SpanEnd): number {
  return recordType === 'SpanStart' ? STARTED : ENDED;
}
