import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DatabaseLease } from '../../../src/cluster/leases.js';
import type { State } from '../../../src/storage/state.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { openFreshState } from '../../fake/fresh-state.js';
import { RecordingLogger } from '../../fake/recording-logger.js';
import { until } from '../../tool/until.js';

let folders: string[];
let state: State;
let clock: FakeClock;
beforeEach(async () => {
  folders = await Promise.all(['a', 'b'].map(() => mkdtemp(join(tmpdir(), 'run-bridge-lease-'))));
  state = await openFreshState(join(folders[0] ?? '', 'state.db'));
  clock = new FakeClock();
});
afterEach(async () => {
  await state.close();
  for (const folder of folders) await rm(folder, { recursive: true });
});

function take(index: number): Promise<DatabaseLease> {
  const deps = { leases: state.leases, clock, logger: new RecordingLogger() };
  return DatabaseLease.take(folders[index] ?? '', deps);
}

/** Lets time pass while somebody waits. */
async function passing<T>(waiting: Promise<T>): Promise<T> {
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  waiting.then(over, over);
  await until('the wait to be over', async () => {
    clock.advance(500);
    await new Promise((resolve) => setImmediate(resolve));
    return isOver;
  });
  return waiting;
}

describe('the lease of a database', () => {
  it('is refused while another data folder has it, and says what to do', async () => {
    const first = await take(0);
    await expect(passing(take(1))).rejects.toMatchObject({
      name: 'StoreError',
      code: 'locked',
      message: expect.stringContaining('in use by another run-bridge'),
    });
    expect(first.findShortage()).toBeUndefined();
    await first.release();
  });

  it('is had at once by the same data folder after a crash, and by another one after it expired', async () => {
    await state.leases.take('bridge', 'a program that died', clock.nowUnixMs(), 15_000);
    const first = await passing(take(0));
    const again = await take(0);
    expect(again.health()).toEqual({ ready: true });
    await first.release();
    await again.release();
    await (await take(1)).release();
  });

  it('stops a program that was suspended so long that another one took it, until that one ends', async () => {
    const first = await take(0);
    await state.leases.take('bridge', 'another', clock.nowUnixMs() + 20_000, 15_000);
    await until('the loss to be noticed', async () => {
      clock.advance(5_000);
      await new Promise((resolve) => setImmediate(resolve));
      return first.findShortage() !== undefined;
    });
    expect(first.health()).toMatchObject({ ready: false });
    await state.leases.release('bridge', 'another');
    await until('the lease to be had again', async () => {
      clock.advance(5_000);
      await new Promise((resolve) => setImmediate(resolve));
      return first.findShortage() === undefined;
    });
    await first.release();
  });
});
