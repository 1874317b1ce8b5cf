import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { RetryPolicy } from '../../../src/core/clock.js';
import { RunWatch, type RunWatchConfig } from '../../../src/platform/command.js';
import { type HostedRunRow, PullStore } from '../../../src/platform/pull-store.js';
import { PullWorker } from '../../../src/platform/pull-worker.js';
import { RunPuller } from '../../../src/platform/run-puller.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { openFreshState } from '../../fake/fresh-state.js';
import { MemoryConsumer } from '../../fake/memory-consumer.js';
import { until, untilTurned } from '../../tool/until.js';
import { Asking } from './asking.js';

const asking = Asking.forEachTest();
const PLATFORM = 'https://platform.example';
const MINUTE_MS = 60_000;
const NOW = Date.UTC(2026, 0, 3);

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

/** A worker on a state of its own, and a clock that stands still. */
async function working(clock = new FakeClock(NOW)) {
  const state = await openFreshState(join(asking.folder, 'state.db'));
  const store = new PullStore(state);
  const consumer = new MemoryConsumer();
  const puller = new RunPuller({ folder: asking.folder, maxFileBytes: 1e6, openConsumer: () => consumer, clock });
  const api = asking.api();
  const worker = new PullWorker(
    { platform: PLATFORM, intervalMs: MINUTE_MS },
    {
      store,
      puller,
      apiOf: () => api,
      retryPolicy: new RetryPolicy({ baseMs: 10_000, maxMs: 80_000, maxRetryAfterMs: 1 }, () => 0.999),
      clock,
      logger: asking.logger,
    },
  );
  const watches: RunWatch[] = [];
  const close = async () => {
    for (const watch of watches) await watch.shutdown(AbortSignal.abort());
    await worker.shutdown(AbortSignal.abort());
    await state.close();
  };
  open.push({ close });
  const key = (runId: string) => ({ platform: PLATFORM, accountId: '7', runId });
  const note = async (...runIds: string[]) => {
    await store.add(runIds.map(key), clock.nowUnixMs(), 100);
    worker.wake();
  };
  const untilRow = async (runId: string, matches: (row: HostedRunRow) => boolean) => {
    const matching = async () => {
      const row = await store.find(key(runId));
      return row !== undefined && matches(row) ? row : undefined;
    };
    return until(`the row of run ${runId}`, matching);
  };
  const watch = async (given: Partial<RunWatchConfig> = {}) => {
    const scope = { platform: PLATFORM, accountId: '7', jobId: null };
    const made = new RunWatch(
      { scope, intervalMs: MINUTE_MS, sinceUnixMs: NOW - 30 * 86_400_000, maxWaiting: 100, ...given },
      { api, store, onNoted: () => worker.wake(), clock, logger: asking.logger },
    );
    watches.push(made);
    await made.start();
    return made;
  };
  return { worker, store, clock, consumer, note, untilRow, watch, key };
}

const telemetryAsked = () => asking.server.paths.filter((path) => path.includes('telemetry-'));

