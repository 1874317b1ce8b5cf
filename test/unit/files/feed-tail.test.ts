import { appendFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { feedTail, type TakenRange } from '../../../src/files/file-follower.js';
import { JsonlTail } from '../../../src/files/jsonl-tail.js';
import { formatRecordLine } from '../../../src/record/record-line.js';
import { MemoryConsumer } from '../../fake/memory-consumer.js';
import { untilTurned } from '../../tool/until.js';
import { running, sampleLines, temporaryFolder } from './reading.js';

const folder = temporaryFolder('feed-tail');
const taking = () => {
  const taken: TakenRange[] = [];
  return { taken, onTaken: (range: TakenRange) => void taken.push(range) };
};

describe('feedTail', () => {
  it('hands over the records of several traces as the engine wrote them, and tells rejects', async () => {
    const path = folder.path('mixed.jsonl');
    const ours = sampleLines('parse');
    const other = ours.map((line) => line.replace(/"trace_id":"\w+"/, `"trace_id":"${'a'.repeat(32)}"`));
    const mixed = ours.flatMap((line, index) => [line, other[index] ?? '']);
    writeFileSync(path, `${mixed.join('\n')}\nnonsense\n`);
    const consumer = new MemoryConsumer();
    const { taken, onTaken } = taking();
    const tail = new JsonlTail(path, {}, systemClock);
    tail.finish();
    await feedTail(tail, consumer, running, onTaken);
    const batches = consumer.deliveries.flatMap((delivery) => delivery.batches);
    expect(batches.map(({ records }) => records.map(formatRecordLine))).toEqual([ours, other]);
    expect(taken.flatMap(({ rejects }) => rejects)).toMatchObject([{ place: 'line 127', text: 'nonsense' }]);
    expect(taken.flatMap(({ traceIds }) => traceIds)).toEqual(batches.map(({ traceId }) => traceId));
  });

  it('goes no further than the consumer does', async () => {
    const path = folder.path('slow.jsonl');
    const [first = '', second = ''] = sampleLines('parse');
    writeFileSync(path, `${first}\n`);
    const consumer = new MemoryConsumer();
    consumer.hold();
    const { taken, onTaken } = taking();
    const tail = new JsonlTail(path, {}, systemClock);
    const offered = consumer.nextDelivery();
    const feeding = feedTail(tail, consumer, running, onTaken);
    await offered;
    appendFileSync(path, `${second}\n`);
    expect(taken).toEqual([]);
    consumer.release();
    await untilTurned(() => taken.length === 2);
    expect(taken.map(({ position }) => position?.offset)).toEqual([first.length + 1, first.length + second.length + 2]);
    tail.finish();
    await feeding;
  });

  it('ends with what the consumer throws, and its offset stays', async () => {
    const path = folder.path('failing.jsonl');
    writeFileSync(path, `${sampleLines('parse')[0]}\n`);
    const consumer = new MemoryConsumer();
    consumer.failWith(new Error('no'));
    const { taken, onTaken } = taking();
    await expect(feedTail(new JsonlTail(path, {}, systemClock), consumer, running, onTaken)).rejects.toThrow('no');
    expect(taken).toEqual([]);
  });
});
