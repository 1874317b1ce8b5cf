import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunMeasures } from '../../../src/api/run-measures.js';
import { AS_USUAL } from '../../../src/config/duration.js';
import type { CommandDigest } from '../../../src/run/measures/command-digest.js';
import { DEFAULT_BREAKER_LIMITS } from '../../../src/webhook/circuit-breaker.js';
import { ExpectationWatch } from '../../../src/webhook/notices.js';
import { WebhookBench } from '../../fake/webhook-bench.js';
import { commandNote } from '../../fake/webhook-facts.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const LIMITS = { ...DEFAULT_BREAKER_LIMITS, maxFailedCount: 10, pauseFromCount: 100 };
let bench: WebhookBench;
beforeEach(async () => {
  bench = await WebhookBench.open({ limits: LIMITS });
});
afterEach(() => bench.close());

const noticesTo = (path: string) =>
  bench.received
    .filter((one) => one.path === path)
    .map(({ body }) => {
      const { eventType, data } = JSON.parse(body);
      return { eventType, ...data.notice };
    });

describe('a subscription that is asked to hear of another one', () => {
  it('hears at 50, 80 and 100 % of the way to archiving, once each, and of nothing else', async () => {
    bench.answer = (path) => ({ status: path === '/a' ? 503 : 200 });
    await bench.subscribe('b', { eventTypes: [] });
    await bench.subscribe('a', { notifyOnArchive: 'wsu_b' });
    for (let at = 0; at < 12; at += 1) await bench.endRun(`job ${at}`);
    await bench.pass(0);
    const cause = 'the endpoint answered 503';
    expect(noticesTo('/b')).toMatchObject([
      {
        ...{ eventType: 'webhook.failing', about: 'webhook', webhookId: 'wsu_a', percent: 50, failedCount: 5 },
        title: `webhook a is failing, 50 % of the way to being archived: ${cause}`,
      },
      { percent: 80, title: `webhook a is failing, 80 % of the way to being archived: ${cause}` },
      {
        ...{ eventType: 'webhook.archived', percent: 100 },
        title: 'webhook a was archived: 10 deliveries in a row have failed',
      },
    ]);
    expect(await bench.find('a')).toMatchObject({ state: 'archived' });
  });

  it.each(['wsu_ops', 'mailto:ops@example.com'])(
    'is that of the configuration, %s, for those that name nobody',
    async (listener) => {
      await bench.close();
      bench = await WebhookBench.open({ limits: LIMITS }, listener);
      bench.answer = () => ({ status: 410 });
      const isMail = listener.startsWith('mailto:');
      await bench.subscribe('ops', { eventTypes: [], ...(isMail && { kind: 'email', clientUrl: listener }) });
      await bench.subscribe('own', { eventTypes: [] });
      await bench.subscribe('a', {});
      await bench.subscribe('b', { notifyOnArchive: 'wsu_own' });
      await bench.endRun();
      await bench.pass(0);
      const toldOf = async (name: string) => (await bench.events(name)).map(({ facts }) => facts.notice);
      expect(await toldOf('ops')).toMatchObject([
        { webhookId: 'wsu_a', percent: 100 },
        // The one that it hears of itself goes nowhere; that of the other one, which is gone as well, comes here.
        { webhookId: 'wsu_own', percent: 100 },
      ]);
      expect(await toldOf('own')).toMatchObject([{ webhookId: 'wsu_b', percent: 100 }]);
    },
  );

  it('hears of one that is gone at once', async () => {
    bench.answer = (path) => ({ status: path === '/a' ? 410 : 200 });
    await bench.subscribe('b', { eventTypes: [] });
    await bench.subscribe('a', { notifyOnArchive: 'wsu_b' });
    await bench.endRun();
    await bench.pass(0);
    expect(noticesTo('/b').map(({ title }) => title)).toEqual([
      'webhook a was archived: the endpoint answered 410 Gone: it wants nothing more',
    ]);
  });

  it('hears by the time that all deliveries have failed, too', async () => {
    await bench.close();
    bench = await WebhookBench.open();
    bench.answer = (path) => ({ status: path === '/a' ? 503 : 200 });
    await bench.subscribe('b', { eventTypes: [] });
    await bench.subscribe('a', { notifyOnArchive: 'wsu_b' });
    for (let day = 0; day < 5; day += 1) {
      await bench.endRun(`job ${day}`);
      await bench.pass(day === 0 ? 0 : 24 * HOUR_MS);
    }
    expect(noticesTo('/b').map(({ percent }) => percent)).toEqual([50]);
  });
});

