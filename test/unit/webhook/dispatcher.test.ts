import { createHmac } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import { FRESH_STANDING } from '../../../src/webhook/subscription.js';
import { SECRET, WebhookBench } from '../../fake/webhook-bench.js';
import { until } from '../../tool/until.js';

/** `DEAD_SUBSCRIPTIONS=10000` for as many as large installations have. */
const DEAD_COUNT = Number(process.env.DEAD_SUBSCRIPTIONS ?? 1_000);
const ERRORED = { verdict: 'error', statusMessage: 'Boom' } as const;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
let bench: WebhookBench;
beforeEach(async () => {
  bench = await WebhookBench.open();
});
afterEach(() => bench.close());

/** Seconds after the first request at which each came. */
function secondsOf(name: string): number[] {
  const own = bench.received.filter(({ path }) => path === `/${name}`);
  return own.map(({ atUnixMs }) => Math.round((atUnixMs - (own[0]?.atUnixMs ?? 0)) / 1_000));
}

const eventIdIn = (body: string): unknown => JSON.parse(body).eventId;
const runIdIn = (body: string): number => Number(JSON.parse(body).data.runId);

describe('attempts', () => {
  it('are made five times: at once, and about 10 s, 1 min, 10 min and 1 h later, with one event id', async () => {
    bench.answer = () => ({ status: 500, body: 'x'.repeat(5_000) });
    await bench.subscribe('a');
    await bench.endRun();
    await bench.pass(0);
    for (const [waitMs, count] of [
      [9_000, 1],
      [1_000, 2],
      [59_000, 2],
      [1_000, 3],
      [600_000, 4],
      [HOUR_MS, 5],
      [DAY_MS, 5],
    ] as const) {
      await bench.pass(waitMs);
      expect(bench.received).toHaveLength(count);
    }
    expect(secondsOf('a')).toEqual([0, 10, 70, 670, 4_270]);
    expect(new Set(bench.received.map(({ body }) => eventIdIn(body))).size).toBe(1);
    const [event] = await bench.events('a');
    expect(event).toMatchObject({ state: 'failed', attemptCount: 5, httpStatusCode: 500 });
    const log = await bench.state.webhookEvents.attemptsOf(event?.id ?? '');
    expect(log.map(({ error, responseBody }) => [error, responseBody.length])).toEqual(
      Array(5).fill(['the endpoint answered 500', 4_096]),
    );
    expect(bench.logger.lines.at(-1)).toMatchObject({ level: 'warn', fields: { event: event?.id } });
  });

  it('end with the first that is answered 2xx', async () => {
    bench.answer = (_path, count) => ({ status: count < 3 ? 503 : 204 });
    await bench.subscribe('a');
    await bench.endRun();
    for (const waitMs of [0, 10_000, 60_000, DAY_MS]) await bench.pass(waitMs);
    expect(bench.received).toHaveLength(3);
    expect(await bench.events('a')).toMatchObject([{ state: 'delivered', attemptCount: 3 }]);
    expect(await bench.find('a')).toMatchObject({ failedCount: 0, failingSinceUnixMs: null, httpStatusCode: 204 });
  });

  it('have failed when nothing was answered for 10 s', async () => {
    bench.answer = (_path, count) => (count === 1 ? 'hang' : { status: 200 });
    await bench.subscribe('a');
    await bench.endRun();
    bench.clock.advance(5);
    await bench.dispatcher.start();
    bench.clock.advance(5);
    await bench.arrived(1);
    bench.clock.advance(9_000);
    expect(await bench.events('a')).toMatchObject([{ attemptCount: 0 }]);
    bench.clock.advance(1_100);
    await until('the failure', async () => (await bench.events('a'))[0]?.attemptCount === 1);
    const [event] = await bench.events('a');
    const [attempt] = await bench.state.webhookEvents.attemptsOf(event?.id ?? '');
    expect(attempt).toMatchObject({ error: 'no answer within 10 s', httpStatusCode: null });
    await bench.pass(10_000);
    expect(await bench.events('a')).toMatchObject([{ state: 'delivered' }]);
  });

  it.each([
    ['120', 120],
    ['1', 10],
    ['999999', 3_600],
    ['Thu, 01 Jan 2026 00:05:00 GMT', 300],
    ['soon', 10],
  ])('wait as the endpoint asks (Retry-After: %s), within bounds: %d s', async (asked, seconds) => {
    bench.answer = (_path, count) =>
      count === 1 ? { status: 429, headers: { 'Retry-After': asked } } : { status: 200 };
    await bench.subscribe('a');
    await bench.endRun();
    await bench.pass(0);
    await bench.pass(seconds * 1_000 - 1_000);
    expect(bench.received).toHaveLength(1);
    await bench.pass(1_100);
    expect(bench.received).toHaveLength(2);
  });

  it('do not follow redirects', async () => {
    bench.answer = (path) => (path === '/a' ? { status: 307, headers: { Location: '/elsewhere' } } : { status: 200 });
    await bench.subscribe('a');
    await bench.endRun();
    await bench.pass(0);
    expect(bench.received.map(({ path }) => path)).toEqual(['/a']);
    const [event] = await bench.events('a');
    const [attempt] = await bench.state.webhookEvents.attemptsOf(event?.id ?? '');
    expect(attempt?.error).toBe('the endpoint answered 307: redirects are not followed');
  });

  it('are made again after errors of connections', async () => {
    await bench.subscribe('a', { clientUrl: `https://127.0.0.1:${bench.port}/a` });
    await bench.subscribe('b', { clientUrl: 'http://127.0.0.1:1/' });
    await bench.endRun();
    await bench.pass(0);
    for (const name of ['a', 'b']) {
      expect(await bench.events(name)).toMatchObject([{ state: 'pending', attemptCount: 1, httpStatusCode: null }]);
      expect(await bench.find(name)).toMatchObject({ httpStatusCode: 0, failedCount: 1 });
    }
  });
});

