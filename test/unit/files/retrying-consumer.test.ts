import { describe, expect, it } from 'vitest';
import { RetryingConsumer } from '../../../src/files/retrying-consumer.js';
import { ConsumeError, type Delivery, type RecordConsumer } from '../../../src/record/record-batch.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { untilTurned } from '../../tool/until.js';
import { running } from './reading.js';

const delivery: Delivery = { batches: [], passthrough: [] };

/** Fails until it is well. */
class Failing implements RecordConsumer {
  attempts = 0;
  error: Error | undefined;
  async consume(): Promise<void> {
    this.attempts += 1;
    if (this.error !== undefined) throw this.error;
  }
}

describe('RetryingConsumer', () => {
  it('offers the same again after the time that was asked for, however often', async () => {
    const [clock, consumer] = [new FakeClock(), new Failing()];
    consumer.error = new ConsumeError('unavailable', 'full', 5_000);
    const taken = new RetryingConsumer(consumer, clock, running).consume(delivery);
    for (let attempt = 1; attempt < 50; attempt++) {
      await untilTurned(() => consumer.attempts === attempt && clock.nextTimerMs === 5_000);
      clock.advance(5_000);
    }
    await untilTurned(() => clock.nextTimerMs === 5_000);
    consumer.error = undefined;
    clock.advance(5_000);
    await taken;
  });

  it('gives up on a refusal, on a fault, and when it is asked to stop', async () => {
    const [clock, consumer] = [new FakeClock(), new Failing()];
    const patient = new RetryingConsumer(consumer, clock, running);
    for (const error of [new ConsumeError('refused', 'no', 0), new TypeError('a fault')]) {
      consumer.error = error;
      await expect(patient.consume(delivery)).rejects.toBe(error);
    }
    consumer.error = new ConsumeError('overloaded', 'full', 5_000);
    const stopping = new RetryingConsumer(consumer, clock, AbortSignal.abort());
    await expect(stopping.consume(delivery)).rejects.toMatchObject({ name: 'AbortError' });
  });
});
