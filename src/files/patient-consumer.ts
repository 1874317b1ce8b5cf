import { type Clock, pause } from '../core/clock.js';
import { ConsumeError, type Delivery, type RecordConsumer } from '../record/record-batch.js';

/** Offers the same again until it is taken: for a source that can wait as long as it has to. */
export class PatientConsumer implements RecordConsumer {
  /** @param signal ends the waiting. */
  constructor(
    private readonly consumer: RecordConsumer,
    private readonly clock: Clock,
    private readonly signal: AbortSignal,
  ) {}

  /** @throws ConsumeError `refused`; the signal's reason when it aborts. */
  async consume(delivery: Delivery): Promise<void> {
    for (;;) {
      try {
        return await this.consumer.consume(delivery);
      } catch (error) {
        if (!(error instanceof ConsumeError) || error.code === 'refused') throw error;
        await pause(this.clock, error.retryAfterMs, this.signal);
        this.signal.throwIfAborted();
      }
    }
  }
}
