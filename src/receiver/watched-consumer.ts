import type { WriteWatch } from '../core/write-watch.js';
import { ConsumeError, type Delivery, type RecordConsumer } from '../record/record-batch.js';

/** Passes deliveries on, and reports to a watch whether they could be written. */
export class WatchedConsumer implements RecordConsumer {
  constructor(
    private readonly consumer: RecordConsumer,
    private readonly watch: WriteWatch,
  ) {}

  /** @throws ConsumeError */
  async consume(delivery: Delivery): Promise<void> {
    try {
      await this.consumer.consume(delivery);
    } catch (error) {
      // Without a cause nothing was tried: the consumer is ending.
      if (error instanceof ConsumeError && error.code === 'unavailable' && error.cause !== undefined) {
        this.watch.onFailed(error.message);
      }
      throw error;
    }
    this.watch.onWritten();
  }
}
