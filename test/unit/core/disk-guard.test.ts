import { beforeEach, describe, expect, test } from 'vitest';
import { DiskGuard, type DiskGuardConfig } from '../../../src/core/guard.js';
import { Health } from '../../../src/core/health.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { RecordingLogger } from '../../fake/recording-logger.js';

const MIB = 2 ** 20;
const GIB = 2 ** 30;

let clock: FakeClock;
let logger: RecordingLogger;
let health: Health;
/** What the file system and the folder say. */
let disk: { totalBytes: number; freeBytes: number; sizeBytes: number; failure: string | undefined };

beforeEach(() => {
  clock = new FakeClock();
  logger = new RecordingLogger();
  health = new Health();
  disk = { totalBytes: 100 * GIB, freeBytes: 50 * GIB, sizeBytes: 0, failure: undefined };
});

async function start(config: Partial<DiskGuardConfig> = {}): Promise<DiskGuard> {
  const folder = {
    readSpace: async () => {
      if (disk.failure !== undefined) throw new Error(disk.failure);
      return disk;
    },
    readSize: async () => disk.sizeBytes,
  };
  const limits = { path: '/data', maxBytes: null, reserveBytes: null, ...config };
  const guard = new DiskGuard(limits, { folder, clock, logger, health });
  await guard.start();
  await settle();
  return guard;
}

/** Lets everything go on that waits for nothing but its turn. */
async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

async function pass(ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 1_000) {
    clock.advance(Math.min(1_000, ms - passedMs));
    await settle();
  }
}

describe('the reserve', () => {
  test.each([
    ['1 GiB of a large file system', 100 * GIB, GIB],
    ['5 % of a small one', GIB, 0.05 * GIB],
  ])('is %s by default', async (_name, totalBytes, reserveBytes) => {
    Object.assign(disk, { totalBytes, freeBytes: reserveBytes + 3_001 });
    const guard = await start();
    expect(guard.findShortage(1_000)).toBeUndefined();
    expect(guard.findShortage(1_001)).toMatchObject({ retryAfterMs: 5_000 });
  });

  test('is as large as it is said to be, and off when it is 0', async () => {
    disk.freeBytes = 2 * GIB;
    expect((await start({ reserveBytes: 3 * GIB })).findShortage(0)).toBeDefined();
    disk.freeBytes = 0;
    expect((await start({ reserveBytes: 0 })).findShortage(0)).toBeUndefined();
  });

  test('counts bodies taken since the last looks three times, until they are on disk', async () => {
    disk.freeBytes = GIB + 30 * MIB;
    const guard = await start();
    guard.onBody(9 * MIB);
    expect(guard.findShortage(MIB - 1)).toBeUndefined();
    expect(guard.findShortage(2 * MIB)).toBeDefined();
    disk.freeBytes = GIB + GIB;
    await pass(2_000);
    expect(guard.findShortage(10 * MIB)).toBeUndefined();
  });

  test('is touched again when a quarter more than it is free', async () => {
    disk.freeBytes = GIB - 1;
    const guard = await start();
    disk.freeBytes = 1.2 * GIB;
    await pass(1_000);
    expect(guard.findShortage(0)).toBeDefined();
    disk.freeBytes = 1.3 * GIB;
    await pass(1_000);
    expect(guard.findShortage(0)).toBeUndefined();
  });

  test('is reported once, though there is room above it for less than the body that was refused', async () => {
    disk.freeBytes = 1.3 * GIB;
    const guard = await start();
    for (let second = 0; second < 5; second++) {
      expect(guard.findShortage(GIB / 6)).toBeDefined();
      await pass(1_000);
    }
    expect(logger.lines).toHaveLength(1);
  });

  test('does not matter where the file system does not say how large it is', async () => {
    Object.assign(disk, { totalBytes: 0, freeBytes: 0 });
    expect((await start()).findShortage(0)).toBeUndefined();
  });
});

