import { type Digest, logDigest } from '../record/log-digest.js';
import type { RecordBatch } from '../record/record-batch.js';
import { CELL, PageBatch, SpanIdTable, spanIdHalves } from '../record/record-page.js';
import type { SpanEnd, SpanStart, TelemetryRecord } from '../record/telemetry-record.js';

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
    if (record.recordType === 'LogRecord') this.count(logDigest(record), 1);
    else this.addSpan(record);
  }

  /** Whether the JSONL lacks a record that came over OTLP; to be asked once for each. */
  lacks(record: TelemetryRecord): boolean {
    return record.recordType === 'LogRecord' ? !this.count(logDigest(record), -1) : this.addSpan(record);
  }

  /** Whether the JSONL lacks nothing of what came over OTLP; what is asked of it then counts as asked, and otherwise not. */
  hasAll(batches: readonly RecordBatch[]): boolean {
    const counted: Digest[] = [];
    const hasLog = (digest: Digest) => {
      if (!this.count(digest, -1)) return false;
      counted.push(digest);
      return true;
    };
    const has = (record: TelemetryRecord) =>
      record.recordType === 'LogRecord'
        ? hasLog(logDigest(record))
        : this.hasSpan(spanIdHalves(record.spanId), partOf(record));
    const hasIt = batches.every((batch) =>
      batch instanceof PageBatch ? this.hasRows(batch, hasLog) : batch.records.every(has),
    );
    if (!hasIt) for (const key of counted) this.count(key, 1);
    return hasIt;
  }

  private hasRows({ page, from, to }: PageBatch, hasLog: (digest: Digest) => boolean): boolean {
    for (let row = from; row < to; row++) {
      const has = page.isLog(row)
        ? hasLog([page.cell(row, CELL.digestHigh), page.cell(row, CELL.digestLow)])
        : this.hasSpan([page.cell(row, CELL.idHigh), page.cell(row, CELL.idLow)], BOTH);
      if (!has) return false;
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
  private count([high, low]: Digest, by: 1 | -1): boolean {
    const count = (this.logs.getHalves(high, low) ?? 0) + by;
    if (count < 0) return false;
    this.logs.setHalves(high, low, count);
    return true;
  }
}

function partOf({ recordType }: SpanStart | SpanEnd): number {
  return recordType === 'SpanStart' ? STARTED : ENDED;
}
