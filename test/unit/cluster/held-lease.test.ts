import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { takeLease } from '../../../src/cluster/leases.js';
import { LEASE_MS, LEASE_RENEW_MS, type LeaseStore } from '../../../src/storage/lease-store.js';
import type { State } from '../../../src/storage/state.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { openFreshState } from '../../fake/fresh-state.js';
import { RecordingLogger } from '../../fake/recording-logger.js';
import { untilTurned } from '../../tool/until.js';

let folder: string;
let state: State;
let clock: FakeClock;
let logger: RecordingLogger;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'run-bridge-held-'));
  state = await openFreshState(join(folder, 'state.db'));
  clock = new FakeClock();
  logger = new RecordingLogger();
});
afterEach(async () => {
  await state.close();
  await rm(folder, { recursive: true });
});

const take = (holder: string, leases: Pick<LeaseStore, 'take' | 'release'> = state.leases) =>
  takeLease('work', holder, { leases, clock, logger });

/** Time goes by, and whatever fell due is done. */
async function pass(byMs: number): Promise<void> {
  clock.advance(byMs);
  await untilTurned(() => clock.nextTimerMs !== undefined);
}

describe('a lease that a command holds', () => {
  it('is had by one at a time, and free at once when it is let go of', async () => {
    const first = await take('first');
    expect(await take('second')).toBeUndefined();
    await first?.release();
    const second = await take('second');
    expect(second).toBeDefined();
    await second?.release();
  });

  it('is held on to after a renewal that failed', async () => {
    let failures = 1;
    const leases: Pick<LeaseStore, 'take' | 'release'> = {
      take: async (...asked) => {
        if (clock.monotonicMs() > 0 && failures-- > 0) throw new Error('the database is away');
        return state.leases.take(...asked);
      },
      release: (...asked) => state.leases.release(...asked),
    };
    const held = await take('first', leases);
    for (let passedMs = 0; passedMs <= LEASE_MS; passedMs += LEASE_RENEW_MS) await pass(LEASE_RENEW_MS);
    expect(logger.lines).toMatchObject([{ level: 'warn', fields: { what: 'work', error: 'the database is away' } }]);
    expect(await take('second')).toBeUndefined();
    await held?.release();
  });

  it('is said to be lost when another one has it, and had again after that one', async () => {
    const held = await take('first');
    await state.leases.take('work', 'second', clock.nowUnixMs() + LEASE_MS, LEASE_MS);
    await pass(LEASE_RENEW_MS);
    await pass(LEASE_RENEW_MS);
    expect(logger.lines).toMatchObject([{ level: 'warn', fields: { what: 'work', holder: 'second' } }]);
    await state.leases.release('work', 'second');
    await pass(LEASE_RENEW_MS);
    expect(await take('third')).toBeUndefined();
    await held?.release();
  });
});
