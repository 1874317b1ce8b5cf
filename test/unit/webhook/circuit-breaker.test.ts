import { expect, it } from 'vitest';
import { archiveReasonOf, circuitBreaker, DEFAULT_BREAKER_LIMITS } from '../../../src/webhook/circuit-breaker.js';
import type { AttemptResult } from '../../../src/webhook/event.js';
import { FRESH_STANDING, type WebhookStanding } from '../../../src/webhook/subscription.js';
import { attempted } from '../../fake/webhook-facts.js';

const rule = circuitBreaker(DEFAULT_BREAKER_LIMITS);
const EVENT: AttemptResult['event'] = {
  ...{
    id: 'wev_1',
    subscriptionId: 'wsu_1',
    eventType: 'job.run.completed',
    state: 'pending',
    filteredReason: null,
    createdUnixMs: 0,
  },
  ...{ roundCount: 0, attemptCount: 0, dueUnixMs: 0, leaseUntilUnixMs: 0, httpStatusCode: null },
  facts: {
    ...{ jobId: 1, jobName: '', runId: 1, environmentId: 1, environmentName: '', projectId: 1, projectName: '' },
    ...{ engineVersion: '', status: 10, statusMessage: null, reason: null },
    ...{ startedUnixMs: 0, finishedUnixMs: 0, erroredUnixMs: null },
  },
};
const at = (startedUnixMs: number, isDelivered = false, given: Partial<AttemptResult> = {}) => {
  const result = attempted(EVENT, { next: isDelivered ? { state: 'delivered' } : { state: 'failed' }, ...given });
  return { ...result, attempt: { ...result.attempt, startedUnixMs, durationMs: 0, httpStatusCode: null } };
};

function afterFailures(count: number, from: WebhookStanding = FRESH_STANDING) {
  let last = { standing: from, archiveReason: null as string | null };
  for (let done = 0; done < count; done += 1) last = { ...rule(last.standing, [at(done * 1_000)]) };
  return last;
}

it('archives with the 1,000th failure in a row, and not before', () => {
  expect(afterFailures(999)).toMatchObject({ archiveReason: null, standing: { failedCount: 999 } });
  expect(afterFailures(1_000).archiveReason).toBe('1000 deliveries in a row have failed');
});

it('counts anew after a success', () => {
  const { standing } = rule(afterFailures(999).standing, [at(5_000_000, true)]);
  expect(standing).toMatchObject({ failedCount: 0, failingSinceUnixMs: null, pausedUntilUnixMs: 0 });
  expect(afterFailures(999, standing).archiveReason).toBeNull();
});

it('archives after 7 days of failures only, counted from the first', () => {
  const week = 7 * 86_400_000;
  const { standing } = rule(FRESH_STANDING, [at(1_000)]);
  expect(rule(standing, [at(week + 999)]).archiveReason).toBeNull();
  expect(rule(standing, [at(week + 1_000)]).archiveReason).toBe('every delivery of the last 7 days has failed');
  const recovered = rule(standing, [at(2_000, true)]).standing;
  expect(rule(recovered, [at(week + 1_000)]).archiveReason).toBeNull();
});

it('says why in words that can be parsed again', () => {
  const week = 7 * 86_400_000;
  const reasons = [
    afterFailures(1_000).archiveReason,
    rule({ ...FRESH_STANDING, failingSinceUnixMs: 1 }, [at(week + 1)]).archiveReason,
    rule(FRESH_STANDING, [at(0, false, { isGone: true })]).archiveReason,
  ];
  expect(reasons.map((words) => archiveReasonOf(words ?? ''))).toEqual([
    'failures_in_a_row',
    'failing_too_long',
    'gone',
  ]);
  expect(archiveReasonOf('for another reason')).toBeUndefined();
});

it('pauses from the 10th failure on, for longer each time, up to a minute', () => {
  const pauses = [9, 10, 11, 12, 13, 500].map((count) => {
    const { pausedUntilUnixMs } = afterFailures(count).standing;
    return pausedUntilUnixMs === 0 ? 0 : pausedUntilUnixMs - (count - 1) * 1_000;
  });
  expect(pauses).toEqual([0, 15_000, 30_000, 60_000, 60_000, 60_000]);
});

it('archives at once when an endpoint wants nothing more', () => {
  expect(rule(FRESH_STANDING, [at(0, false, { isGone: true })]).archiveReason).toContain('410');
});
