import { type Clock, type RetryRules, retry } from '../core/clock.js';
import { ConsumeError, type Delivery, type RecordConsumer } from '../record/record-batch.js';

/** How long a delivery is offered; without limits, until it is accepted. */
export type OfferRules = Omit<RetryRules, 'delayMs'>;

/** Offers each delivery until it is accepted, for a source that can wait. */
export class RetryingConsumer implements RecordConsumer {
  /** @param signal ends the attempts */
  constructor(
    private readonly consumer: RecordConsumer,
    private readonly clock: Clock,
    private readonly signal: AbortSignal,
  ) {}

  /** Resolves when the delivery was accepted. @throws ConsumeError `refused`; the signal's reason when it aborts */
  consume(delivery: Delivery): Promise<void> {
    return offerDelivery(this.consumer, delivery, { clock: this.clock, signal: this.signal });
  }
}

/** The most attempts to deliver a part of a file to a consumer that is overloaded. */
export const MAX_OFFERS = 20;

/**
 * Passes a delivery to a consumer, and retries as long as the consumer asks for time.
 * @throws ConsumeError if the consumer does not accept it; the signal's reason when it aborts
 */
export function offerDelivery(consumer: RecordConsumer, delivery: Delivery, rules: OfferRules): Promise<void> {
  return retry(() => consumer.consume(delivery), {
    ...rules,
    delayMs: (error) => (error instanceof ConsumeError && error.code !== 'refused' ? error.retryAfterMs : null),
  });
}

/** Passes on what was read of a file, unless it is empty. @throws ConsumeError after 20 attempts; the signal's reason when it aborts */
export async function offerRead(
  consumer: RecordConsumer,
  delivery: Delivery,
  { clock, signal }: OfferRules,
): Promise<void> {
  signal.throwIfAborted();
  if (delivery.batches.length === 0 && delivery.passthrough.length === 0) return;
  await offerDelivery(consumer, delivery, { clock, signal, maxAttempts: MAX_OFFERS });
}
