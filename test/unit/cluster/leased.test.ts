import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Leased } from '../../../src/cluster/leases.js';
import type { State } from '../../../src/storage/state.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { openFreshState } from '../../fake/fresh-state.js';
import { RecordingLogger } from '../../fake/recording-logger.js';
import { until } from '../../tool/until.js';

let folder: string;
let state: State;
/** Of each process: its own time stands still while it is suspended. */
let clocks: FakeClock[];
let events: string[];
let startFailures: number;
let names: string[];
let loggers: RecordingLogger[];
const leased: Leased[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'run-bridge-leased-'));
  state = await openFreshState(join(folder, 'state.db'));
  clocks = [new FakeClock(), new FakeClock()];
  events = [];
  startFailures = 0;
  names = ['p0', 'p1'];
  loggers = [new RecordingLogger(), new RecordingLogger()];
});
afterEach(async () => {
  for (const one of leased.splice(0)) await one.shutdown(AbortSignal.abort());
  await state.close();
  await rm(folder, { recursive: true, force: true });
});

async function start(index: number): Promise<void> {
  const part = {
    name: 'part',
    start: async () => {
      if (startFailures-- > 0) throw new Error('not yet');
      events.push(`start ${index}`);
    },
    shutdown: async () => {
      events.push(`end ${index}`);
    },
  };
  const clock = clocks[index] ?? new FakeClock();
  const logger = loggers[index] ?? new RecordingLogger();
  const deps = { leases: state.leases, holder: () => names[index] ?? '', clock, logger };
  const one = new Leased('part', [part], deps);
  leased.push(one);
  await one.start();
}

/** Time goes by for some of the processes until something has happened. */
async function pass(indexes: readonly number[], ...wanted: readonly string[]): Promise<void> {
  await until(wanted.join(', '), async () => {
    for (const index of indexes) clocks[index]?.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
    return JSON.stringify(events) === JSON.stringify(wanted);
  });
}

describe('leased parts', () => {
  it('run in one process, in another one when that is not heard of, and again in the first when it is its turn', async () => {
    await start(0);
    await start(1);
    expect(events).toEqual(['start 0']);
    await pass([1], 'start 0', 'start 1');
    await pass([0], 'start 0', 'start 1', 'end 0');
    await leased[1]?.shutdown(AbortSignal.abort());
    await pass([0], 'start 0', 'start 1', 'end 0', 'end 1', 'start 0');
  });

  it('go on in the only process there is after it came back under another name', async () => {
    await start(0);
    names[0] = 'reborn';
    await pass([0], 'start 0', 'end 0', 'start 0');
  });

  it('are left to another process by one that cannot start them, and that one says so', async () => {
    startFailures = 1;
    await start(0);
    expect(events).toEqual(['end 0']);
    expect(loggers[0]?.lines).toMatchObject([{ level: 'error', fields: { what: 'part', error: 'not yet' } }]);
    await start(1);
    expect(events).toEqual(['end 0', 'start 1']);
  });

  it('are started again after a start that failed', async () => {
    startFailures = 2;
    await start(0);
    await pass([0], 'end 0', 'end 0', 'start 0');
  });
});
