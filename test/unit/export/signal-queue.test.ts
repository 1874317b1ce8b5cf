import { describe, expect, it } from 'vitest';
import { DEFAULT_RETRY_POLICY, RetryPolicy } from '../../../src/core/clock.js';
import { SignalBreaker } from '../../../src/export/signal-breaker.js';
import { type RunBatch, SignalProgress, SignalQueue } from '../../../src/export/signal-queue.js';
import type { ItemRange } from '../../../src/export/wire/item-window.js';
import { loggedRecords } from '../../../src/log/appended.js';
import type { TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { itemsOf } from '../../fake/mapped-items.js';
import { MemoryRecordLog, spanEnd, spanStart, traceIdOf } from '../../fake/memory-record-log.js';
import { RecordingLogger } from '../../fake/recording-logger.js';
import { SimpleRunMapper } from '../../fake/simple-run-mapper.js';

const [ONE, OTHER] = [traceIdOf(1), traceIdOf(2)];

function openQueue(maxItems = 100) {
  const deps = { clock: new FakeClock(), logger: new RecordingLogger(), policy: new RetryPolicy(DEFAULT_RETRY_POLICY) };
  const breaker = new SignalBreaker('traces', true, 'otlp', deps, () => {});
  const queue = new SignalQueue(breaker, maxItems);
  return { breaker, queue, one: new SignalProgress(ONE, queue), other: new SignalProgress(OTHER, queue) };
}

/** The spans of a run with so many, as a new replay gives them, two at a time. */
function replay(
  traceId = ONE,
  count = 10,
): { readonly ranges: readonly ItemRange[]; readonly anchors: readonly number[] } {
  const log = new MemoryRecordLog();
  const mapper = new SimpleRunMapper(0);
  const ranges: ItemRange[] = [];
  for (let number = 1; number <= count; number += 2) {
    const records: readonly TelemetryRecord[] = [spanEnd(traceId, number), spanEnd(traceId, number + 1)];
    mapper.push(log.append(traceId, ...records).pieces.flatMap(loggedRecords));
    ranges.push(...mapper.take(true).traces);
  }
  return { ranges, anchors: itemsOf({ traces: ranges, logs: [] }).map(({ anchorOffset }) => anchorOffset) };
}

const names = (...batches: readonly RunBatch[]) =>
  batches.flatMap(({ ranges }) =>
    itemsOf({ traces: ranges, logs: [] }).map((item) => (item.signal === 'traces' ? item.span.name.slice(5) : '')),
  );

describe("a signal's queue", () => {
  it('gives each request items of several runs in turns, and each run its items in order', () => {
    const { queue, one, other } = openQueue();
    one.enqueue(replay(ONE, 6).ranges);
    other.enqueue(replay(OTHER, 4).ranges);
    expect(queue.take(3).map((batch) => [batch.progress === one, names(batch)])).toEqual([[true, ['1', '2', '3']]]);
    const mixed = queue.take(5).map((batch) => [batch.progress === one, names(batch)]);
    expect(mixed).toEqual([
      [false, ['1', '2', '3', '4']],
      [true, ['4']],
    ]);
    expect(queue.count).toBe(2);
  });

  it('puts what failed back where it was, whichever request comes back first', () => {
    const { queue, one } = openQueue();
    one.enqueue(replay().ranges);
    const batches = [queue.take(3), queue.take(3), queue.take(1)].flat();
    const [first, second, third] = batches as [RunBatch, RunBatch, RunBatch];
    one.requeue(second);
    one.requeue(first);
    const [front, rest] = one.split(third, 1);
    expect([front.itemCount, rest.itemCount]).toEqual([1, 0]);
    one.requeue(front);
    expect(names(...queue.take(100))).toEqual(['1', '2', '3', '4', '5', '6', '7', '8', '9', '10']);
  });

  it('stands before the first item that was not answered', () => {
    const { queue, one } = openQueue();
    const { ranges, anchors } = replay();
    one.enqueue(ranges);
    const [first, second] = [queue.take(4), queue.take(4)].flat() as [RunBatch, RunBatch];
    one.answered(second);
    expect(one.offset).toBe(0);
    const [half, rest] = one.split(first, 2);
    one.answered(half);
    expect(one.offset).toBe(anchors[2]);
    one.answered(rest);
    expect(one.offset).toBe(anchors[8]);
  });

  it('does not send again what was answered beyond the cursor, or is under way, when the run is read again', () => {
    const { queue, one } = openQueue();
    one.enqueue(replay().ranges);
    const [first, second, third] = [queue.take(2), queue.take(3), queue.take(2)].flat() as [
      RunBatch,
      RunBatch,
      RunBatch,
    ];
    one.answered(third);
    one.requeue(first);
    one.evict();
    one.open(0);
    one.enqueue(replay().ranges);
    one.answered(second);
    expect(one.offset).toBe(0);
    expect(names(...queue.take(100))).toEqual(['1', '2', '8', '9', '10']);
  });

  it("tells a run's last spans apart, which have one anchor", () => {
    const { queue, one } = openQueue();
    const finished = () => {
      const mapper = new SimpleRunMapper(0);
      const records = [1, 2, 3, 4].map((number) => spanStart(ONE, number));
      const { pieces, lengthBytes } = new MemoryRecordLog().append(ONE, ...records);
      mapper.push(pieces.flatMap(loggedRecords));
      const { traces } = mapper.finish({ ...SUMMARY, logBytes: lengthBytes });
      return { traces, lengthBytes };
    };
    const { traces, lengthBytes } = finished();
    one.enqueue(traces, lengthBytes);
    const [, second] = [queue.take(1), queue.take(2)].flat() as [RunBatch, RunBatch];
    one.answered(second);
    expect(one.offset).toBe(lengthBytes);
    one.open(0);
    one.enqueue(finished().traces, lengthBytes);
    expect(names(...queue.take(100))).toEqual(['4 unfinished']);
  });

  it('makes room while nothing is taken, and finds it again', () => {
    const { breaker, queue, one } = openQueue(5);
    one.enqueue(replay(ONE, 4).ranges);
    const failure = { kind: 'retryable', status: 429, retryAfterMs: null, message: '' } as const;
    expect(breaker.settle(failure, 1)).toBe('paused');
    one.enqueue(replay(ONE, 8).ranges.slice(2));
    expect({ count: queue.count, isEvicted: one.isEvicted, offset: one.offset }).toEqual({
      count: 0,
      isEvicted: true,
      offset: 0,
    });
  });
});

const SUMMARY = { traceId: ONE, firstSeenUnixMs: 0, lastSeenUnixMs: 0, state: 'finished', invocations: [] } as const;