describe('a delivery', () => {
  it('is signed as the hosted platform does it, and as Standard Webhooks does', async () => {
    const sealedHeaders = bench.box.seal('{"X-Key":"hidden"}', 'wsu_a');
    await bench.subscribe('a', { sealedHeaders });
    await bench.endRun();
    await bench.pass(0);
    const [request] = bench.received;
    const { headers = {}, body = '' } = request ?? {};
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'x-key': 'hidden' });
    expect(headers.authorization).toBe(createHmac('sha256', SECRET).update(body).digest('hex'));
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
    const key = Buffer.from(SECRET.slice(6), 'base64');
    expect(headers['webhook-signature']).toBe(`v1,${createHmac('sha256', key).update(signed).digest('base64')}`);
    expect(headers['webhook-id']).toBe(eventIdIn(body));
    const [attempt] = await bench.state.webhookEvents.attemptsOf(String(eventIdIn(body)));
    expect(attempt?.requestBody).toBe(body);
    expect(attempt?.requestHeaders).not.toContain('hidden');
  });

  it('leaves out what is switched off', async () => {
    await bench.subscribe('a', { hasAuthorization: false });
    await bench.subscribe('b', { hasStandardHeaders: false });
    await bench.endRun();
    await bench.pass(0);
    const headers = Object.fromEntries(bench.received.map((one) => [one.path, Object.keys(one.headers)]));
    expect(headers['/a']).not.toContain('authorization');
    expect(headers['/a']).toContain('webhook-signature');
    expect(headers['/b']).not.toContain('webhook-signature');
    expect(headers['/b']).toContain('authorization');
  });

  it('is signed by the old secret too while a new one takes its place', async () => {
    const next = `whsec_${Buffer.alloc(24, 9).toString('base64')}`;
    await bench.subscribe('a', {
      sealedSecret: bench.box.seal(next, 'wsu_a'),
      sealedOldSecret: bench.box.seal(SECRET, 'wsu_a'),
      oldSecretUntilUnixMs: bench.clock.nowUnixMs() + 1_000,
    });
    for (const waitMs of [0, 1_000]) {
      await bench.endRun();
      await bench.pass(waitMs);
    }
    const by = (secret: string, body: string) => createHmac('sha256', secret).update(body).digest('hex');
    const [before, afterwards] = bench.received;
    expect(before?.headers.authorization).toBe(by(SECRET, before?.body ?? ''));
    expect(String(before?.headers['webhook-signature']).split(' ')).toHaveLength(2);
    expect(afterwards?.headers.authorization).toBe(by(next, afterwards?.body ?? ''));
    expect(String(afterwards?.headers['webhook-signature']).split(' ')).toHaveLength(1);
  });
});

