import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RetryPolicy } from '../../../src/core/clock.js';
import { ExportTurns } from '../../../src/core/turns.js';
import type { Destination, ExportWorkerDeps } from '../../../src/export/destination.js';
import type { ExportWorker } from '../../../src/export/export-worker.js';
import { OpenRuns } from '../../../src/export/run-schedule.js';
import { SupervisedWorker } from '../../../src/export/supervised-worker.js';
import type { CursorStore } from '../../../src/storage/cursor-store.js';
import { ExportBench } from '../../fake/export-bench.js';
import { spanEnd, traceIdOf } from '../../fake/memory-record-log.js';
import { until, untilTurned } from '../../tool/until.js';

const RUN = traceIdOf(1);
const never = new AbortController().signal;
const spans = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => spanEnd(RUN, from + index + 1));
const names = (count: number) => Array.from({ length: count }, (_, index) => `span ${index + 1}`);

interface Fault {
  readonly deps?: Partial<ExportWorkerDeps>;
  readonly spoil?: (worker: ExportWorker) => void;
}

let bench: ExportBench;
let destination: Destination;
let openRuns: OpenRuns;
let supervised: SupervisedWorker;
/** What is wrong with the next worker; those behind it are whole. */
let fault: Fault;
let workerCount: number;
beforeEach(async () => {
  bench = await ExportBench.open();
  openRuns = new OpenRuns();
  fault = {};
  workerCount = 0;
  destination = await bench.destination(bench.receiver.url);
  supervised = new SupervisedWorker({
    destination,
    create: (onFailed) => {
      workerCount += 1;
      const { deps = {}, spoil = () => {} } = fault;
      fault = {};
      const worker = bench.create(destination, { deps: { ...deps, onFailed }, options: { batchDelayMs: 50 } });
      spoil(worker);
      return worker;
    },
    openRuns,
    clock: bench.clock,
    logger: bench.logger,
    retryPolicy: new RetryPolicy({ baseMs: 1_000, maxMs: 60_000, maxRetryAfterMs: 600_000 }, () => 1),
  });
  bench.log.listeners.push({
    onAppended: (appended) => {
      openRuns.appended(appended);
      supervised.notify((worker) => worker.onAppended(appended));
    },
  });
});
afterEach(() => bench.close());

async function finish(): Promise<void> {
  const run = await bench.saveRun(RUN, 'finished');
  openRuns.runEvent({ type: 'finished', run });
  supervised.notify((worker) => worker.onRunEvent({ type: 'finished', run }));
}

const messages = () => bench.logger.lines.map(({ message }) => message).filter((text) => text.startsWith('exports to'));

function fail(): never {
  throw new Error('no luck');
}

/** Makes one of a worker's methods fail the first time. */
const failingOnce = (name: string) => (worker: ExportWorker) => {
  Reflect.set(worker, name, () => {
    Reflect.deleteProperty(worker, name);
    fail();
  });
};

/** A logger that fails at the first warning, as an error that nobody foresaw. */
const failingLogger = () => ({
  ...bench.logger,
  debug: () => {},
  info: () => {},
  error: () => {},
  warn: fail,
});

const failingCursors = (): CursorStore =>
  Object.assign(Object.create(bench.state.cursors), { save: () => Promise.reject(new Error('no room')) });

const failingPolicy = () =>
  Object.assign(new RetryPolicy({ baseMs: 1, maxMs: 1, maxRetryAfterMs: 1 }), { delayMs: fail });

/** Turns whose second one fails. */
function failingTurns(): ExportTurns {
  const turns = new ExportTurns();
  let count = 0;
  const next = turns.next.bind(turns);
  turns.next = () => {
    count += 1;
    return count === 2 ? Promise.reject(new Error('no luck')) : next();
  };
  return turns;
}

