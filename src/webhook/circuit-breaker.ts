import type { AttemptResult } from './event.js';
import type { WebhookStanding } from './subscription.js';

/** How attempts change a subscription's standing, and why they archive it, if they do. */
export type CircuitBreaker = (
  before: WebhookStanding,
  attempts: readonly AttemptResult[],
) => {
  readonly standing: WebhookStanding;
  readonly archiveReason: string | null;
  /** How much of the way to archiving it has just reached, in percent; left out where it reached none of `NOTICE_LEVELS`. */
  readonly reached?: number;
};

/** Percentages of the way to archiving at which a notice is sent; the last is archiving. */
const NOTICE_LEVELS = [50, 80] as const;

/** When deliveries to a subscription pause, and when they end. */
export interface BreakerLimits {
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

/** The hosted platform's limits, with pauses in between. */
export const DEFAULT_BREAKER_LIMITS: BreakerLimits = {
  maxFailedCount: 1_000,
  maxFailingMs: 7 * 86_400_000,
  pauseFromCount: 10,
  pauseMs: 15_000,
  maxPauseMs: 60_000,
};

/** Counts failures in a row, and opens after some of them. After a pause one attempt is made; it closes the breaker when it succeeds. */
export function circuitBreaker(limits: BreakerLimits): CircuitBreaker {
  return (before, attempts) => {
    let standing = before;
    for (const one of attempts) standing = after(standing, one, limits);
    const last = Math.max(...attempts.map(({ attempt }) => endOf(attempt)));
    const wayBefore = percentOf(before, before.dispatchedUnixMs ?? 0, limits);
    const way = percentOf(standing, last, limits);
    const level = NOTICE_LEVELS.findLast((one) => wayBefore < one && way >= one);
    const reason = archiveReason(standing, attempts, limits);
    const reached = reason === null ? level : 100;
    return { standing, archiveReason: reason, ...(reached !== undefined && { reached }) };
  };
}

function percentOf(
  { failedCount, failingSinceUnixMs }: WebhookStanding,
  nowUnixMs: number,
  { maxFailedCount, maxFailingMs }: BreakerLimits,
): number {
  const failingMs = failingSinceUnixMs === null ? 0 : nowUnixMs - failingSinceUnixMs;
  return 100 * Math.max(failedCount / maxFailedCount, failingMs / maxFailingMs);
}

function after(before: WebhookStanding, { attempt, next }: AttemptResult, limits: BreakerLimits): WebhookStanding {
  const { startedUnixMs, httpStatusCode, error } = attempt;
  const seen = {
    dispatchedUnixMs: Math.max(before.dispatchedUnixMs ?? 0, startedUnixMs),
    httpStatusCode: httpStatusCode ?? before.httpStatusCode,
    lastError: error,
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
  { maxFailedCount, maxFailingMs }: BreakerLimits,
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

/** Why a subscription was archived, as a closed set. */
export type ArchiveReason = 'gone' | 'failures_in_a_row' | 'failing_too_long';

/** The same in words, as people read it and as the state keeps it. */
export const ARCHIVE_WORDS = {
  gone: () => 'the endpoint answered 410 Gone: it wants nothing more',
  failures_in_a_row: (failedCount: number) => `${failedCount} deliveries in a row have failed`,
  failing_too_long: (failingMs: number) =>
    `every delivery of the last ${Math.round(failingMs / 86_400_000)} days has failed`,
} as const satisfies Readonly<Record<ArchiveReason, (figure: number) => string>>;

/** @returns `undefined` for unknown words, for example those of another version */
export function archiveReasonOf(words: string): ArchiveReason | undefined {
  if (words.startsWith('the endpoint answered 410')) return 'gone';
  if (words.endsWith('deliveries in a row have failed')) return 'failures_in_a_row';
  return words.startsWith('every delivery of the last') ? 'failing_too_long' : undefined;
}

/** When attempts are made. */
export interface AttemptSchedule {
  /** Waits between attempts, in milliseconds; one less than there are attempts. */
  readonly delaysMs: readonly number[];
  /** An endpoint that asks for a longer wait is asked again after this one, in milliseconds. */
  readonly maxRetryAfterMs: number;
}

/** Five attempts: at once, then about 10 s, 1 min, 10 min and 1 h later. */
export const DEFAULT_ATTEMPT_SCHEDULE: AttemptSchedule = {
  delaysMs: [10_000, 60_000, 600_000, 3_600_000],
  maxRetryAfterMs: 3_600_000,
};

/** A wait is up to this part longer than planned, so that what failed together does not come back together. */
const JITTER_PART = 0.1;

/**
 * Returns when the next attempt is made.
 * @param attempts made so far, from 1
 * @param retryAfterMs what the endpoint asked for: never less than that, within bounds; `null` for nothing
 * @param random uniform in [0, 1)
 * @returns milliseconds from now; `undefined` when no attempt is left
 */
export function nextAttemptInMs(
  { delaysMs, maxRetryAfterMs }: AttemptSchedule,
  attempts: number,
  retryAfterMs: number | null,
  random: () => number,
): number | undefined {
  const planned = delaysMs[attempts - 1];
  if (planned === undefined) return undefined;
  const wanted = Math.max(planned, Math.min(retryAfterMs ?? 0, maxRetryAfterMs));
  return Math.round(wanted * (1 + JITTER_PART * random()));
}
