import type { TraceId } from '../record/ids.js';
import type { Delivery, RecordConsumer } from '../record/record-batch.js';
import { stepIdOf } from '../record/resource.js';
import type { ExecutionBook } from '../run/execution-book.js';

/**
 * Says whose a trace is before its records are handed over, where they do not say it themselves: older engines, recorded
 * telemetry, scripts with an OTEL_RESOURCE_ATTRIBUTES of their own. Otherwise it would be taken for a run of its own until the
 * command ends, and that would be told of. Where they say it, nothing holds them up.
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
    const unsaid = delivery.batches.filter(({ resource }) => stepIdOf(resource) === null);
    // The records are worth more; it is said again with the next ones, and at the end.
    await this.attach(unsaid.map(({ traceId }) => traceId)).catch(() => undefined);
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
