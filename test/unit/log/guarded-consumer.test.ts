import { expect, test } from 'vitest';
import type { Guard, Shortage } from '../../../src/core/guard.js';
import { GuardedConsumer } from '../../../src/log/record-log.js';
import { UNKNOWN_RESOURCE } from '../../../src/record/attributes.js';
import { parseRecordLine } from '../../../src/record/record-line.js';
import { parseTraceId } from '../../../src/record/telemetry-record.js';
import { MemoryConsumer } from '../../fake/memory-consumer.js';
import { sampleLines } from '../files/reading.js';

class OneGuard implements Guard {
  readonly asked: number[] = [];
  readonly counted: number[] = [];
  constructor(private readonly shortage?: Shortage) {}
  findShortage(bodyBytes: number): Shortage | undefined {
    this.asked.push(bodyBytes);
    return this.shortage;
  }
  onBody(bodyBytes: number): void {
    this.counted.push(bodyBytes);
  }
}

const lines = sampleLines('parse');
const records = lines.map(parseRecordLine);
const traceId = parseTraceId('a'.repeat(32));
if (traceId === undefined) throw new Error('no trace id');
const delivery = { batches: [{ traceId, resource: UNKNOWN_RESOURCE, records }], passthrough: [] };

test('records are handed on where there is room, and counted with half of their lines', async () => {
  const [guard, consumer] = [new OneGuard(), new MemoryConsumer()];
  await new GuardedConsumer(consumer, guard, 'refused').consume(delivery);
  expect(consumer.deliveries).toEqual([delivery]);
  expect(guard.asked).toEqual([Math.ceil(lines.join('').length / 2)]);
  expect(guard.counted).toEqual(guard.asked);
});

test('records are refused with the guard’s words where there is none', async () => {
  const [guard, consumer] = [new OneGuard({ message: 'full', retryAfterMs: 70 }), new MemoryConsumer()];
  const refused = new GuardedConsumer(consumer, guard, 'unavailable').consume(delivery);
  await expect(refused).rejects.toMatchObject({ code: 'unavailable', message: 'full', retryAfterMs: 70 });
  expect([consumer.deliveries, guard.counted]).toEqual([[], []]);
});
