import type { Guard } from '../core/guard.js';
import type { WriteWatch } from '../core/write-watch.js';
import { ConsumeError, type ConsumeErrorCode, type Delivery, type RecordConsumer } from '../record/record-batch.js';

/** A record that has no text yet, as it is reckoned, in bytes. */
const RECORD_BYTES = 1024;

/** Asks a guard before it hands deliveries on, where no receiver has asked it: for records of files. */
export class GuardedConsumer implements RecordConsumer {
  /** @param code of the error when the guard refuses: `refused` for a sender that does not retry. */
  constructor(
    private readonly consumer: RecordConsumer,
    private readonly guard: Guard,
    private readonly code: ConsumeErrorCode,
  ) {}

  /** @throws ConsumeError */
  async consume(delivery: Delivery): Promise<void> {
    const bodyBytes = bodyBytesOf(delivery);
    const shortage = this.guard.findShortage(bodyBytes);
    if (shortage !== undefined) throw new ConsumeError(this.code, shortage.message, shortage.retryAfterMs);
    await this.consumer.consume(delivery);
    this.guard.onBody(bodyBytes);
  }
}

/** About what the records would be as a request body, which is less than half of their lines. */
function bodyBytesOf({ batches, foreign }: Delivery): number {
  let lineBytes = 0;
  for (const { records } of batches) for (const { line } of records) lineBytes += line?.length ?? RECORD_BYTES;
  for (const { body } of foreign) lineBytes += body.length;
  return Math.ceil(lineBytes / 2);
}

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
