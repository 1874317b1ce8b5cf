import { expect, test } from 'vitest';
import { Health } from '../../../src/core/health.js';
import { WatchedConsumer, WriteWatch } from '../../../src/log/write-watch.js';
import { ConsumeError } from '../../../src/record/record-batch.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { MemoryConsumer } from '../../fake/memory-consumer.js';

const NOTHING = { batches: [], passthrough: [] };

function bench() {
  const consumer = new MemoryConsumer();
  const health = new Health();
  const watch = new WriteWatch({ probe: async () => {}, clock: new FakeClock(), health });
  return { consumer, health, watched: new WatchedConsumer(consumer, watch) };
}

test('records that could not be written make the process unready, and an answer to what was known does not end that', async () => {
  const { consumer, health, watched } = bench();
  consumer.failWith(new ConsumeError('unavailable', 'cannot be written', 1, { cause: new Error('EIO') }));
  await expect(watched.consume(NOTHING)).rejects.toThrow('cannot be written');
  consumer.failWith(undefined);
  await watched.consume(NOTHING);
  expect(health.report().ready).toBe(false);
});

test('a consumer that is overloaded or ending says nothing about the disk', async () => {
  for (const code of ['overloaded', 'unavailable', 'refused'] as const) {
    const { consumer, health, watched } = bench();
    consumer.failWith(new ConsumeError(code, 'not now', 1));
    await expect(watched.consume(NOTHING)).rejects.toThrow('not now');
    expect(health.report().ready).toBe(true);
  }
});
