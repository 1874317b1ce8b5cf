import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runInProcess } from '../../fake/run-in-process.js';
import { commandNote, eventsOf, type FeatureState, openFeatureState, subscription } from '../../fake/webhook-facts.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-webhook-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

const webhook = (...args: readonly string[]) =>
  runInProcess(['webhook', ...args, '--data-dir', join(dir, 'data')], dir);

async function withState<T>(body: (state: FeatureState) => Promise<T>): Promise<T> {
  mkdirSync(join(dir, 'data'), { recursive: true });
  const state = await openFeatureState(join(dir, 'data', 'state.db'));
  try {
    return await body(state);
  } finally {
    await state.close();
  }
}

/** A subscription that was archived, with two events that were skipped. */
const fill = () =>
  withState(async (state) => {
    await state.subscriptions.add(subscription('a', { state: 'archived', archiveReason: 'it is gone' }));
    await state.invocations.note([commandNote(1)], 4_000);
    return (await eventsOf(state, 'wsu_a')).map(({ id }) => id);
  });
const states = () => withState(async (state) => (await eventsOf(state, 'wsu_a')).map((one) => one.state));

describe('run-bridge webhook', () => {
  it('lists subscriptions and why they were archived, and events', async () => {
    const [first] = await fill();
    expect((await webhook('list')).stdout).toMatch(
      /^ID +NAME +TYPE +STATE +LAST +DISPATCHED +TROUBLE\nwsu_a +a +http +archived +- +never +it is gone\n$/,
    );
    const { stdout } = await webhook('events', 'wsu_a');
    expect(stdout).toMatch(/^ID .*\nwev_.*job\.run\.completed .* skipped +0 +-\nwev_.*job\.run\.started .*\n$/);
    expect(stdout).toContain(first);
  });

  it('replays one event', async () => {
    const [first = ''] = await fill();
    expect(await webhook('replay', first)).toMatchObject({
      exitCode: 0,
      stderr: expect.stringMatching(/^1 event is due/),
    });
    expect(await states()).toEqual(['pending', 'skipped']);
    expect(await webhook('replay', first)).toMatchObject({ exitCode: 1 });
  });

  it('replays all that failed or were skipped since a time, of one subscription or of all', async () => {
    await fill();
    expect((await webhook('replay', '--since', '1h', '--subscription', 'wsu_b')).exitCode).toBe(1);
    expect((await webhook('replay', '--since', '1h', '--account', '7')).stderr).toMatch(/^0 events are due/);
    expect((await webhook('replay', '--since', '1h', '--subscription', 'wsu_a')).stderr).toMatch(/^2 events are due/);
    expect(await states()).toEqual(['pending', 'pending']);
  });

  it('is answered when there is nothing, and makes nothing', async () => {
    expect(await webhook('list')).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('has no webhooks') });
  });

  it.each([
    [['repaly'], /did you mean replay\?$/],
    [['list', 'x'], /takes no "x"$/],
    [['list', '--since', '1h'], /belong to run-bridge webhook replay/],
    [['events'], /give its id, wsu_…/],
    [['replay'], /give the id of an event, wev_…, or --since/],
    [['replay', 'wev_1', '--since', '1h'], /or --since/],
    [['replay', '--since', '8d'], /"8d" is not a time up to 7d/],
    [['list', '--account', 'x'], /"x" is not the number of an account$/],
  ])('says what is wrong with %j', async (args, message) => {
    const { exitCode, stderr } = await webhook(...args);
    expect([exitCode, stderr.trim()]).toEqual([2, expect.stringMatching(message)]);
  });

  it('leaves the account of others alone', async () => {
    await fill();
    expect((await webhook('events', 'wsu_a', '--account', '7')).exitCode).toBe(1);
  });
});
