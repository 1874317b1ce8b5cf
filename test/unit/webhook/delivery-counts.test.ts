import { expect, it } from 'vitest';
import { CountsBySubscription } from '../../../src/webhook/dispatcher.js';

const NOTHING = {
  ...{ deliveredCount: 0, failedCount: 0, skippedCount: 0, failedAttemptCount: 0 },
  ...{ deliveredMs: 0, failedMs: 0 },
};

it('adds up what became of deliveries, each subscription for itself', () => {
  const countsBySubscription = new CountsBySubscription();
  countsBySubscription.add('a', { deliveredCount: 1, deliveredMs: 20 });
  countsBySubscription.add('b', { failedAttemptCount: 1, failedMs: 7, failedCount: 1 });
  countsBySubscription.add('a', { deliveredCount: 1, deliveredMs: 5 });
  countsBySubscription.archive({
    id: 'b',
    reason: 'the endpoint answered 410 Gone: it wants nothing more',
    skippedCount: 3,
  });
  expect(countsBySubscription.of('a')).toEqual({ ...NOTHING, deliveredCount: 2, deliveredMs: 25 });
  expect(countsBySubscription.of('b')).toEqual({
    ...NOTHING,
    failedAttemptCount: 1,
    failedMs: 7,
    failedCount: 1,
    skippedCount: 3,
  });
  expect(countsBySubscription.of('c')).toEqual(NOTHING);
  expect(countsBySubscription.archivings).toEqual({ gone: 1, failures_in_a_row: 0, failing_too_long: 0 });
});

it('forgets the subscription that nothing happened to for longest, when there are 10,000', () => {
  const countsBySubscription = new CountsBySubscription();
  for (let id = 0; id < 10_000; id++) countsBySubscription.add(String(id), { deliveredCount: 1 });
  countsBySubscription.add('0', { deliveredCount: 1 });
  countsBySubscription.add('new', { deliveredCount: 1 });
  expect(['0', '1', '2', 'new'].map((id) => countsBySubscription.of(id).deliveredCount)).toEqual([2, 0, 1, 1]);
});
