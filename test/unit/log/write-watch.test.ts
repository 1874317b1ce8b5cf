import { beforeEach, expect, test } from 'vitest';
import { Health } from '../../../src/core/health.js';
import { WriteWatch } from '../../../src/log/write-watch.js';
import { FakeClock } from '../../fake/fake-clock.js';

let clock: FakeClock;
let health: Health;
let isWritable: boolean;
let probes: number;
let watch: WriteWatch;

beforeEach(() => {
  clock = new FakeClock();
  health = new Health();
  isWritable = false;
  probes = 0;
  const probe = async () => {
    probes += 1;
    if (!isWritable) throw new Error('EROFS');
  };
  watch = new WriteWatch({ probe, clock, health });
});

async function pass(ms: number): Promise<void> {
  clock.advance(ms);
  await new Promise((resolve) => setImmediate(resolve));
}

test('a folder that could not be written makes the process unready and says why', () => {
  expect(health.report().ready).toBe(true);
  watch.onFailed('the data folder cannot be written: EROFS');
  expect(health.report().checks[0]).toEqual({
    name: 'data folder',
    state: {
      ready: false,
      reason: 'the data folder cannot be written: EROFS; it is taken up again as soon as it can be written',
    },
  });
});

test('it becomes ready again when nobody sends anything', async () => {
  watch.onFailed('full');
  watch.onFailed('full');
  await pass(2_000);
  expect([probes, health.report().ready]).toEqual([1, false]);
  isWritable = true;
  await pass(2_000);
  expect([probes, health.report().ready]).toEqual([2, true]);
  expect(clock.nextTimerMs).toBeUndefined();
});

test('a process is unready from its start on a folder that cannot be written, until it can be', async () => {
  await watch.start();
  await pass(0);
  expect([probes, health.report().ready]).toEqual([1, false]);
  isWritable = true;
  await pass(2_000);
  expect(health.report().ready).toBe(true);
});

test('a process that starts well tries nothing more', async () => {
  isWritable = true;
  await watch.start();
  await pass(0);
  expect([probes, clock.nextTimerMs]).toEqual([1, undefined]);
});

test('a process that ends tries nothing more', async () => {
  watch.onFailed('full');
  await watch.shutdown();
  expect(clock.nextTimerMs).toBeUndefined();
});