describe('a worker that fails for a reason that nothing handles', () => {
  it.each<[string, () => Fault]>([
    ['in its loop', () => ({ deps: { turns: failingTurns() } })],
    ['as it sends', () => ({ deps: { logger: failingLogger() } })],
    ['as it saves', () => ({ deps: { cursors: failingCursors(), retryPolicy: failingPolicy() } })],
    ['when a time has come', () => ({ spoil: failingOnce('endLinger') })],
  ])('%s is replaced by one that goes on at its cursors, and nothing is lost', async (_, make) => {
    // The first request fails: the one that is to report it is taken down.
    let requestCount = 0;
    bench.receiver.answer = () => ({ status: ++requestCount === 1 ? 500 : 200 });
    fault = make();
    await supervised.start();
    bench.log.append(RUN, ...spans(0, 20));
    await untilTurned(() => {
      bench.clock.advance(100);
      return supervised.status()?.state === 'waiting' && supervised.status()?.lastError === 'no luck';
    });
    bench.log.append(RUN, ...spans(20, 30));
    await finish();
    await untilTurned(() => {
      bench.clock.advance(100);
      return workerCount === 2 && supervised.status()?.pendingRuns === 0;
    });
    expect([...new Set(bench.receiver.spanNames)].sort()).toEqual(names(30).sort());
    expect(messages()).toEqual([
      'exports to a destination ended unexpectedly; restarting them where they stopped, no data is lost',
      'exports to a destination are running again',
    ]);
    await supervised.shutdown(never);
  });

  it('as it is told of something keeps nobody from what they do', async () => {
    await supervised.start();
    supervised.notify(() => {
      throw new Error('no luck');
    });
    bench.log.append(RUN, ...spans(0, 5));
    await untilTurned(() => {
      bench.clock.advance(1_000);
      return workerCount === 2;
    });
    expect(await supervised.flush(never)).toBe(true);
    expect(bench.receiver.spanNames).toEqual(names(5));
    expect(workerCount).toBe(2);
  });

  it('again and again is replaced ever more rarely', async () => {
    bench.state.cursors.listPending = () => Promise.reject(new Error('the database is away'));
    await supervised.start();
    const delays: unknown[] = [];
    await until('five failures', () => {
      bench.clock.advance(1_000);
      delays.length = 0;
      for (const { fields, level } of bench.logger.lines) if (level === 'error') delays.push(fields.delayMs);
      return delays.length >= 5;
    });
    expect(delays.slice(0, 5)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000]);
    expect(bench.logger.lines[0]?.message).toBe('failed to start exports to a destination; retrying, no data is lost');
  });

  it('is not replaced once exports end, and its destination is closed all the same', async () => {
    fault = { deps: { turns: failingTurns() } };
    await supervised.start();
    bench.log.append(RUN, ...spans(0, 20));
    bench.clock.advance(50);
    await untilTurned(() => supervised.status()?.lastError === 'no luck');
    let closedCount = 0;
    destination.close = async () => {
      closedCount += 1;
    };
    await supervised.shutdown(never);
    expect(closedCount).toBe(1);
    bench.clock.advance(100_000);
    await new Promise(setImmediate);
    expect(workerCount).toBe(1);
  });
});

describe('open runs', () => {
  const told = () => {
    const lengths: [string, number][] = [];
    openRuns.notify({ onAppended: ({ traceId, lengthBytes }) => lengths.push([traceId, lengthBytes]) });
    return lengths;
  };

  it('are told with their last length, but for those that are finished, which the state knows, and those that others have', async () => {
    for (const [number, lengthBytes] of [
      [1, 10],
      [2, 20],
      [1, 30],
      [3, 5],
    ] as const) {
      openRuns.appended({ traceId: traceIdOf(number), lengthBytes });
    }
    openRuns.drop(traceIdOf(3));
    expect(told()).toEqual([
      [traceIdOf(2), 20],
      [traceIdOf(1), 30],
    ]);
    openRuns.runEvent({ type: 'finished', run: await bench.saveRun(RUN, 'finished') });
    expect(told()).toEqual([[traceIdOf(2), 20]]);
  });

  it('are so many at most, however many come', () => {
    for (let number = 1; number <= 100_010; number += 1) {
      openRuns.appended({ traceId: traceIdOf(number), lengthBytes: number });
    }
    expect(told()).toHaveLength(100_000);
    expect(told()[0]).toEqual([traceIdOf(11), 11]);
  });
});