describe('the limit of the folder', () => {
  test('holds for what is there already and what is taken since', async () => {
    disk.sizeBytes = 90 * MIB;
    const guard = await start({ maxBytes: 100 * MIB });
    expect(guard.findShortage(MIB)).toBeUndefined();
    guard.onBody(4 * MIB);
    expect(guard.findShortage(0)?.message).toBe(
      'The data folder /data has reached its limit (102 MiB of 100 MiB): remove runs that are no longer needed; --max-disk sets the limit.',
    );
  });

  test('lets bodies in again soon after runs were removed', async () => {
    disk.sizeBytes = 100 * MIB;
    const guard = await start({ maxBytes: 100 * MIB });
    expect(guard.findShortage(0)).toBeDefined();
    disk.sizeBytes = 96 * MIB;
    await pass(3_000);
    expect(guard.findShortage(0)).toBeDefined();
    disk.sizeBytes = 90 * MIB;
    await pass(3_000);
    expect(guard.findShortage(0)).toBeUndefined();
  });

  test('is reported once, though the folder has room for less than the body that was refused', async () => {
    disk.sizeBytes = 80 * MIB;
    const guard = await start({ maxBytes: 100 * MIB });
    for (let second = 0; second < 5; second++) {
      expect(guard.findShortage(8 * MIB)).toBeDefined();
      await pass(1_000);
    }
    expect(guard.findShortage(MIB)).toBeDefined();
    expect(logger.lines).toHaveLength(1);
    disk.sizeBytes = 70 * MIB;
    await pass(3_000);
    expect(guard.findShortage(8 * MIB)).toBeUndefined();
    expect(logger.lines).toHaveLength(2);
  });

  test('holds up nobody for a body that is more than a quarter of it', async () => {
    disk.sizeBytes = 70 * MIB;
    const guard = await start({ maxBytes: 100 * MIB });
    expect(guard.findShortage(50 * MIB)).toBeDefined();
    await pass(1_000);
    expect(guard.findShortage(MIB)).toBeUndefined();
  });
});

describe('a data folder that cannot be used', () => {
  test('is refused with the reason, until it is back', async () => {
    const guard = await start();
    disk.failure = 'it is gone';
    await pass(1_000);
    expect(guard.findShortage(0)?.message).toBe(
      'The data folder /data cannot be used (it is gone): bring it back; nothing is accepted until then.',
    );
    disk.failure = undefined;
    await pass(1_000);
    expect(guard.findShortage(0)).toBeUndefined();
  });
});

test('the log says once that refusing begins, once that it ends, and how many were refused', async () => {
  disk.freeBytes = 0;
  const guard = await start();
  for (let i = 0; i < 5; i++) guard.findShortage(0);
  await pass(3_000);
  disk.freeBytes = 50 * GIB;
  await pass(2_000);
  expect(logger.lines).toEqual([
    expect.objectContaining({
      level: 'warn',
      fields: expect.objectContaining({ reason: 'disk reserve', detail: expect.stringContaining('--disk-reserve') }),
    }),
    expect.objectContaining({
      level: 'info',
      fields: expect.objectContaining({ reason: 'disk reserve', refusedCount: 5, lastedMs: 4_000 }),
    }),
  ]);
});

test('health has the figures, and is not ready while bodies are refused', async () => {
  disk.sizeBytes = 5;
  await start({ maxBytes: 10 * GIB });
  const check = () => health.report().checks[0]?.state;
  const figures = { freeBytes: 50 * GIB, totalBytes: 100 * GIB, reserveBytes: GIB };
  const limits = { usedBytes: 5, limitBytes: 10 * GIB };
  expect(check()).toEqual({ ready: true, details: { ...figures, ...limits } });
  disk.freeBytes = 100 * MIB;
  await pass(1_000);
  expect(check()).toMatchObject({
    ready: false,
    reason:
      'The disk of /data is nearly full (100 MiB are free, 1 GiB are kept in reserve): free some space; --disk-reserve sets the reserve.',
    details: { refusedCount: 0 },
  });
});

test('the end leaves no timer behind', async () => {
  const guard = await start();
  await guard.shutdown(AbortSignal.abort());
  expect(clock.nextTimerMs).toBeUndefined();
});
