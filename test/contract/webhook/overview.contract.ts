import { describe, expect, it } from 'vitest';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import type { CircuitBreaker } from '../../../src/webhook/circuit-breaker.js';
import { attempted, commandNote, type FeatureState, subscription } from '../../fake/webhook-facts.js';

/** What is claimed then is due, whatever the clock said when it came to be. */
const LATER = 9_000_000_000_000;
const CLAIM = { holder: 'p', nowUnixMs: LATER, leaseUntilUnixMs: LATER + 45_000 };

/** What every WebhookOverviewStore does. `withState` gives the body an empty state and clears it away afterwards. */
export function webhookOverviewStoreContract(
  withState: (body: (state: FeatureState) => Promise<void>) => Promise<void>,
): void {
  describe('the overview of webhooks', () => {
    it('is empty where nobody subscribes', () =>
      withState(async ({ subscriptions }) => {
        expect(await subscriptions.readOverview(9)).toEqual({
          countByState: { active: 0, inactive: 0, archived: 0 },
          subscriptions: [],
        });
      }));

    it('has subscriptions of all accounts, with what waits for each and since when', () =>
      withState(async (state) => {
        const { subscriptions, webhookEvents } = state;
        const a = await subscriptions.add(subscription('a', { eventTypes: ['job.run.completed'] }));
        await subscriptions.add(subscription('b', { accountId: 7, createdUnixMs: 200 }));
        await subscriptions.add(subscription('c', { createdUnixMs: 300, state: 'inactive' }));
        for (const [number, nowUnixMs] of [
          [1, 50],
          [2, 60],
          [3, 70],
        ] as const) {
          await state.invocations.note([commandNote(number)], nowUnixMs);
        }
        const [first] = await webhookEvents.claim(a, 1, CLAIM);
        if (first === undefined) throw new Error('nothing was claimed');
        const failing: CircuitBreaker = (standing) => ({
          standing: { ...standing, failedCount: 12, failingSinceUnixMs: 80, pausedUntilUnixMs: 90 },
          archiveReason: null,
        });
        await webhookEvents.finish([attempted(first, { next: { state: 'failed' } })], 'p', failing);
        const second = (
          await webhookEvents.list(FIRST_ACCOUNT_ID, { of: { subscriptionId: a.id }, limit: 1, offset: 1 })
        ).items[0];
        const nothing = { failedCount: 0, failingSinceUnixMs: null, pausedUntilUnixMs: 0, archiveReason: null };
        const idle = { ...nothing, pendingCount: 0, oldestPendingUnixMs: null };
        const rest = { accountId: FIRST_ACCOUNT_ID, kind: 'http' };
        expect(await subscriptions.readOverview(9)).toEqual({
          countByState: { active: 2, inactive: 1, archived: 0 },
          subscriptions: [
            {
              ...{ ...rest, id: 'wsu_a', name: 'a', state: 'active', archiveReason: null, failedCount: 12 },
              ...{ failingSinceUnixMs: 80, pausedUntilUnixMs: 90 },
              ...{ pendingCount: 2, oldestPendingUnixMs: second?.createdUnixMs },
            },
            { ...rest, ...idle, id: 'wsu_b', name: 'b', state: 'active', accountId: 7 },
            { ...rest, ...idle, id: 'wsu_c', name: 'c', state: 'inactive' },
          ],
        });
      }));

    it('begins with those that are archived, and counts all where it shows some', () =>
      withState(async ({ subscriptions }) => {
        for (const id of ['a', 'b']) await subscriptions.add(subscription(id));
        await subscriptions.add(subscription('c', { state: 'archived', archiveReason: 'gone' }));
        const { countByState, subscriptions: shown } = await subscriptions.readOverview(2);
        expect(countByState).toEqual({ active: 2, inactive: 0, archived: 1 });
        expect(shown.map(({ id, archiveReason }) => [id, archiveReason])).toEqual([
          ['wsu_c', 'gone'],
          ['wsu_a', null],
        ]);
      }));
  });
}
