import type { Clock } from '../../component/clock.js';
import { pause } from '../../component/pause.js';
import { ConsumeError, type Delivery, type RecordConsumer } from '../../record/record-consumer.js';

/** Asks a consumer again for as long as it cannot take more just now: a disk that is full may be emptied. */
export class PatientConsumer implements RecordConsumer {
  constructor(
    private readonly consumer: RecordConsumer,
    private readonly clock: Clock,
    private readonly giveUp: AbortSignal,
    private readonly onTrouble: (message: string) => void,
  ) {}

  /** @throws ConsumeError when it will never be taken, or time is up. */
  async consume(delivery: Delivery): Promise<void> {
    for (;;) {
      try {
        return await this.consumer.consume(delivery);
      } catch (error) {
        if (!(error instanceof ConsumeError) || error.code === 'refused' || this.giveUp.aborted) throw error;
        if (error.code === 'unavailable') this.onTrouble(error.message);
        await pause(this.clock, error.retryAfterMs, this.giveUp);
        if (this.giveUp.aborted) throw error;
      }
    }
  }
}