describe('a worker', () => {
  it('brings in what was noted, and rests', async () => {
    asking.server.runs = [{ id: 1, steps: [{ telemetry: 'parse' }] }];
    const { worker, note, untilRow, consumer } = await working();
    await worker.start();
    await note('1');
    await untilRow('1', ({ state }) => state === 'done');
    expect(consumer.deliveries).toHaveLength(1);
    expect(worker.counts).toEqual({ runCount: 1, stepCount: 1, recordCount: 63, unreadableCount: 0, givenUpCount: 0 });
    await note('1');
    expect(telemetryAsked()).toHaveLength(1);
  });

  it('goes on when it is started again', async () => {
    asking.server.runs = [{ id: 1, steps: [{ telemetry: 'parse' }] }];
    const { worker, note, untilRow } = await working();
    await worker.start();
    await worker.shutdown(AbortSignal.abort());
    await note('1');
    await worker.start();
    await untilRow('1', ({ state }) => state === 'done');
  });

  it('asks again for a run that is not complete, once in an interval', async () => {
    asking.server.runs = [{ id: 1, status: 3 }];
    const { worker, note, untilRow, clock } = await working();
    await worker.start();
    await note('1');
    await untilRow('1', ({ dueUnixMs }) => dueUnixMs === NOW + MINUTE_MS);
    asking.server.runs = [{ id: 1, steps: [{ telemetry: 'parse' }] }];
    await untilTurned(() => clock.nextTimerMs === MINUTE_MS);
    expect(asking.server.paths).toEqual(['/runs/1/']);
    clock.advance(MINUTE_MS);
    await untilRow('1', ({ state }) => state === 'done');
  });

  it('tries a step again that could not be had, and no other step, also after a restart', async () => {
    asking.server.runs = [{ id: 1, steps: [{ telemetry: 'parse' }, { telemetry: 'build-clean' }] }];
    asking.server.fault = ({ path }) => (path.includes('telemetry-2') ? { status: 400 } : undefined);
    const first = await working();
    await first.worker.start();
    await first.note('1');
    const row = await first.untilRow('1', ({ attemptCount }) => attemptCount === 1);
    expect(row).toMatchObject({ state: 'waiting', doneSteps: [1], dueUnixMs: NOW + 9_990 });
    await open.pop()?.close();
    asking.server.fault = () => undefined;
    asking.server.requests.length = 0;
    const second = await working(new FakeClock(NOW + 20_000));
    await second.worker.start();
    await second.untilRow('1', ({ state }) => state === 'done');
    expect(telemetryAsked()).toEqual(['/runs/1/artifacts/metadata/telemetry-2-otel.parquet/']);
  });

  it('waits longer and longer for a platform that refuses, tries no other run meanwhile, and forgets none', async () => {
    asking.server.runs = [{ id: 1 }, { id: 2 }];
    asking.server.token = 'another';
    const { worker, note, untilRow, clock } = await working();
    asking.server.token = 'changed';
    await note('1', '2');
    await worker.start();
    await untilTurned(() => worker.lastError !== undefined && clock.nextTimerMs === 9_990);
    expect(asking.server.requests).toHaveLength(1);
    expect(worker.lastError).toContain('RUN_BRIDGE_PLATFORM_TOKEN');
    asking.server.token = 'another';
    clock.advance(9_990);
    await untilRow('1', ({ state }) => state === 'done');
    await untilRow('2', ({ state }) => state === 'done');
    expect(worker.lastError).toBeUndefined();
  });

  it('gives up a run that is gone, and one that could not be had for a week', async () => {
    const clock = new FakeClock(NOW);
    asking.server.runs = [{ id: 2, status: 1 }];
    const { worker, store, note, untilRow, key } = await working(clock);
    await store.save([
      {
        ...key('2'),
        state: 'waiting',
        notedUnixMs: NOW - 8 * 86_400_000,
        dueUnixMs: 0,
        attemptCount: 0,
        doneSteps: [],
      },
    ]);
    await note('1');
    await worker.start();
    await untilRow('1', ({ state }) => state === 'failed');
    await untilRow('2', ({ state }) => state === 'failed');
    expect(worker.counts.givenUpCount).toBe(2);
  });
});

describe('a watch', () => {
  it('finds new runs, page by page, and goes on where it was', async () => {
    asking.server.runs = Array.from({ length: 130 }, (_, at) => ({ id: at + 1 }));
    const { store, watch, clock } = await working();
    await watch({ maxWaiting: 1_000 });
    expect(await store.countWaiting(PLATFORM)).toBe(130);
    asking.server.runs.push({ id: 500, createdAt: '2026-01-02 23:59:59+00:00' });
    asking.server.requests.length = 0;
    await untilTurned(() => clock.nextTimerMs === MINUTE_MS);
    clock.advance(MINUTE_MS);
    await untilTurned(() => asking.server.requests.length === 2);
    const range = JSON.parse(asking.server.requests[0]?.query.get('created_at__range') ?? '[]');
    // Ten minutes before the newest that it knows.
    expect(range[0]).toBe('2026-01-02T10:22:24.326Z');
  });

  it('begins a day back, or where it is asked to, and not after where it was', async () => {
    const { watch, store } = await working();
    await watch({ sinceUnixMs: NOW - 86_400_000 });
    await store.saveCursor({ platform: PLATFORM, accountId: '7', jobId: null }, NOW - 5 * 86_400_000);
    await watch({ sinceUnixMs: NOW - 86_400_000 });
    const from = asking.server.requests.map(({ query }) => JSON.parse(query.get('created_at__range') ?? '[]')[0]);
    expect(from).toEqual(['2026-01-01T23:50:00.000Z', '2025-12-28T23:50:00.000Z']);
  });

  it('looks for no more while too many wait, and loses none', async () => {
    asking.server.runs = Array.from({ length: 130 }, (_, at) => ({ id: at + 1 }));
    const { store, watch, clock, worker, untilRow } = await working();
    await watch({ maxWaiting: 110 });
    expect(await store.countWaiting(PLATFORM)).toBe(100);
    await worker.start();
    await untilRow('100', ({ state }) => state === 'done');
    clock.advance(MINUTE_MS);
    await untilRow('130', ({ state }) => state === 'done');
  });

  it('says at its start what is wrong, and later only in the log', async () => {
    const { watch, clock } = await working();
    asking.server.fault = () => ({ status: 401 });
    await expect(watch()).rejects.toMatchObject({ code: 'unauthorized' });
    asking.server.fault = () => undefined;
    await watch();
    asking.server.fault = () => ({ status: 401 });
    await untilTurned(() => clock.nextTimerMs === MINUTE_MS);
    clock.advance(MINUTE_MS);
    await untilTurned(() => asking.logger.lines.length > 0);
    expect(asking.logger.lines[0]).toMatchObject({ level: 'warn' });
  });
});