describe('a subscription', () => {
  it('is archived when its endpoint answers 410', async () => {
    bench.answer = () => ({ status: 410 });
    await bench.subscribe('a');
    await bench.endRun();
    await bench.endRun();
    await bench.pass(0);
    expect(await bench.find('a')).toMatchObject({ state: 'archived', archiveReason: expect.stringContaining('410') });
    expect((await bench.events('a')).map(({ state }) => state)).toEqual(['failed', 'skipped']);
    expect(bench.logger.lines).toContainEqual(
      expect.objectContaining({ level: 'error', message: expect.stringContaining('archived a webhook subscription') }),
    );
    await bench.endRun();
    await bench.pass(DAY_MS);
    expect(bench.received).toHaveLength(1);
  });

  it('is archived after 7 days of nothing but failures', async () => {
    bench.answer = () => ({ status: 500 });
    await bench.subscribe('a');
    await bench.endRun();
    await bench.pass(0);
    await bench.pass(7 * DAY_MS - 1_000);
    expect(await bench.find('a')).toMatchObject({ state: 'active' });
    await bench.endRun();
    await bench.pass(2_000);
    expect(await bench.find('a')).toMatchObject({
      ...{ state: 'archived', archiveReason: 'every delivery of the last 7 days has failed' },
    });
  });

  it('that fails 10 times in a row is left alone, tried once now and then, and gets everything when it is back', async () => {
    bench.answer = () => ({ status: 500 });
    await bench.subscribe('a');
    for (let at = 0; at < 30; at += 1) await bench.endRun(`job ${at}`);
    await bench.pass(0);
    expect(bench.received).toHaveLength(10);
    await bench.pass(14_000);
    expect(bench.received).toHaveLength(10);
    await bench.pass(2_000);
    expect(bench.received).toHaveLength(11);
    bench.answer = () => ({ status: 200 });
    await bench.pass(60_000);
    expect((await bench.events('a')).every(({ state }) => state === 'delivered')).toBe(true);
    expect(await bench.find('a')).toMatchObject({ failedCount: 0, pausedUntilUnixMs: 0 });
  });

  it('is not held up by another one whose endpoint does not answer', async () => {
    bench.answer = (path) => (path === '/dead' ? 'hang' : { status: 200 });
    await bench.subscribe('dead');
    await bench.subscribe('live');
    for (let at = 0; at < 20; at += 1) await bench.endRun(`job ${at}`);
    await bench.dispatcher.start();
    bench.clock.advance(5);
    await until('the live one', async () => (await bench.events('live')).every(({ state }) => state === 'delivered'));
    expect(bench.received.filter(({ path }) => path === '/dead')).toHaveLength(1);
  });

  it(`is served before ${DEAD_COUNT} dead ones that wait, also where it is new or has failed once`, async () => {
    bench.answer = (path) => (path.startsWith('/dead') ? 'hang' : { status: 200 });
    const standing = (failedCount: number) => ({ ...FRESH_STANDING, failedCount, dispatchedUnixMs: 1 });
    await bench.subscribeMany('dead', DEAD_COUNT, standing(5));
    for (const [name, count] of [
      ['live', 0],
      ['shaky', 1],
    ] as const) {
      await bench.subscribeMany(name, 1, standing(count));
    }
    await bench.subscribe('new');
    const names = ['live0', 'shaky0', 'new'];
    for (let round = 0; round < 3; round += 1) {
      await bench.endRun(`job ${round}`);
      if (round === 0) await bench.dispatcher.start();
      else bench.dispatcher.wake();
      await until('the live ones', async () => {
        // So little that no dead one has failed by then.
        bench.clock.advance(5);
        const events = await Promise.all(names.map((name) => bench.events(name)));
        return events.flat().every(({ state }) => state === 'delivered');
      });
    }
    expect(bench.received.filter(({ path }) => !path.startsWith('/dead'))).toHaveLength(9);
    // Half of all attempts are for who answers.
    expect(bench.received.filter(({ path }) => path.startsWith('/dead')).length).toBeLessThanOrEqual(256);
  });

  it('that fails takes turns with others that fail, however much waits for each', async () => {
    await bench.close();
    bench = await WebhookBench.open({ maxInFlight: 4 });
    bench.answer = () => ({ status: 500 });
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) await bench.subscribe(name);
    for (let at = 0; at < 5; at += 1) await bench.endRun(`job ${at}`);
    await bench.pass(0);
    const order = bench.received.map(({ path }) => path);
    // Each has had its first attempt before any has had its third.
    const third = order.findIndex((path, at) => order.slice(0, at).filter((one) => one === path).length === 2);
    expect(new Set(order.slice(0, third)).size).toBe(6);
  });

  it('gets events of a job in their order, and a later one before the retry of an earlier one', async () => {
    bench.answer = (_path, count) => ({ status: count === 1 ? 500 : 200 });
    await bench.subscribe('a');
    for (let at = 0; at < 40; at += 1) await bench.endRun();
    await bench.pass(0);
    await bench.pass(10_000);
    const runs = bench.received.map(({ body }) => runIdIn(body));
    const [first = 0, ...others] = runs;
    expect(others.at(-1)).toBe(first);
    expect(others.slice(0, -1)).toEqual(Array.from({ length: 39 }, (_, at) => first + 1 + at));
  });

  it('with a rate cap gets so many a minute', async () => {
    await bench.subscribe('a', { maxPerMinute: 6 });
    for (let at = 0; at < 10; at += 1) await bench.endRun(`job ${at}`);
    await bench.pass(0);
    for (let at = 0; at < 6; at += 1) await bench.pass(10_000);
    expect(bench.received).toHaveLength(7);
  });

  it('whose secret cannot be opened says so in its log', async () => {
    await bench.subscribe('a', { sealedSecret: 'v1.00000000.AAAA' });
    await bench.endRun();
    await bench.pass(0);
    const [event] = await bench.events('a');
    const [attempt] = await bench.state.webhookEvents.attemptsOf(event?.id ?? '');
    expect(attempt?.error).toContain('RUN_BRIDGE_WEBHOOK_KEY');
  });
});

