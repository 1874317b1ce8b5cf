import type { TraceId } from '../../record/ids.js';
import type { RecordBatch } from '../../record/record-batch.js';
import type { Resource } from '../../record/resource.js';
import { isSame } from '../../record/same-bytes.js';
import { SpanBatch } from '../../record/span-batch.js';
import type { SpanPage } from '../../record/span-page.js';
import type { TelemetryRecord } from '../../record/telemetry-record.js';
import { checkRecordCount } from '../record-count.js';

/**
 * What a request's spans become, in the order in which they came: stretches of the page, each of one trace and resource,
 * and between them records that the general decoder made.
 */
export class DecodedBatches {
  readonly list: RecordBatch[] = [];
  private recordCount = 0;
  /** The latest batch, while it can grow. */
  private spans: SpanBatch | undefined;
  private traceId = '' as TraceId;
  private readonly traceIdBytes = Buffer.alloc(16);

  constructor(readonly page: SpanPage) {}

  /** The page's last span belongs to the trace whose id stands at `traceId`. */
  addSpan(from: Buffer, traceId: number, resource: Resource): void {
    this.count(2);
    const isSameTrace = this.traceId !== '' && isSame(this.traceIdBytes, from, traceId, traceId + 16);
    if (!isSameTrace) {
      from.copy(this.traceIdBytes, 0, traceId, traceId + 16);
      this.traceId = this.traceIdBytes.toString('hex') as TraceId;
    }
    const { spanCount } = this.page;
    if (isSameTrace && this.spans?.resource === resource) {
      this.spans.to = spanCount;
      return;
    }
    this.spans = new SpanBatch(this.traceId, resource, this.page, spanCount - 1, spanCount);
    this.list.push(this.spans);
  }

  addRecords(records: readonly TelemetryRecord[], resource: Resource): void {
    this.count(records.length);
    const [first] = records;
    if (first === undefined) return;
    this.spans = undefined;
    this.list.push({ traceId: first.traceId, resource, records });
  }

  private count(more: number): void {
    this.recordCount += more;
    checkRecordCount(this.recordCount);
  }
}
