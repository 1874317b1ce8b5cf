import { type Clock, type RetryRules, retry } from '../core/clock.js';
import { ConsumeError, type Delivery, type RecordConsumer } from '../record/record-batch.js';

/** How long a delivery is offered: without limits as long as it has to. */
export type OfferRules = Omit<RetryRules, 'delayMs'>;

/** Offers the same again until it is taken: for a source that can wait as long as it has to. */
export class PatientConsumer implements RecordConsumer {
  /** @param signal ends the waiting. */
  constructor(
    private readonly consumer: RecordConsumer,
    private readonly clock: Clock,
    private readonly signal: AbortSignal,
  ) {}

  /** @throws ConsumeError `refused`; the signal's reason when it aborts. */
  consume(delivery: Delivery): Promise<void> {
    return offerDelivery(this.consumer, delivery, { clock: this.clock, signal: this.signal });
  }
}

/** How often a file's delivery is offered again to a consumer that cannot take more just now. */
export const MAX_OFFERS = 20;

/**
 * Hands a delivery to a consumer, and offers it again as long as the consumer asks for time.
 * @throws ConsumeError when the consumer does not take it; the signal's reason when it aborts.
 */
export function offerDelivery(consumer: RecordConsumer, delivery: Delivery, rules: OfferRules): Promise<void> {
  return retry(() => consumer.consume(delivery), {
    ...rules,
    delayMs: (error) => (error instanceof ConsumeError && error.code !== 'refused' ? error.retryAfterMs : null),
  });
}

/** Hands over what was read of a file, unless it is nothing. @throws ConsumeError after 20 offers; the signal's reason */
export async function offerRead(
  consumer: RecordConsumer,
  delivery: Delivery,
  { clock, signal }: OfferRules,
): Promise<void> {
  signal.throwIfAborted();
  if (delivery.batches.length === 0 && delivery.foreign.length === 0) return;
  await offerDelivery(consumer, delivery, { clock, signal, maxAttempts: MAX_OFFERS });
}
