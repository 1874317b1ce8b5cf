import type { TraceId } from '../record/ids.js';
import type { Delivery, RecordConsumer } from '../record/record-consumer.js';
import type { ExecutionBook } from '../run/execution-book.js';

/**
 * Says whose a trace is before its records are handed over. They may not say it themselves (older engines, recorded telemetry,
 * scripts with an OTEL_RESOURCE_ATTRIBUTES of their own), or others that do not may have come first by another way: until it is
 * known, such a trace is taken for a run of its own, and that is told of.
 */
export class AttachingConsumer implements RecordConsumer {
  private readonly attached = new Set<TraceId>();

  /** @param stepId of the command whose records these are */
  constructor(
    private readonly target: RecordConsumer,
    private readonly book: Pick<ExecutionBook, 'attach'>,
    private readonly stepId: string,
  ) {}

  async consume(delivery: Delivery): Promise<void> {
    const traceIds = delivery.batches.map(({ traceId }) => traceId);
    // The records are worth more; it is said again with the next ones, and at the end.
    await this.attach(traceIds).catch(() => undefined);
    await this.target.consume(delivery);
  }

  /** Says it of those of which it was not said yet. @throws ExecutionBookError */
  async attach(traceIds: Iterable<TraceId>): Promise<void> {
    for (const traceId of traceIds) {
      if (this.attached.has(traceId)) continue;
      await this.book.attach(this.stepId, traceId);
      this.attached.add(traceId);
    }
  }
}
