import { describe, expect, it } from 'vitest';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import { FRESH_STANDING, NO_FILTER } from '../../../src/webhook/subscription.js';
import { attempted, commandNote, eventsOf, type FeatureState, subscription } from '../../fake/webhook-facts.js';

const ACCOUNT = FIRST_ACCOUNT_ID;

/** What every SubscriptionStore does. `withState` gives the body an empty state and clears it away afterwards. */
export function webhookSubscriptionStoreContract(
  withState: (body: (state: FeatureState) => Promise<void>) => Promise<void>,
): void {
  describe('webhook subscriptions', () => {
    it('are kept with all that was decided, and begin with a clean standing', () =>
      withState(async ({ subscriptions }) => {
        expect(await subscriptions.hasAny()).toBe(false);
        const given = subscription('a', {
          ...{ kind: 'slack', name: 'Ü "n"', description: 'd', jobIds: [4_001, 4_002], maxPerMinute: 30 },
          eventTypes: ['job.run.errored', 'job.run.started'],
          filter: {
            ...NO_FILTER,
            environments: ['prod'],
            statuses: [20],
            transitions: ['recovery'],
            owners: ['a@example.com'],
          },
          ...{ hasRunDetails: true, isPerOwner: true, holdsRepeats: true },
          ...{ hasAuthorization: false, sealedOldSecret: 'old', oldSecretUntilUnixMs: 9, sealedHeaders: 'h' },
        });
        const kept = await subscriptions.add(given);
        expect(kept).toEqual({ ...given, ...FRESH_STANDING, updatedUnixMs: 100, urlVersion: 1, nextSlotUnixMs: 0 });
        expect(await subscriptions.find(ACCOUNT, given.id)).toEqual(kept);
        expect(await subscriptions.hasAny()).toBe(true);
      }));

    it('are those of an account alone, the oldest first, a part at a time', () =>
      withState(async ({ subscriptions }) => {
        for (const [name, createdUnixMs] of [
          ['c', 300],
          ['a', 200],
          ['b', 200],
        ] as const) {
          await subscriptions.add(subscription(name, { createdUnixMs }));
        }
        await subscriptions.add(subscription('x', { accountId: 7 }));
        const part = await subscriptions.list(ACCOUNT, { limit: 2, offset: 1 });
        expect([part.items.map(({ name }) => name), part.totalCount]).toEqual([['b', 'c'], 3]);
        expect(await subscriptions.find(ACCOUNT, 'wsu_x')).toBeUndefined();
        expect(await subscriptions.change(ACCOUNT, 'wsu_x', () => ({ name: 'y' }), 1)).toBeUndefined();
        expect(await subscriptions.remove(ACCOUNT, 'wsu_x')).toBe(false);
      }));

    it('are changed by what they are at that moment, or not at all', () =>
      withState(async ({ subscriptions }) => {
        const { id } = await subscriptions.add(subscription('a'));
        const both = ['1', '2'].map((end) =>
          subscriptions.change(ACCOUNT, id, ({ name }) => ({ name: `${name}${end}` }), 500),
        );
        await Promise.all(both);
        expect((await subscriptions.find(ACCOUNT, id))?.name).toMatch(/^a(12|21)$/);
        const refuse = () => {
          throw new Error('no');
        };
        await expect(subscriptions.change(ACCOUNT, id, refuse, 900)).rejects.toThrow('no');
        expect(await subscriptions.find(ACCOUNT, id)).toMatchObject({ updatedUnixMs: 500 });
      }));

    it('skip what waits when they become inactive, and start clean when they become active again', () =>
      withState(async (state) => {
        const { subscriptions, webhookEvents } = state;
        const added = await subscriptions.add(subscription('a'));
        await state.invocations.note([commandNote(1)], 3_000);
        const now = (await eventsOf(state, added.id))[0]?.createdUnixMs ?? 0;
        const claim = { holder: 'p', nowUnixMs: now, leaseUntilUnixMs: now + 1 };
        const [event] = await webhookEvents.claim(added, 1, claim);
        if (event === undefined) throw new Error('nothing was claimed');
        const failed = attempted(event, { next: { state: 'pending', dueUnixMs: now } });
        const standing = { ...FRESH_STANDING, failedCount: 3, failingSinceUnixMs: 4, pausedUntilUnixMs: 5 };
        await webhookEvents.finish([failed], 'p', () => ({ standing, archiveReason: null }));
        await subscriptions.change(ACCOUNT, added.id, () => ({ state: 'inactive' }), 600);
        expect((await eventsOf(state, added.id)).map(({ state: one }) => one)).toEqual(['skipped', 'skipped']);
        expect(await subscriptions.change(ACCOUNT, added.id, () => ({ state: 'active' }), 700)).toMatchObject({
          ...{ state: 'active', failedCount: 0, failingSinceUnixMs: null, pausedUntilUnixMs: 0 },
        });
        expect(await webhookEvents.countPending()).toBe(0);
      }));

    it('with a new URL start clean, and what failed at the old one is due at once, with all attempts before it', () =>
      withState(async (state) => {
        const { subscriptions, webhookEvents } = state;
        const added = await subscriptions.add(subscription('a'));
        await state.invocations.note([commandNote(1)], 3_000);
        const now = (await eventsOf(state, added.id))[0]?.createdUnixMs ?? 0;
        const [event] = await webhookEvents.claim(added, 1, { holder: 'p', nowUnixMs: now, leaseUntilUnixMs: now + 1 });
        if (event === undefined) throw new Error('nothing was claimed');
        const next = { state: 'pending', dueUnixMs: now + 3_600_000 } as const;
        const standing = {
          ...{ failedCount: 999, failingSinceUnixMs: 4, pausedUntilUnixMs: now + 60_000 },
          ...{ dispatchedUnixMs: 5, httpStatusCode: 500, lastError: 'no answer' },
        };
        await webhookEvents.finish([attempted(event, { next })], 'p', () => ({ standing, archiveReason: null }));
        const same = await subscriptions.change(ACCOUNT, added.id, ({ sealedUrl }) => ({ sealedUrl }), now + 1);
        expect(same).toMatchObject({ urlVersion: 1, ...standing });
        const moved = await subscriptions.change(ACCOUNT, added.id, () => ({ sealedUrl: 'another' }), now + 2);
        expect(moved).toMatchObject({ urlVersion: 2, ...FRESH_STANDING });
        const [tried, waiting] = await eventsOf(state, added.id);
        expect(tried).toMatchObject({ state: 'pending', roundCount: 0, attemptCount: 1, dueUnixMs: now + 2 });
        expect(waiting?.dueUnixMs).toBe(now);
      }));

    it('say nothing of a URL by what came of an attempt at the one before it', () =>
      withState(async (state) => {
        const { subscriptions, webhookEvents } = state;
        const added = await subscriptions.add(subscription('a'));
        await state.invocations.note([commandNote(1)], 3_000);
        const now = (await eventsOf(state, added.id))[0]?.createdUnixMs ?? 0;
        const claim = { holder: 'p', nowUnixMs: now, leaseUntilUnixMs: now + 1 };
        const [event] = await webhookEvents.claim(added, 1, claim);
        if (event === undefined) throw new Error('nothing was claimed');
        await subscriptions.change(ACCOUNT, added.id, () => ({ sealedUrl: 'another' }), now + 2);
        const gone = attempted(event, { next: { state: 'failed' }, isGone: true });
        const archive = () => ({ standing: { ...FRESH_STANDING, failedCount: 1 }, archiveReason: 'gone' });
        expect(await webhookEvents.finish([gone], 'p', archive)).toEqual([]);
        expect(await subscriptions.find(ACCOUNT, added.id)).toMatchObject({ state: 'active', ...FRESH_STANDING });
        expect((await eventsOf(state, added.id))[0]).toMatchObject({
          state: 'pending',
          roundCount: 0,
          attemptCount: 1,
        });
        expect(await webhookEvents.attemptsOf(event.id)).toHaveLength(1);
        const [again] = await webhookEvents.claim(added, 1, { ...claim, nowUnixMs: now + 9_000_000 });
        if (again === undefined) throw new Error('nothing was claimed');
        await webhookEvents.finish([attempted(again)], 'p', archive);
        expect((await eventsOf(state, added.id))[0]).toMatchObject({ state: 'delivered' });
      }));

    it('go with their events and their log', () =>
      withState(async (state) => {
        const { id } = await state.subscriptions.add(subscription('a'));
        await state.invocations.note([commandNote(1)], 3_000);
        expect(await state.subscriptions.remove(ACCOUNT, id)).toBe(true);
        expect(await state.subscriptions.find(ACCOUNT, id)).toBeUndefined();
        expect(await state.webhookEvents.countPending()).toBe(0);
      }));
  });
}