describe('dispatchers', () => {
  it('share the work: each attempt is made once', async () => {
    const others = [1, 2, 3].map(() => bench.newDispatcher());
    await bench.subscribe('a');
    for (let at = 0; at < 100; at += 1) await bench.endRun(`job ${at % 10}`);
    for (const one of [bench.dispatcher, ...others]) await one.start();
    await until('all deliveries', async () => {
      bench.clock.advance(1_000);
      return (await bench.events('a')).every(({ state }) => state === 'delivered');
    });
    const ids = bench.received.map(({ body }) => eventIdIn(body));
    expect([ids.length, new Set(ids).size]).toEqual([100, 100]);
  });

  it('take over from one that died, once its lease is over', async () => {
    bench.answer = (_path, count) => (count === 1 ? 'hang' : { status: 200 });
    await bench.subscribe('a');
    await bench.endRun();
    await bench.dispatcher.start();
    bench.clock.advance(5);
    await bench.arrived(1);
    const other = bench.newDispatcher();
    // The first one never hears that time goes by: it has died.
    const nowUnixMs = bench.clock.nowUnixMs() + 45_000;
    const a = await bench.find('a');
    if (a === undefined) throw new Error('the subscription is gone');
    expect(
      await bench.state.webhookEvents.claim(a, 1, { holder: 'x', nowUnixMs: nowUnixMs - 1, leaseUntilUnixMs: 0 }),
    ).toEqual([]);
    expect(await bench.state.webhookEvents.listReady(nowUnixMs, [], 1)).toHaveLength(1);
    await bench.state.webhookEvents.release();
    await other.flush(AbortSignal.timeout(20_000));
    expect(new Set(bench.received.map(({ body }) => eventIdIn(body))).size).toBe(1);
    expect(await bench.events('a')).toMatchObject([{ state: 'delivered' }]);
  });

  it('make nothing anew for a retry, but for a replay', async () => {
    bench.answer = (_path, count) => ({ status: count < 3 ? 500 : 200 });
    await bench.subscribe('a');
    await bench.endRun('nightly', ERRORED);
    const spent: string[] = [];
    bench.statusMessage = async (_account, _run, message) => {
      spent.push(message);
      return `${message} ${spent.length}`;
    };
    for (const waitMs of [0, 10_000, 60_000]) await bench.pass(waitMs);
    expect(bench.received).toHaveLength(3);
    expect(new Set(bench.received.map(({ body }) => body)).size).toBe(1);
    expect(spent).toHaveLength(1);
    const [event] = await bench.events('a');
    await bench.state.webhookEvents.replay(FIRST_ACCOUNT_ID, { eventId: event?.id ?? '' }, bench.clock.nowUnixMs());
    await bench.pass(0);
    expect(spent).toHaveLength(2);
  });

  it('give up an attempt before its claim ends, whatever it waits for', async () => {
    await bench.subscribe('a');
    await bench.endRun('nightly', ERRORED);
    let isAsked = false;
    bench.statusMessage = () => {
      isAsked = true;
      return new Promise(() => {});
    };
    await bench.dispatcher.start();
    bench.clock.advance(5);
    await until('the attempt', () => isAsked);
    bench.clock.advance(34_000);
    expect(await bench.events('a')).toMatchObject([{ attemptCount: 0 }]);
    bench.clock.advance(1_000);
    await until('its end', async () => (await bench.events('a'))[0]?.attemptCount === 1);
    expect(await bench.find('a')).toMatchObject({ lastError: 'the attempt took too long and was given up' });
    bench.statusMessage = async (_account, _run, message) => message;
    await bench.pass(10_000);
    expect(await bench.events('a')).toMatchObject([{ state: 'delivered', attemptCount: 2 }]);
  });

  it('deliver what is replayed, also where the subscription is not active', async () => {
    await bench.subscribe('a', { state: 'inactive' });
    for (let at = 0; at < 3; at += 1) await bench.endRun();
    await bench.pass(0);
    expect(bench.received).toEqual([]);
    expect(await bench.state.webhookEvents.replay(FIRST_ACCOUNT_ID, { sinceUnixMs: 0 }, bench.clock.nowUnixMs())).toBe(
      3,
    );
    await bench.pass(0);
    expect(bench.received).toHaveLength(3);
  });
});
