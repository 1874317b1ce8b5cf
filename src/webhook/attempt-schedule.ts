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
 * When the next attempt is made.
 * @param attempts made so far, from 1
 * @param retryAfterMs what the endpoint asked for: never less than that, within bounds; `null` for nothing
 * @param random uniform in [0, 1)
 * @returns milliseconds from now; `undefined` where there is none any more
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
