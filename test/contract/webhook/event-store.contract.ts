import { describe, expect, it } from 'vitest';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import type { CircuitBreaker } from '../../../src/webhook/circuit-breaker.js';
import type { WebhookSubscription } from '../../../src/webhook/subscription.js';
import { attempted, commandNote, eventsOf, type FeatureState, subscription } from '../../fake/webhook-facts.js';

const ACCOUNT = FIRST_ACCOUNT_ID;
const LATER = 9_000_000_000_000;
/** What is claimed then is due, whatever the clock said when it came to be. */
const claimBy = (holder: string, nowUnixMs = LATER) => ({ holder, nowUnixMs, leaseUntilUnixMs: nowUnixMs + 1_000 });
const KEEP: CircuitBreaker = (standing) => ({ standing, archiveReason: null });
const place = (job: string) => ({ scope: { job, environment: null, project: null } });

/** What every WebhookEventStore does. `withState` gives the body an empty state and clears it away afterwards. */
export function webhookEventStoreContract(
  withState: (body: (state: FeatureState) => Promise<void>) => Promise<void>,
): void {
  const withEnds = (count: number, body: (state: FeatureState, a: WebhookSubscription) => Promise<void>) =>
    withState(async (state) => {
      const a = await state.subscriptions.add(subscription('a', { eventTypes: ['job.run.completed'] }));
      for (let at = 1; at <= count; at += 1) await state.invocations.note([commandNote(at)], 4_000);
      await body(state, a);
    });

  describe('the outbox of webhooks', () => {
    it('gives an event to one of many who ask at the same time', () =>
      withState(async ({ subscriptions, webhookEvents, invocations }) => {
        const a = await subscriptions.add(subscription('a', { eventTypes: ['job.run.completed'] }));
        for (let at = 1; at <= 12; at += 1) await invocations.note([commandNote(at, place(`job ${at}`))], 4_000);
        const claimed: string[] = [];
        while (claimed.length < 12) {
          const holders = Array.from({ length: 6 }, (_, at) => `p${at}`);
          const some = await Promise.all(holders.map((holder) => webhookEvents.claim(a, 3, claimBy(holder))));
          claimed.push(...some.flat().map(({ id }) => id));
        }
        expect(new Set(claimed).size).toBe(12);
        expect(await webhookEvents.claim(a, 3, claimBy('p'))).toEqual([]);
      }));

    it('counts what waits for each of some subscriptions', () =>
      withEnds(3, async ({ webhookEvents, subscriptions }, a) => {
        const b = await subscriptions.add(subscription('b'));
        const [first] = await webhookEvents.claim(a, 1, claimBy('p'));
        if (first === undefined) throw new Error('nothing was claimed');
        await webhookEvents.finish([attempted(first)], 'p', KEEP);
        expect([...(await webhookEvents.countPendingOf([a.id, b.id]))]).toEqual([[a.id, 2]]);
        expect((await webhookEvents.countPendingOf([b.id])).size).toBe(0);
        expect((await webhookEvents.countPendingOf([])).size).toBe(0);
      }));

    it('keeps when a subscription was archived: with the end of the attempt after which it was', () =>
      withEnds(1, async ({ webhookEvents, subscriptions }, a) => {
        const [event] = await webhookEvents.claim(a, 1, claimBy('p'));
        if (event === undefined) throw new Error('nothing was claimed');
        await webhookEvents.finish([attempted(event)], 'p', (standing) => ({ standing, archiveReason: 'enough' }));
        const { startedUnixMs, durationMs } = attempted(event).attempt;
        expect(await subscriptions.find(ACCOUNT, a.id)).toMatchObject({
          ...{ state: 'archived', archiveReason: 'enough', updatedUnixMs: startedUnixMs + durationMs },
        });
      }));

    it('gives a later event of a job once the first attempt of the earlier one has ended, however it did', () =>
      withEnds(3, async ({ webhookEvents, invocations }, a) => {
        await invocations.note([commandNote(9, place('other'))], 4_000);
        const [first, other, ...none] = await webhookEvents.claim(a, 9, claimBy('p'));
        expect([first?.facts.jobName, other?.facts.jobName, none]).toEqual(['nightly', 'other', []]);
        if (first === undefined) throw new Error('nothing was claimed');
        const failed = attempted(first, { next: { state: 'pending', dueUnixMs: LATER + 10_000 } });
        await webhookEvents.finish([failed], 'p', KEEP);
        const [second, ...rest] = await webhookEvents.claim(a, 9, claimBy('p'));
        expect([second?.facts.runId, rest]).toEqual([first.facts.runId + 1, []]);
      }));

    it('gives what somebody has to another one when it was not heard of for long, and logs the late attempt', () =>
      withEnds(1, async (state, a) => {
        const { webhookEvents } = state;
        const [late] = await webhookEvents.claim(a, 1, claimBy('dead'));
        expect(await webhookEvents.claim(a, 1, claimBy('alive', LATER + 999))).toEqual([]);
        const [taken] = await webhookEvents.claim(a, 1, claimBy('alive', LATER + 1_000));
        expect(taken?.id).toBe(late?.id);
        if (late === undefined || taken === undefined) throw new Error('nothing was claimed');
        await webhookEvents.finish([attempted(late)], 'dead', KEEP);
        expect(await eventsOf(state, a.id)).toMatchObject([{ state: 'pending', attemptCount: 1, roundCount: 0 }]);
        await webhookEvents.finish([attempted(taken)], 'alive', KEEP);
        expect(await eventsOf(state, a.id)).toMatchObject([{ state: 'delivered', attemptCount: 2, roundCount: 1 }]);
        expect((await webhookEvents.attemptsOf(taken.id)).map(({ attemptIndex }) => attemptIndex)).toEqual([1, 2]);
        const attempts = await webhookEvents.attemptsOfEach([taken.id, 'wev_other']);
        expect([...attempts]).toEqual([[taken.id, await webhookEvents.attemptsOf(taken.id)]]);
        expect([...(await webhookEvents.attemptsOfEach([]))]).toEqual([]);
      }));

    it('takes back what was claimed and not finished, of one holder, of those that begin alike, or of all', () =>
      withEnds(1, async ({ webhookEvents }, a) => {
        await webhookEvents.claim(a, 1, claimBy('f1/p'));
        for (const other of ['other', 'f2/', 'f1/q', '1/p']) await webhookEvents.release(other);
        expect(await webhookEvents.claim(a, 1, claimBy('q'))).toEqual([]);
        await webhookEvents.release('f1/p');
        expect(await webhookEvents.claim(a, 1, claimBy('f1/q'))).toHaveLength(1);
        await webhookEvents.release('f1/');
        expect(await webhookEvents.claim(a, 1, claimBy('q'))).toHaveLength(1);
        await webhookEvents.release();
        expect(await webhookEvents.claim(a, 1, claimBy('p'))).toHaveLength(1);
      }));

    it('names subscriptions with something to do, but for paused, inactive, busy and capped ones', () =>
      withEnds(2, async ({ webhookEvents, subscriptions }, a) => {
        const ready = async (without: string[] = [], nowUnixMs = LATER) =>
          (await webhookEvents.listReady(nowUnixMs, without, 9)).map(({ name }) => name);
        await subscriptions.add(subscription('nothing'));
        expect([await ready(), await ready([a.id]), await ready([], 0)]).toEqual([['a'], [], []]);
        const [event] = await webhookEvents.claim(a, 1, claimBy('p'));
        if (event === undefined) throw new Error('nothing was claimed');
        const paused: CircuitBreaker = (standing) => ({
          standing: { ...standing, pausedUntilUnixMs: LATER + 5 },
          archiveReason: null,
        });
        await webhookEvents.finish([attempted(event)], 'p', paused);
        expect([await ready(), await ready([], LATER + 5)]).toEqual([[], ['a']]);
        const capped = await subscriptions.change(ACCOUNT, a.id, () => ({ maxPerMinute: 6 }), 1);
        if (capped === undefined) throw new Error('the subscription is gone');
        expect(await webhookEvents.claim(capped, 9, claimBy('p', LATER + 5))).toHaveLength(1);
        await webhookEvents.release();
        expect(await webhookEvents.claim(capped, 9, claimBy('p', LATER + 10_004))).toEqual([]);
        expect(await ready([], LATER + 10_004)).toEqual([]);
        expect(await webhookEvents.claim(capped, 9, claimBy('p', LATER + 10_005))).toHaveLength(1);
        await webhookEvents.release();
        await subscriptions.change(ACCOUNT, a.id, () => ({ state: 'inactive' }), 1);
        expect(await ready([], LATER + 90_000)).toEqual([]);
      }));

    it('keeps a log of attempts, and what the endpoint answered last', () =>
      withEnds(1, async (state, a) => {
        const { webhookEvents } = state;
        const [event] = await webhookEvents.claim(a, 1, claimBy('p'));
        if (event === undefined) throw new Error('nothing was claimed');
        const { attempt } = attempted(event);
        const failed = { ...attempt, httpStatusCode: 503, error: 'the endpoint answered 503', responseBody: 'ü' };
        const next = { state: 'pending', dueUnixMs: LATER } as const;
        await webhookEvents.finish([attempted(event, { attempt: failed, next })], 'p', KEEP);
        const ids = { eventId: event.id, subscriptionId: a.id, attemptIndex: 1 };
        expect(await webhookEvents.attemptsOf(event.id)).toEqual([{ ...ids, ...failed }]);
        expect(await webhookEvents.find(ACCOUNT, event.id, a.id)).toMatchObject({ httpStatusCode: 503, roundCount: 1 });
        expect(await webhookEvents.find(7, event.id, a.id)).toBeUndefined();
      }));

    it('archives a subscription with a reason, once, and skips what waits for it', () =>
      withEnds(3, async (state, a) => {
        const { webhookEvents } = state;
        const [event] = await webhookEvents.claim(a, 1, claimBy('p'));
        if (event === undefined) throw new Error('nothing was claimed');
        const archive: CircuitBreaker = (standing) => ({ standing, archiveReason: 'gone' });
        const failed = attempted(event, { next: { state: 'failed' } });
        const archived = await webhookEvents.finish([failed], 'p', archive);
        expect(archived).toEqual([{ id: a.id, name: 'a', accountId: ACCOUNT, reason: 'gone', skippedCount: 2 }]);
        expect(await webhookEvents.finish([failed], 'p', archive)).toEqual([]);
        expect(await state.subscriptions.find(ACCOUNT, a.id)).toMatchObject({
          state: 'archived',
          archiveReason: 'gone',
        });
        expect((await eventsOf(state, a.id)).map((one) => one.state)).toEqual(['failed', 'skipped', 'skipped']);
      }));

    it('replays one event, or all that failed or were skipped, also for a subscription that is not active', () =>
      withEnds(3, async (state, a) => {
        const { webhookEvents, subscriptions } = state;
        const [event] = await webhookEvents.claim(a, 1, claimBy('p'));
        if (event === undefined) throw new Error('nothing was claimed');
        await webhookEvents.finish([attempted(event)], 'p', KEEP);
        await subscriptions.change(ACCOUNT, a.id, () => ({ state: 'inactive' }), 1);
        expect(await webhookEvents.replay(7, { sinceUnixMs: 0 }, LATER)).toBe(0);
        expect(await webhookEvents.replay(ACCOUNT, { sinceUnixMs: LATER }, LATER)).toBe(0);
        expect(await webhookEvents.replay(ACCOUNT, { sinceUnixMs: 0, subscriptionId: 'wsu_x' }, LATER)).toBe(0);
        expect(await webhookEvents.replay(ACCOUNT, { sinceUnixMs: 0, subscriptionId: a.id }, LATER)).toBe(2);
        expect(await webhookEvents.replay(ACCOUNT, { eventId: event.id }, LATER)).toBe(1);
        expect(await webhookEvents.replay(ACCOUNT, { eventId: event.id }, LATER)).toBe(0);
        expect(await webhookEvents.listReady(LATER, [], 9)).toHaveLength(1);
        const claimed = await webhookEvents.claim(a, 9, claimBy('p'));
        expect(claimed[0]).toMatchObject({ id: event.id, roundCount: 0, attemptCount: 1 });
        expect(claimed).toHaveLength(2);
      }));

    it('ends the pause of whose events are replayed, and of no other', () =>
      withEnds(1, async ({ webhookEvents, subscriptions, invocations }, a) => {
        await subscriptions.add(subscription('b', { eventTypes: ['job.run.completed'] }));
        await invocations.note([commandNote(9)], 4_000);
        const pause: CircuitBreaker = (standing) => ({
          standing: { ...standing, pausedUntilUnixMs: LATER + 5 },
          archiveReason: null,
        });
        const replayed: string[] = [];
        for (const one of [a, { id: 'wsu_b', maxPerMinute: null }]) {
          const [event] = await webhookEvents.claim(one, 1, claimBy('p'));
          if (event === undefined) throw new Error('nothing was claimed');
          await webhookEvents.finish([attempted(event, { next: { state: 'failed' } })], 'p', pause);
          replayed.push(event.id);
        }
        await webhookEvents.replay(ACCOUNT, { eventId: replayed[0] ?? '' }, LATER);
        expect((await webhookEvents.listReady(LATER, [], 9)).map(({ name }) => name)).toEqual(['a']);
      }));
  });
}
