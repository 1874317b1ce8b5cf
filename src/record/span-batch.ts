import type { TraceId } from './ids.js';
import type { RecordBatch } from './record-batch.js';
import type { Resource } from './resource.js';
import type { SpanPage } from './span-page.js';
import type { TelemetryRecord } from './telemetry-record.js';

/** Consecutive spans of a page that are of one trace and one resource. Its records are made when somebody asks for them. */
export class SpanBatch implements RecordBatch {
  private made: readonly TelemetryRecord[] | undefined;

  /**
   * @param from index of the first span
   * @param to index after the last span; may grow while the page is being filled
   */
  constructor(
    readonly traceId: TraceId,
    readonly resource: Resource,
    readonly page: SpanPage,
    readonly from: number,
    public to: number,
  ) {}

  /** Two for each span: its start and its end. */
  get recordCount(): number {
    return 2 * (this.to - this.from);
  }

  get records(): readonly TelemetryRecord[] {
    if (this.made === undefined) {
      const records: TelemetryRecord[] = [];
      for (let span = this.from; span < this.to; span++) records.push(...this.page.recordsOf(span));
      this.made = records;
    }
    return this.made;
  }
}

/** How many records a batch has, without making them. */
export function recordCountOf(batch: RecordBatch): number {
  return batch instanceof SpanBatch ? batch.recordCount : batch.records.length;
}
