import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FirstFailureWatch } from '../../../src/webhook/first-failures.js';
import type { RunNodes } from '../../../src/webhook/run-details.js';
import { NO_FILTER } from '../../../src/webhook/subscription.js';
import { DETAILS_OF_ONE_ERROR, detailsOfLog } from '../../fake/run-details.js';
import { WebhookBench } from '../../fake/webhook-bench.js';
import { commandNote, type GivenSubscription } from '../../fake/webhook-facts.js';
import { readLog } from '../export/mapping/read-sample.js';

/** A message for each owner, in a chat. */
const CHAT: GivenSubscription = {
  kind: 'slack',
  eventTypes: ['job.run.errored', 'job.run.completed'],
  isPerOwner: true,
};
let real: RunNodes;
let bench: WebhookBench;
beforeAll(async () => {
  real = await detailsOfLog(readLog('samples/build-mixed/otel.jsonl'), { redaction: 'literals' }).readNodes(1, 1);
});
beforeEach(async () => {
  bench = await WebhookBench.open();
  bench.readDetails = async () => DETAILS_OF_ONE_ERROR;
  const [first, second, third] = real.failed.map(({ uniqueId }) => uniqueId);
  const node = { tags: [], group: null, testedId: null, dependsOn: [], checksum: null };
  bench.manifest = new Map([
    [first ?? '', { ...node, owners: ['ana'] }],
    [second ?? '', { ...node, owners: ['ana'] }],
    [third ?? '', { ...node, owners: ['ben'] }],
  ]);
  await bench.endRun('nightly', { verdict: null });
});
afterEach(() => bench.close());

/** So many nodes of the run have failed so far. */
const fail = (count: number) => {
  bench.readNodes = async () => ({ ...real, failed: real.failed.slice(0, count), warned: [] });
};
/** Looks twice, as two processes do, and delivers. */
const look = async () => {
  const { state, selector, clock, logger } = bench;
  const wake = () => bench.dispatcher.wake();
  const watch = new FirstFailureWatch({ db: state.db, events: state.webhookEvents, selector, clock, logger, wake });
  await watch.look();
  await watch.look();
  await bench.pass(0);
};
const end = async (verdict: 'error' | 'success' = 'error') => {
  const scope = { job: 'nightly', environment: 'production', project: 'shop' };
  await bench.state.invocations.note([commandNote(1, { verdict, scope })], bench.clock.nowUnixMs());
  await bench.pass(0);
};
/** What each message was about: its owner, how many nodes, and how it puts it. */
const messages = async (name = 'a') => {
  const events = (await bench.events(name)).filter(({ state }) => state === 'delivered');
  const texts = bench.received.filter(({ path }) => path === `/${name}`).map(({ body }) => body);
  return events.map(({ facts: { selection } }, index) => [
    selection?.owner,
    selection?.nodeIds?.length,
    /is failing|failed/.exec(texts[index] ?? '')?.[0],
  ]);
};

describe('an owner', () => {
  it('is told of the first failure while the run goes on, and of the rest in one list at its end', async () => {
    await bench.subscribe('a', CHAT);
    fail(0);
    await look();
    expect(await messages()).toEqual([]);
    fail(1);
    await look();
    expect(await messages()).toEqual([['ana', 1, 'is failing']]);
    fail(2);
    await look();
    expect(await messages()).toHaveLength(1);
    fail(3);
    await look();
    expect(await messages()).toEqual([
      ['ana', 1, 'is failing'],
      ['ben', 1, 'is failing'],
    ]);
    await end();
    expect((await messages()).slice(2)).toEqual([['ana', 1, 'failed']]);
    await look();
    expect(await messages()).toHaveLength(3);
  });

  it('is told at the end where the run could not be read while it went on', async () => {
    await bench.subscribe('a', CHAT);
    bench.readNodes = () => Promise.reject(new Error('its record log is away'));
    await look();
    fail(1);
    await end();
    expect(await messages()).toEqual([['ana', 1, 'failed']]);
  });

  it('is told nothing more at the end where that was all', async () => {
    await bench.subscribe('a', CHAT);
    fail(1);
    await look();
    await end();
    expect(await messages()).toEqual([['ana', 1, 'is failing']]);
    const [, last] = await bench.events('a');
    expect(last).toMatchObject({ state: 'filtered', filteredReason: 'what failed was reported while the run went on' });
  });

  it('is told at the end of errors without a node, also where all nodes were reported', async () => {
    await bench.subscribe('a', CHAT);
    fail(1);
    await look();
    bench.readNodes = async () => ({ failed: real.failed.slice(0, 2), warned: [], otherErrors: ['on-run-end failed'] });
    bench.manifest = new Map(
      [...(bench.manifest ?? [])].map(([id, node], index) => [id, index === 1 ? { ...node, owners: ['ben'] } : node]),
    );
    await end();
    expect((await messages()).slice(1)).toEqual([
      ['ana', 0, 'failed'],
      ['ben', 1, 'failed'],
    ]);
  });

  it('is told at the end of all that could not be delivered before', async () => {
    bench.answer = () => ({ status: 503 });
    await bench.subscribe('a', CHAT);
    fail(1);
    await look();
    for (let retry = 0; retry < 4; retry += 1) await bench.pass(7_200_000);
    expect(await bench.events('a')).toMatchObject([{ state: 'failed' }]);
    bench.answer = () => ({ status: 200 });
    bench.received.splice(0);
    await end();
    expect(await messages()).toEqual([['ana', 1, 'failed']]);
  });

  it('is told nothing of an imported run without an end, until it turns out to go on', async () => {
    await bench.subscribe('a', CHAT);
    fail(1);
    const note = async (endedUnixMs: number) => {
      const imported = commandNote(1, { verdict: null, isSaved: false, importBeganUnixMs: 2_001, endedUnixMs });
      await bench.state.invocations.note([imported], bench.clock.nowUnixMs());
    };
    await note(2_000);
    await look();
    expect(await bench.events('a')).toEqual([]);
    await note(5_000);
    await look();
    expect(await messages()).toEqual([['ana', 1, 'is failing']]);
  });

  it.each<[string, GivenSubscription]>([
    ['all failures in one message', { isPerOwner: false }],
    ['no repeated failures', { holdsRepeats: true }],
    ['payloads for programs', { kind: 'http' }],
    ['ends alone', { eventTypes: ['job.run.completed'] }],
    ['other environments', { filter: { ...NO_FILTER, environments: ['staging'] } }],
    ['other models', { filter: { ...NO_FILTER, models: ['none'] } }],
  ])('is told nothing while the run goes on by a subscription to %s', async (_what, given) => {
    await bench.subscribe('a', { ...CHAT, ...given });
    fail(3);
    await look();
    expect(await bench.events('a')).toEqual([]);
  });
});
