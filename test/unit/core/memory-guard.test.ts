import { beforeEach, expect, test } from 'vitest';
import { MemoryGuard } from '../../../src/core/guard.js';
import { Health } from '../../../src/core/health.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { RecordingLogger } from '../../fake/recording-logger.js';

const MIB = 2 ** 20;
const LIMIT = 1_000 * MIB;

let clock: FakeClock;
let logger: RecordingLogger;
let health: Health;
let guard: MemoryGuard;
/** What the process takes, how much of it is garbage, and how much its allocators keep for the next objects, in MiB. */
let taken: { mib: number; garbageMib: number; keptMib: number };
/** What the process takes apart from its objects, in MiB. */
const FIXED_MIB = 60;
let collections: number;
let looks: number;

beforeEach(async () => {
  clock = new FakeClock();
  logger = new RecordingLogger();
  health = new Health();
  taken = { mib: 100, garbageMib: 0, keptMib: 0 };
  collections = 0;
  looks = 0;
  const machine = {
    memoryBytes: 4 * LIMIT,
    maxHeapBytes: 4 * LIMIT,
    residentBytes: () => {
      looks += 1;
      return taken.mib * MIB;
    },
    collectGarbage: () => {
      collections += 1;
      taken = { ...taken, mib: taken.mib - taken.garbageMib, garbageMib: 0 };
    },
    objectBytes: () => (taken.mib - taken.keptMib - FIXED_MIB) * MIB,
  };
  guard = new MemoryGuard(LIMIT, { machine, clock, logger, health });
  await guard.start();
});

function isRefused(): boolean {
  clock.advance(100);
  return guard.findShortage(0) !== undefined;
}

test('a body is taken below nine tenths of the limit and refused from there on', () => {
  taken.mib = 899;
  expect(isRefused()).toBe(false);
  taken.mib = 900;
  expect(isRefused()).toBe(true);
});

test('bodies are taken again below eight tenths, not as soon as a little is free', () => {
  taken.mib = 950;
  expect(isRefused()).toBe(true);
  taken.mib = 850;
  expect(isRefused()).toBe(true);
  taken.mib = 799;
  expect(isRefused()).toBe(false);
  taken.mib = 850;
  expect(isRefused()).toBe(false);
});

test('what is garbage only is collected, and nobody is refused for it', () => {
  taken = { ...taken, mib: 950, garbageMib: 600 };
  expect(isRefused()).toBe(false);
  expect(collections).toBe(1);
});

test('what allocators keep for the next objects does not count, up to three tenths of the limit', () => {
  taken = { mib: 950, garbageMib: 0, keptMib: 200 };
  expect(isRefused()).toBe(false);
  taken = { mib: 1_196, garbageMib: 0, keptMib: 900 };
  clock.advance(5_000);
  expect(isRefused()).toBe(false);
  taken.mib = 1_202;
  clock.advance(5_000);
  expect(isRefused()).toBe(true);
});

test('what was kept and is used now counts', () => {
  taken = { mib: 950, garbageMib: 0, keptMib: 200 };
  expect(isRefused()).toBe(false);
  taken = { mib: 1_110, garbageMib: 0, keptMib: 0 };
  clock.advance(5_000);
  expect(isRefused()).toBe(true);
});

test('the process stands still for a collection once in five seconds at most', () => {
  taken.mib = 950;
  for (let i = 0; i < 49; i++) expect(isRefused()).toBe(true);
  expect(collections).toBe(1);
  expect(isRefused()).toBe(true);
  clock.advance(500);
  expect(collections).toBe(2);
});

test('it is well again without anybody asking, and the log says once that it began and once that it ended', () => {
  taken.mib = 950;
  for (let i = 0; i < 3; i++) isRefused();
  taken.mib = 300;
  clock.advance(500);
  expect(logger.lines).toEqual([
    expect.objectContaining({ level: 'warn', message: expect.stringMatching(/^memory is short.*max-memory/) }),
    expect.objectContaining({ level: 'info', fields: expect.objectContaining({ refusedCount: 3, lastedMs: 700 }) }),
  ]);
  expect(clock.nextTimerMs).toBeUndefined();
});

test('the answer says what is short, which setting changes it and when to come back', () => {
  taken.mib = 950;
  clock.advance(100);
  expect(guard.findShortage(0)).toEqual({
    message:
      'run-bridge is short of memory (950 MiB of 1000 MiB are taken): send the request again shortly; --max-memory sets the limit.',
    retryAfterMs: 2_000,
  });
});

test('the memory is not looked at for each body, but as soon as those taken since may have filled a part of it', () => {
  clock.advance(100);
  looks = 0;
  for (let i = 0; i < 100; i++) guard.findShortage(1_000);
  expect(looks).toBe(1);
  guard.onBody(3 * MIB);
  taken.mib = 950;
  expect(guard.findShortage(1_000)).toBeDefined();
  expect(looks).toBeGreaterThan(1);
});

test('a large body that is announced makes it look first', () => {
  taken.mib = 950;
  expect(guard.findShortage(4 * MIB)).toBeDefined();
});

test('health has the figures, and is not ready while bodies are refused', () => {
  const check = () => health.report().checks[0]?.state;
  expect(check()).toEqual({
    ready: true,
    details: { usedBytes: 100 * MIB, residentBytes: 100 * MIB, limitBytes: LIMIT, freeBytes: 900 * MIB },
  });
  taken.mib = 950;
  isRefused();
  expect(check()).toMatchObject({
    ready: false,
    reason: expect.stringContaining('--max-memory'),
    details: { refusedCount: 1 },
  });
});

test('the end leaves no timer behind', async () => {
  taken.mib = 950;
  isRefused();
  await guard.shutdown(AbortSignal.abort());
  expect(clock.nextTimerMs).toBeUndefined();
});