describe('a subscription that expects runs', () => {
  const watch = () => {
    const { clock, logger, state } = bench;
    const wake = () => bench.dispatcher.wake();
    return new ExpectationWatch({ db: state.db, measures: { digestsOf }, declared, clock, logger, wake });
  };
  let declared: ReadonlyMap<string, number>;
  /** What of each run fell to nodes, in minutes, the first run first; `undefined` for one that is not measured. */
  let shares: readonly (Readonly<Record<string, number>> | undefined)[];
  beforeEach(() => {
    declared = new Map();
    shares = [];
  });
  const digestsOf: RunMeasures['digestsOf'] = async ([step]) => {
    const number = Number(step?.invocations[0]?.traceId.slice(-4));
    const found = shares[number - 1];
    const uniqueIds = Object.keys(found ?? {});
    const sharesMs = Float64Array.from(Object.values(found ?? {}), (minutes) => minutes * MINUTE_MS);
    const labels = uniqueIds.map((id) => id.replace('.', ' '));
    return found && [{ work: { uniqueIds, labels, sharesMs } } as unknown as CommandDigest];
  };
  /** Lets time pass and looks, as often as a server does it by the minute. */
  const passAndLook = async (ms: number) => {
    bench.clock.advance(ms);
    await watch().look();
    await watch().look();
    await bench.pass(0);
  };
  const run = (job: string, lengthMs: number | null, given: Parameters<typeof bench.endRun>[1] = {}) => {
    const startedUnixMs = bench.clock.nowUnixMs();
    const ended = startedUnixMs + (lengthMs ?? 0);
    const isOver = lengthMs !== null;
    return bench.endRun(job, {
      ...{ startedUnixMs, endedUnixMs: ended, isSaved: isOver },
      ...(!isOver && { verdict: null }),
      ...given,
    });
  };

  it('hears of a job that did not run in that time, once for each run that it did have', async () => {
    await bench.subscribe('a', { eventTypes: [], expectMs: 24 * HOUR_MS });
    await run('nightly', 1_000);
    await passAndLook(24 * HOUR_MS);
    expect(noticesTo('/a')).toEqual([]);
    await passAndLook(MINUTE_MS);
    expect(noticesTo('/a')).toMatchObject([
      {
        ...{ eventType: 'job.run.overdue', about: 'overdue', expectedEverySeconds: 86_400 },
        title: 'nightly · production did not run: a run is expected every 24 hours',
      },
    ]);
    await passAndLook(24 * HOUR_MS);
    expect(noticesTo('/a')).toHaveLength(1);
    await run('nightly', 1_000);
    await passAndLook(25 * HOUR_MS);
    expect(noticesTo('/a')).toHaveLength(2);
  });

  it('hears of a job that has not started for one and a half times its usual time, once it has a rhythm', async () => {
    await bench.subscribe('a', { eventTypes: [], expectMs: AS_USUAL });
    for (const hours of [24, 23, 25]) {
      await run('nightly', 1_000);
      await passAndLook(3 * hours * HOUR_MS);
    }
    // Three starts are no rhythm, nor is a job that has only just begun to run.
    expect(noticesTo('/a')).toEqual([]);
    await run('nightly', 1_000);
    await run('new', 1_000);
    await passAndLook(1.5 * 72 * HOUR_MS);
    expect(noticesTo('/a')).toEqual([]);
    await passAndLook(MINUTE_MS);
    await passAndLook(HOUR_MS);
    expect(noticesTo('/a')).toMatchObject([
      {
        ...{ eventType: 'job.run.overdue', expectedEverySeconds: 388_800, usuallyEverySeconds: 259_200 },
        title: 'nightly · production did not run: it usually starts again after 3 days, and has not for 4 days 12 h',
      },
    ]);
  });

  it('follows a rhythm that has become another one, by the last ten times', async () => {
    await bench.subscribe('a', { eventTypes: [], expectMs: AS_USUAL });
    const times = async (count: number, hours: number) => {
      for (let at = 0; at < count; at += 1) {
        await run('nightly', 1_000);
        await passAndLook(hours * HOUR_MS);
      }
    };
    await times(11, 1);
    await times(6, 4);
    expect(noticesTo('/a')).toHaveLength(6);
    await times(8, 4);
    expect(noticesTo('/a')).toHaveLength(6);
  });

  it('hears of a run that takes three times as long as usual, once', async () => {
    await bench.subscribe('a', { eventTypes: [], expectMs: 24 * HOUR_MS });
    for (let at = 0; at < 3; at += 1) {
      await run('nightly', 10 * MINUTE_MS);
      bench.clock.advance(HOUR_MS);
    }
    await run('nightly', null);
    await passAndLook(29 * MINUTE_MS);
    expect(noticesTo('/a')).toEqual([]);
    await passAndLook(MINUTE_MS);
    await passAndLook(HOUR_MS);
    expect(noticesTo('/a')).toMatchObject([
      {
        ...{ eventType: 'job.run.slow', about: 'slow', usualSeconds: 600, runningSeconds: 1_800 },
        title: expect.stringMatching(
          /^nightly · production is slow: #\d+ has been running for 30 min.*, and usually takes 10 min/,
        ),
      },
    ]);
  });

  describe('and has had some that took ten minutes', () => {
    const USUAL = { 'model.orders': 2, 'model.items': 8 };
    beforeEach(async () => {
      for (let at = 0; at < 3; at += 1) {
        await run('nightly', 10 * MINUTE_MS);
        bench.clock.advance(HOUR_MS);
      }
      await bench.subscribe('a', { eventTypes: [], expectMs: 24 * HOUR_MS });
      shares = [USUAL, { ...USUAL, 'model.orders': 3 }, USUAL];
    });

    it('hears of one that took twice as long, once, with the node whose share has grown most', async () => {
      shares = [...shares, { 'model.orders': 14, 'model.items': 9 }];
      await run('nightly', 23 * MINUTE_MS);
      await passAndLook(23 * MINUTE_MS);
      await passAndLook(HOUR_MS);
      expect(noticesTo('/a')).toMatchObject([
        {
          ...{ eventType: 'job.run.slow', about: 'slow', usualSeconds: 600, runningSeconds: 1_380 },
          node: { uniqueId: 'model.orders', label: 'model orders', seconds: 840, usualSeconds: 120 },
          title: expect.stringMatching(
            /^nightly · production was slow: #\d+ took 23 min 0 s, and usually takes 10 min 0 s; model orders took 14 min 0 s of it, usually 2 min 0 s$/,
          ),
        },
      ]);
    });

    it('hears of it also where the next run has begun before anybody looks, or fails at once', async () => {
      shares = [...shares, { 'model.orders': 14, 'model.items': 9 }];
      await run('nightly', 23 * MINUTE_MS);
      bench.clock.advance(23 * MINUTE_MS);
      await run('nightly', 1_000, { verdict: 'error' });
      bench.clock.advance(1_000);
      await run('nightly', null);
      await passAndLook(1_000);
      await passAndLook(MINUTE_MS);
      expect(noticesTo('/a')).toMatchObject([{ eventType: 'job.run.slow', about: 'slow', runningSeconds: 1_380 }]);
    });

    it('hears of no slow run that was over before it was imported', async () => {
      await run('nightly', 23 * MINUTE_MS, { importBeganUnixMs: bench.clock.nowUnixMs() + HOUR_MS });
      await passAndLook(HOUR_MS);
      expect(noticesTo('/a')).toEqual([]);
    });

    it('waits for ten minutes until that one is measured, and then hears without a node', async () => {
      await run('nightly', 23 * MINUTE_MS);
      await passAndLook(32 * MINUTE_MS);
      expect(noticesTo('/a')).toEqual([]);
      await passAndLook(MINUTE_MS);
      const [notice, ...others] = noticesTo('/a');
      expect([notice?.about, notice?.node, others]).toEqual(['slow', undefined, []]);
    });

    it('hears of no node where all of them took longer', async () => {
      shares = [...shares, { 'model.orders': 6, 'model.items': 11, 'model.new': 3, 'model.other': 3 }];
      await run('nightly', 23 * MINUTE_MS);
      await passAndLook(23 * MINUTE_MS);
      expect(noticesTo('/a')).toMatchObject([{ about: 'slow', endedAt: expect.any(String) }]);
      expect(noticesTo('/a')[0]?.node).toBeUndefined();
    });

    it('hears once of a run that was slow while it went on', async () => {
      shares = [...shares, { 'model.orders': 22, 'model.items': 8 }];
      const startedUnixMs = bench.clock.nowUnixMs();
      await run('nightly', null);
      await passAndLook(30 * MINUTE_MS);
      const ended = commandNote(4, { startedUnixMs, endedUnixMs: startedUnixMs + 31 * MINUTE_MS });
      await bench.state.invocations.note([ended], bench.clock.nowUnixMs());
      await passAndLook(HOUR_MS);
      expect(noticesTo('/a')).toMatchObject([{ about: 'slow', runningSeconds: 1_800 }]);
    });

    it.each<[string, number, Parameters<typeof bench.endRun>[1]]>([
      ['that took less than that', 19, {}],
      ['that failed', 23, { verdict: 'error' }],
    ])('hears of none %s', async (_which, minutes, given) => {
      shares = [...shares, { 'model.orders': 14, 'model.items': 9 }];
      await run('nightly', minutes * MINUTE_MS, given);
      await passAndLook(HOUR_MS);
      expect(noticesTo('/a')).toEqual([]);
    });

    it('hears of none that was over before it was asked for', async () => {
      shares = [...shares, { 'model.orders': 14, 'model.items': 9 }];
      await run('nightly', 23 * MINUTE_MS);
      bench.clock.advance(HOUR_MS);
      await bench.subscribe('late', { eventTypes: [], expectMs: 24 * HOUR_MS, createdUnixMs: bench.clock.nowUnixMs() });
      await passAndLook(MINUTE_MS);
      expect([noticesTo('/a').length, noticesTo('/late').length]).toEqual([1, 0]);
    });
  });

  it('hears of no run that takes longer than those of other commands and projects', async () => {
    await bench.subscribe('a', { eventTypes: [], expectMs: 24 * HOUR_MS });
    const place = { job: 'nightly', environment: 'production', project: 'other' };
    for (let at = 0; at < 5; at += 1) {
      await run('nightly', MINUTE_MS, { command: 'dbt parse' });
      bench.clock.advance(MINUTE_MS);
      await run('nightly', MINUTE_MS, { command: 'dbt build', scope: place });
      bench.clock.advance(MINUTE_MS);
    }
    for (let at = 0; at < 3; at += 1) {
      await run('nightly', HOUR_MS, { command: 'dbt build' });
      bench.clock.advance(2 * HOUR_MS);
    }
    await run('nightly', null, { command: 'dbt build --select marts' });
    await passAndLook(HOUR_MS);
    expect(noticesTo('/a')).toEqual([]);
    await passAndLook(2 * HOUR_MS);
    expect(noticesTo('/a')).toMatchObject([{ eventType: 'job.run.slow', usualSeconds: 3_600 }]);
  });

  it('hears of a declared job by its declaration, though it expects nothing itself, and also if the job never ran', async () => {
    const place = { id: null, project: 'shop', environment: 'production' };
    const jobs = ['nightly', 'hourly'].map((name) => ({ name, ...place }));
    await bench.state.scopes.declare({ projects: [], environments: [], jobs }, bench.clock.nowUnixMs());
    declared = new Map([
      ['nightly', 24 * HOUR_MS],
      ['hourly', HOUR_MS],
    ]);
    await bench.subscribe('errors', { eventTypes: ['job.run.errored'] });
    await bench.subscribe('starts', { eventTypes: ['job.run.started'] });
    await run('nightly', 1_000);
    const started = watch();
    bench.clock.advance(HOUR_MS + MINUTE_MS);
    await started.look();
    await bench.pass(0);
    expect(noticesTo('/errors')).toMatchObject([
      { title: 'hourly · production did not run: a run is expected every hour', lastStartedAt: null },
    ]);
    bench.clock.advance(23 * HOUR_MS);
    await started.look();
    await started.look();
    await bench.pass(0);
    expect(noticesTo('/errors').map(({ title }) => title)).toEqual([
      'hourly · production did not run: a run is expected every hour',
      'nightly · production did not run: a run is expected every 24 hours',
    ]);
    expect(noticesTo('/starts').map(({ eventType }) => eventType)).toEqual(['job.run.started']);
  });
});
