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

/** How often a delivery is offered again to a consumer that cannot take more just now. */
const MAX_ATTEMPTS = 20;

/**
 * Hands a delivery to a consumer, and offers it again as long as the consumer asks for time. An empty one is not offered.
 * @param signal stops it between two attempts.
 * @throws ConsumeError when the consumer does not take it.
 */
export async function offerDelivery(
  consumer: RecordConsumer,
  delivery: Delivery,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  if (delivery.batches.length === 0 && delivery.foreign.length === 0) return;
  for (let attempt = 1; ; attempt++) {
    signal.throwIfAborted();
    try {
      return await consumer.consume(delivery);
    } catch (error) {
      const isPassing = error instanceof ConsumeError && error.code !== 'refused';
      if (!isPassing || attempt === MAX_ATTEMPTS) throw error;
      await pause(clock, error.retryAfterMs, signal);
    }
  }
}
