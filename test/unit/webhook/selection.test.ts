import { readFileSync } from 'node:fs';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Manifest, type ManifestNode, ManifestReader, readManifest } from '../../../src/storage/manifest.js';
import type { EventSelection } from '../../../src/webhook/event.js';
import type { RunNodes } from '../../../src/webhook/run-details.js';
import { NO_FILTER, type WebhookFilter } from '../../../src/webhook/subscription.js';
import { DETAILS_OF_ONE_ERROR, detailsOfLog } from '../../fake/run-details.js';
import { WebhookBench } from '../../fake/webhook-bench.js';
import { type GivenSubscription, TEST_BOX } from '../../fake/webhook-facts.js';
import { readLog } from '../export/mapping/read-sample.js';

const HOUR_MS = 3_600_000;
const FILE = readFileSync('test/fixture/manifest.json');
const BROKEN = 'model.shop.broken';
const UNIT_TEST = 'unit_test.shop.ut_target.ut_wrong';
const STRICT = 'test.shop.status_strict.0c25ec6282';
const WARNING = 'test.shop.orders_customer_warn.d69b09940d';

async function* chunksOf(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

describe('a manifest', () => {
  it('is read the same in pieces of any size: tags, owners, groups, and what tests are of', async () => {
    const whole = await readManifest(chunksOf(FILE, FILE.length));
    for (const size of [1, 7, 64, 1_000]) expect(await readManifest(chunksOf(FILE, size))).toEqual(whole);
    const parsed: { readonly nodes: object; readonly sources: object; readonly unit_tests: object } = JSON.parse(
      FILE.toString(),
    );
    const ids = [parsed.nodes, parsed.sources, parsed.unit_tests].flatMap(Object.keys);
    expect([...whole.keys()].sort()).toEqual(ids.sort());
    expect(whole.get(BROKEN)).toMatchObject({ tags: ['bad'], owners: ['Fin Team'], group: 'finance', testedId: null });
    expect(whole.get(STRICT)).toMatchObject({ tags: ['bad'], testedId: 'model.shop.orders_inc' });
    expect(whole.get(UNIT_TEST)).toMatchObject({ testedId: 'model.shop.ut_target' });
  });

  it('names owners by meta, as a text, a list or an object, also below config, before those of the group', async () => {
    const node = (meta: unknown, config: unknown = {}) => ({ meta, config, group: 'g' });
    const text = JSON.stringify({
      groups: { 'group.a.g': { name: 'g', owner: { email: 'group@example.com' } } },
      nodes: {
        text: node({ owner: 'ana' }),
        list: node({ owner: ['ana', { name: 'Ben' }] }),
        config: node({}, { meta: { owner: { email: 'c@example.com' } } }),
        'odd "}{" \\ name': node({}),
      },
    });
    const owners = [...(await readManifest(chunksOf(Buffer.from(text), 5)))].map(([id, one]) => [id, one.owners]);
    expect(owners).toEqual([
      ['text', ['ana']],
      ['list', ['ana', 'Ben']],
      ['config', ['c@example.com']],
      ['odd "}{" \\ name', ['group@example.com']],
    ]);
  });

  it.each(['', '[]', '{"nodes":{"a":{"tags":["x"]},"b":{', '{"nodes":{"a":{]}}', 'no JSON at all'])(
    'that is damaged gives what stands before the damage, and fails nothing: %s',
    async (text) => {
      const found = await readManifest(chunksOf(Buffer.from(text), 3));
      expect([...found.keys()]).toEqual(text.includes('"x"') ? ['a'] : []);
    },
  );

  it('is that of the run, else of the latest run before it that has one', async () => {
    const asked: string[] = [];
    const reader = new ManifestReader({
      catalog: {
        stepsOf: async (_account, [runId]) => [{ index: 1, runId } as never],
        listRuns: async () => ({ items: [9, 8, 7, 6].map((id) => ({ id }) as never), totalCount: 4 }),
      },
      openArtifacts: async () => ({
        stat: async ({ runId }) => {
          asked.push(`stat ${runId}`);
          return runId === 6 ? ({ etag: 'e' } as never) : undefined;
        },
        open: async ({ runId }) => {
          asked.push(`open ${runId}`);
          return { content: chunksOf(FILE, 100) } as never;
        },
      }),
    });
    const run = { accountId: 1, runId: 8, jobId: 1, environmentId: 1 };
    expect((await reader.read(run))?.has(BROKEN)).toBe(true);
    expect(asked).toEqual(['stat 8', 'stat 7', 'stat 6', 'open 6']);
    await reader.read(run);
    expect(asked.filter((one) => one.startsWith('open'))).toHaveLength(1);
  });
});

describe('who is notified of a run', () => {
  const NONE: RunNodes = { failed: [], warned: [], otherErrors: [] };
  let bench: WebhookBench;
  let real: RunNodes;
  let manifest: Manifest;
  beforeAll(async () => {
    real = await detailsOfLog(readLog('samples/build-mixed/otel.jsonl'), { redaction: 'literals' }).readNodes(1, 1);
    manifest = await readManifest(chunksOf(FILE, FILE.length));
  });
  beforeEach(async () => {
    bench = await WebhookBench.open();
    bench.readNodes = async () => real;
    bench.manifest = manifest;
  });
  afterEach(() => bench.close());

  const errored = (statusMessage = 'Boom') => bench.endRun('nightly', { verdict: 'error', statusMessage });
  const filter = (given: Partial<WebhookFilter>) => ({ filter: { ...NO_FILTER, ...given } });
  const selections = async (name: string): Promise<readonly (EventSelection | undefined)[]> =>
    (await bench.events(name)).filter(({ state }) => state === 'delivered').map(({ facts }) => facts.selection);
  const nodesOf = async (name: string) => (await selections(name)).map((one) => one?.nodeIds?.toSorted());

  it.each<[string, Partial<WebhookFilter>, readonly string[] | 'filtered']>([
    ['a tag', { tags: ['bad'] }, [BROKEN, STRICT, WARNING, UNIT_TEST]],
    ['a tag that none has', { tags: ['good'] }, 'filtered'],
    ['a group', { groups: ['finance'] }, [BROKEN, STRICT, UNIT_TEST]],
    ['an owner, in any case', { owners: ['FIN team'] }, [BROKEN, STRICT, UNIT_TEST]],
    ['an owner of nothing here', { owners: ['ana@example.com'] }, 'filtered'],
    ['a name', { models: ['broken'] }, [BROKEN]],
    ['a pattern of names', { models: ['br*k*'] }, [BROKEN]],
    ['a unique id', { models: ['model.shop.*'] }, [BROKEN, STRICT, WARNING, UNIT_TEST]],
    ['the model that a test is of', { models: ['ut_target'] }, [UNIT_TEST]],
    ['a pattern that nothing fits', { models: ['brok', '*x'] }, 'filtered'],
    ['two filters, both of which have to fit', { groups: ['finance'], models: ['*strict*'] }, [STRICT]],
  ])('goes by %s', async (_of, given, expected) => {
    await bench.subscribe('a', filter(given));
    await errored();
    await bench.pass(0);
    if (expected === 'filtered') {
      expect(bench.received).toEqual([]);
      const [event] = await bench.events('a');
      expect(event).toMatchObject({ state: 'filtered', filteredReason: expect.stringContaining('match the filters') });
      return;
    }
    expect(await nodesOf('a')).toEqual([[...expected].sort()]);
    const [selection] = await selections('a');
    expect(selection?.otherCount ?? 0).toBe(4 - expected.length);
  });

  it.each<[string, readonly string[]]>([
    ['fact', ['model.shop.fact.v2']],
    ['fact.v2', ['model.shop.fact.v2']],
    ['dim', ['unit_test.shop.dim.dim_is_b.v1']],
    ['dim.v1', ['unit_test.shop.dim.dim_is_b.v1']],
  ])('goes by the name of a model that has versions, and by that of one of these: %s', async (name, expected) => {
    bench.readNodes = async () =>
      detailsOfLog(readLog('versions/otel.jsonl'), { redaction: 'literals' }).readNodes(1, 1);
    const node: ManifestNode = { tags: [], owners: [], group: null, testedId: null, dependsOn: [], checksum: null };
    bench.manifest = new Map([
      ['model.shop.fact.v2', node],
      ['unit_test.shop.dim.dim_is_b.v1', { ...node, testedId: 'model.shop.dim.v1' }],
    ]);
    await bench.subscribe('a', filter({ models: [name] }));
    await errored();
    await bench.pass(0);
    expect(await nodesOf('a')).toEqual([expected]);
  });

  it('is everybody, as long as no manifest is known: a failure is not silent', async () => {
    bench.manifest = undefined;
    await bench.subscribe('tag', filter({ tags: ['good'] }));
    await bench.subscribe('owner', filter({ owners: ['ana'] }));
    await bench.subscribe('name', filter({ models: ['other'] }));
    await errored();
    await bench.pass(0);
    for (const name of ['tag', 'owner'])
      expect(await nodesOf(name)).toEqual([[BROKEN, STRICT, WARNING, UNIT_TEST].sort()]);
    // A test may be of any model, the model that failed has its name.
    expect(await nodesOf('name')).toEqual([[STRICT, WARNING, UNIT_TEST].sort()]);
  });

  it('is everybody, where a failure names no node', async () => {
    bench.readNodes = async () => ({ ...NONE, otherErrors: ['cannot parse'] });
    await bench.subscribe('a', filter({ owners: ['ana'] }));
    await errored();
    await bench.pass(0);
    expect(bench.received).toHaveLength(1);
  });

  it('goes by verdict: a run that succeeded has warned where a test did', async () => {
    for (const verdict of ['success', 'warned', 'failed', 'canceled', 'recovered'] as const)
      await bench.subscribe(verdict, filter({ verdicts: [verdict] }));
    const statuses = async () => {
      await bench.pass(0);
      return bench.received
        .splice(0)
        .map(({ path }) => path.slice(1))
        .sort();
    };
    bench.readNodes = async () => ({ ...NONE, warned: real.warned });
    await bench.endRun();
    expect(await statuses()).toEqual(['warned']);
    bench.readNodes = async () => real;
    await errored();
    expect(await statuses()).toEqual(['failed']);
    await bench.endRun('nightly', { verdict: 'canceled' });
    expect(await statuses()).toEqual(['canceled']);
    bench.readNodes = async () => NONE;
    await bench.endRun();
    expect(await statuses()).toEqual(['recovered', 'success']);
  });

  it('is notified that it is over, where it was notified of the failure', async () => {
    await bench.subscribe('finance', filter({ groups: ['finance'] }));
    await bench.subscribe('others', filter({ groups: ['sales'] }));
    await errored();
    await bench.pass(0);
    bench.readNodes = async () => NONE;
    await bench.endRun();
    await bench.endRun();
    await bench.pass(0);
    expect(bench.received.map(({ path, body }) => [path, JSON.parse(body).data.runStatus])).toEqual([
      ['/finance', 'Errored'],
      ['/finance', 'Success'],
    ]);
    expect((await bench.events('others')).map(({ state }) => state)).toEqual(['filtered', 'filtered', 'filtered']);
  });

  it('is notified that it is over, also where nodes of others still warn', async () => {
    await bench.subscribe('broken', filter({ models: ['broken'] }));
    await errored();
    await bench.pass(0);
    bench.readNodes = async () => ({ ...NONE, warned: real.warned });
    await bench.endRun();
    await bench.endRun();
    await bench.pass(0);
    expect((await bench.events('broken')).map(({ state, filteredReason }) => [state, filteredReason])).toEqual([
      ['delivered', null],
      ['delivered', null],
      ['filtered', 'none of the nodes that failed or warn match the filters'],
    ]);
  });

  it('gets the failures of each owner apart, each in an event of its own', async () => {
    bench.manifest = new Map(manifest).set(BROKEN, {
      ...{ tags: [], owners: ['ana'], group: null, testedId: null, dependsOn: [], checksum: null },
    });
    await bench.subscribe('a', { isPerOwner: true });
    await bench.subscribe('ana', { isPerOwner: true, ...filter({ owners: ['ana'] }) });
    await errored();
    await bench.pass(0);
    const parts = (await selections('a')).map((one) => [one?.owner, one?.nodeIds?.toSorted()]);
    expect(parts).toEqual([
      ['ana', [BROKEN]],
      ['Fin Team', [STRICT, UNIT_TEST].sort()],
    ]);
    expect(new Set((await bench.events('a')).map(({ id }) => id)).size).toBe(2);
    expect((await selections('ana')).map((one) => one?.owner)).toEqual(['ana']);
  });

  it('is told of a failure of another project apart, where repeats are held back', async () => {
    await bench.subscribe('a', { holdsRepeats: true });
    const notified: number[] = [];
    for (const project of ['shop', 'other', 'shop', 'other']) {
      bench.readNodes = async () => ({ ...real, failed: project === 'shop' ? real.failed : real.failed.slice(1) });
      await bench.endRun('nightly', {
        verdict: 'error',
        scope: { job: 'nightly', environment: 'production', project },
      });
      await bench.pass(0);
      notified.push(bench.received.splice(0).length);
    }
    expect(notified).toEqual([1, 1, 0, 0]);
  });

  it('hears of the same failure once a day, of another one at once, and of one after a success again', async () => {
    await bench.subscribe('a', { holdsRepeats: true });
    const count = async () => {
      await bench.pass(0);
      return bench.received.splice(0).length;
    };
    await errored();
    expect(await count()).toBe(1);
    await errored();
    expect(await count()).toBe(0);
    const [, held] = await bench.events('a');
    expect(held).toMatchObject({ state: 'filtered', filteredReason: expect.stringContaining('less than a day ago') });
    // Numbers in errors differ from run to run.
    const renumbered = real.failed.map((node) => ({ ...node, message: node.message?.replace('12', '77') ?? null }));
    bench.readNodes = async () => ({ ...real, failed: renumbered });
    await errored();
    expect(await count()).toBe(0);
    bench.readNodes = async () => ({ ...real, failed: real.failed.slice(1) });
    await errored();
    expect(await count()).toBe(1);
    await bench.pass(25 * HOUR_MS);
    await errored();
    expect(await count()).toBe(1);
    await bench.endRun();
    await errored();
    expect(await count()).toBe(2);
  });

  const FAILED = { verdict: 'error', statusMessage: 'Boom' } as const;
  const OWNER = filter({ owners: ['ana'] });
  it.each<[string, GivenSubscription]>([
    ['nothing', {}],
    ['a model', filter({ models: ['broken'] })],
    ['an owner', OWNER],
    ['an owner, of each of whom apart', { ...OWNER, isPerOwner: true }],
    ['failures alone', filter({ verdicts: ['failed'] })],
    ['the status of failures alone', filter({ statuses: [20] })],
    ['first failures of a model', filter({ transitions: ['first_failure'], models: ['broken'] })],
    ['a model, and what differs from the last failure', { ...filter({ models: ['broken'] }), holdsRepeats: true }],
    ['the events of errors alone', { ...filter({ models: ['broken'] }), eventTypes: ['job.run.errored'] }],
  ])('leaves no incident of PagerDuty open that is over, of a subscription that asks for %s', async (of, given) => {
    const own = real.failed.filter(({ uniqueId }) => uniqueId === BROKEN);
    const others = real.failed.filter(({ uniqueId }) => uniqueId !== BROKEN);
    bench.manifest = new Map(manifest).set(BROKEN, {
      tags: [],
      owners: ['ana'],
      group: null,
      testedId: null,
      dependsOn: [],
      checksum: null,
    });
    await bench.subscribe('a', {
      ...{ kind: 'pagerduty', sealedRoutingKey: TEST_BOX.seal('key', 'wsu_a') },
      ...{ eventTypes: ['job.run.errored', 'job.run.completed'], ...given },
    });
    bench.readDetails = async () => DETAILS_OF_ONE_ERROR;
    const open = new Set<string>();
    const end = async (nodes: Partial<RunNodes>, given: Parameters<typeof bench.endRun>[1] = {}) => {
      bench.readNodes = async () => ({ ...NONE, ...nodes });
      await bench.endRun('nightly', given);
      await bench.pass(0);
      for (const { body } of bench.received.splice(0)) {
        const { event_action, dedup_key } = JSON.parse(body);
        if (event_action === 'resolve') open.delete(dedup_key);
        else open.add(dedup_key);
      }
      return open.size;
    };
    // Others' failures, a run that is canceled and others' warnings stand between a failure and the success after it.
    expect(await end({ failed: own, warned: real.warned }, FAILED)).toBe(1);
    expect(await end({ failed: others }, FAILED)).toBe(1);
    expect(await end({}, { verdict: 'canceled' })).toBe(1);
    expect(await end({ warned: real.warned })).toBe(0);
    expect(await end({ failed: others }, FAILED)).toBe(of === 'nothing' || of.includes('failures alone') ? 1 : 0);
    expect(await end({ failed: [...own, ...others] }, FAILED)).toBe(of === 'first failures of a model' ? 0 : 1);
    expect(await end({})).toBe(0);
    expect(await end({})).toBe(0);
  });

  it('closes an incident of PagerDuty with the success that mends what failed, and not with others before it', async () => {
    await bench.subscribe('a', {
      ...{ kind: 'pagerduty', sealedRoutingKey: TEST_BOX.seal('key', 'wsu_a') },
      eventTypes: ['job.run.errored', 'job.run.completed'],
    });
    bench.readDetails = async () => DETAILS_OF_ONE_ERROR;
    const actions = async (recovery: typeof bench.recovery, given: Parameters<typeof bench.endRun>[1] = {}) => {
      bench.recovery = recovery;
      await bench.endRun('nightly', given);
      await bench.pass(0);
      return bench.received.splice(0).map(({ body }) => JSON.parse(body).event_action);
    };
    expect(await actions(null, FAILED)).toContain('trigger');
    for (let times = 0; times < 25; times += 1) expect(await actions({ count: 0, ofCount: 1 })).toEqual([]);
    expect(await actions({ count: 1, ofCount: 1 })).toEqual(['resolve']);
  });

  it('is notified later, where what is known of a run cannot be read', async () => {
    bench.readNodes = () => Promise.reject(new Error('the log cannot be read'));
    await bench.subscribe('a', filter({ groups: ['finance'] }));
    await errored();
    await bench.pass(0);
    expect(bench.received).toEqual([]);
    const [event] = await bench.events('a');
    const [attempt] = await bench.state.webhookEvents.attemptsOf(event?.id ?? '');
    expect(attempt?.error).toContain('the log cannot be read');
    bench.readNodes = async () => real;
    await bench.pass(15_000);
    expect(bench.received).toHaveLength(1);
  });

  it('can ask for what was held back', async () => {
    await bench.subscribe('a', filter({ tags: ['good'] }));
    await errored();
    await bench.pass(0);
    const [event] = await bench.events('a');
    const accountId = 10_001;
    const { webhookEvents } = bench.state;
    expect(await webhookEvents.replay(accountId, { sinceUnixMs: 0 }, bench.clock.nowUnixMs())).toBe(0);
    expect(await webhookEvents.replay(accountId, { eventId: event?.id ?? '' }, bench.clock.nowUnixMs())).toBe(1);
    await bench.pass(1_000);
    expect(bench.received).toHaveLength(1);
    expect(await bench.events('a')).toMatchObject([{ state: 'delivered', filteredReason: null }]);
  });
});
