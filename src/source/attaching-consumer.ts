import type { TraceId } from '../record/ids.js';
import type { Delivery, RecordConsumer } from '../record/record-consumer.js';
import { stepIdOf } from '../record/step-attribute.js';
import type { ExecutionBook } from '../run/execution-book.js';

/**
 * Says whose a trace is before its records are handed over, where these do not say it themselves: older engines, recorded
 * telemetry, scripts with an OTEL_RESOURCE_ATTRIBUTES of their own. Otherwise they would be taken for a run of their own, and
 * that would be told of, until the command ends.
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
    for (const { traceId, resource } of delivery.batches) {
      if (stepIdOf(resource) !== null || this.attached.has(traceId)) continue;
      try {
        await this.book.attach(this.stepId, traceId);
        this.attached.add(traceId);
      } catch {
        // The records are worth more; it is said again with the next ones, and at the end.
      }
    }
    await this.target.consume(delivery);
  }
}
