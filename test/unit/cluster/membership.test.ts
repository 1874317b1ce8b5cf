import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Membership, ProcessIdentity } from '../../../src/cluster/membership.js';
import { openSqliteState } from '../../../src/storage/open-sqlite-state.js';
import type { State } from '../../../src/storage/state.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { RecordingLogger } from '../../fake/recording-logger.js';
import { until } from '../../tool/until.js';

let folder: string;
let state: State;
let clock: FakeClock;
let rebornCount: number;
let idCount: number;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-membership-'));
  state = await openSqliteState(join(folder, 'state.db'));
  clock = new FakeClock();
  rebornCount = 0;
  idCount = 0;
});
afterEach(async () => {
  await state.close();
  rmSync(folder, { recursive: true });
});

function membership(): Membership {
  const identity = new ProcessIdentity('folder', () => {
    idCount += 1;
    return `life ${idCount}`;
  });
  const onReborn = () => {
    rebornCount += 1;
  };
  return new Membership({
    ...{ members: state.cluster.members, folder, identity, onReborn, clock, logger: new RecordingLogger() },
  });
}

describe('the membership of a process', () => {
  it('begins with the start and is over with the end', async () => {
    const one = membership();
    expect(one.health().ready).toBe(false);
    await one.start();
    expect(one.health().ready).toBe(true);
    expect(one.findShortage()).toBeUndefined();
    expect(await state.cluster.members.listAlive()).toEqual(['life 1']);
    await one.shutdown();
    expect(await state.cluster.members.listAlive()).toEqual([]);
  });

  it('frees what the last process of its folder had, at once', async () => {
    await membership().start();
    const next = membership();
    await next.start();
    expect(await state.cluster.members.listAlive()).toEqual(['life 2']);
    await next.shutdown();
  });

  it('goes on under another id after others found it dead', async () => {
    const one = membership();
    await one.start();
    await state.cluster.members.leave('life 1');
    clock.advance(5_000);
    await until('the next life', async () => (await state.cluster.members.listAlive()).length > 0);
    expect(await state.cluster.members.listAlive()).toEqual(['life 2']);
    expect(rebornCount).toBe(1);
    await until('the membership', () => one.health().ready);
    await one.shutdown();
  });

  it('finds others dead only while it is heard of itself', async () => {
    const one = membership();
    await one.start();
    await state.cluster.members.join('other', -1);
    // As after a suspension: all timers are late, and its own sign of life comes first.
    clock.advance(2_000);
    await until('the burial', async () => (await state.cluster.members.listAlive()).length === 1);
    expect(await state.cluster.members.listAlive()).toEqual(['life 1']);
    await one.shutdown();
  });
});
