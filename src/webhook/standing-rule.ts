import type { StandingRule } from '../store/webhook/event-store.js';
import type { AttemptResult } from '../store/webhook/webhook-event.js';
import type { WebhookStanding } from '../store/webhook/webhook-subscription.js';
import { ARCHIVE_WORDS } from './archive-reason.js';

/** When a subscription is left alone for a while, and when for good. */
export interface StandingLimits {
  /** So many failed deliveries in a row archive a subscription. */
  readonly maxFailedCount: number;
  /** So does nothing but failures for so long, in milliseconds. */
  readonly maxFailingMs: number;
  /** From so many failures in a row on, there is a pause after each. */
  readonly pauseFromCount: number;
  /** The first pause, in milliseconds; each further one is twice as long, up to `maxPauseMs`. */
  readonly pauseMs: number;
  readonly maxPauseMs: number;
}

/** The hosted platform's limits, and pauses that a dead endpoint does not notice. */
export const DEFAULT_STANDING_LIMITS: StandingLimits = {
  maxFailedCount: 1_000,
  maxFailingMs: 7 * 86_400_000,
  pauseFromCount: 10,
  pauseMs: 15_000,
  maxPauseMs: 60_000,
};

/**
 * Counts failures and pauses, as a circuit breaker does. After a pause one attempt is made; it ends the pauses when it
 * succeeds.
 */
export function standingRule(limits: StandingLimits): StandingRule {
  return (before, attempts) => {
    let standing = before;
    for (const one of attempts) standing = after(standing, one, limits);
    return { standing, archiveReason: archiveReason(standing, attempts, limits) };
  };
}

function after(before: WebhookStanding, { attempt, next }: AttemptResult, limits: StandingLimits): WebhookStanding {
  const { startedUnixMs, httpStatusCode } = attempt;
  const seen = {
    dispatchedUnixMs: Math.max(before.dispatchedUnixMs ?? 0, startedUnixMs),
    httpStatusCode: httpStatusCode ?? before.httpStatusCode,
  };
  if (next.state === 'delivered') {
    return { ...seen, failedCount: 0, failingSinceUnixMs: null, pausedUntilUnixMs: 0 };
  }
  const failedCount = before.failedCount + 1;
  const pauses = failedCount - limits.pauseFromCount;
  const endedUnixMs = endOf(attempt);
  const pauseMs = Math.min(limits.pauseMs * 2 ** Math.min(pauses, 20), limits.maxPauseMs);
  return {
    ...seen,
    failedCount,
    failingSinceUnixMs: before.failingSinceUnixMs ?? endedUnixMs,
    pausedUntilUnixMs: pauses < 0 ? 0 : Math.max(before.pausedUntilUnixMs, endedUnixMs + pauseMs),
  };
}

function archiveReason(
  { failedCount, failingSinceUnixMs }: WebhookStanding,
  attempts: readonly AttemptResult[],
  { maxFailedCount, maxFailingMs }: StandingLimits,
): string | null {
  if (attempts.some(({ isGone }) => isGone)) return ARCHIVE_WORDS.gone();
  if (failedCount >= maxFailedCount) return ARCHIVE_WORDS.failures_in_a_row(failedCount);
  const last = Math.max(...attempts.map(({ attempt }) => endOf(attempt)));
  if (failingSinceUnixMs !== null && last - failingSinceUnixMs >= maxFailingMs) {
    return ARCHIVE_WORDS.failing_too_long(maxFailingMs);
  }
  return null;
}

function endOf({ startedUnixMs, durationMs }: AttemptResult['attempt']): number {
  return startedUnixMs + durationMs;
}
