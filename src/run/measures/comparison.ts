/** A run's duration compared with earlier runs of its job. All times in milliseconds. */
export interface Comparison {
  readonly totalMs: number;
  /** Earlier runs that it is compared with. */
  readonly count: number;
  readonly medianMs: number;
  /** 95 of 100 earlier runs were not longer. */
  readonly p95Ms: number;
  /** `totalMs` by the median; `null` where the median is 0. */
  readonly ratio: number | null;
  /** Whether it was longer than the 95th percentile. */
  readonly isSlow: boolean;
}

/**
 * Compares a run's length with those of earlier runs of its job. Between two lengths, percentiles are interpolated in
 * proportion, as `quantile_cont` of DuckDB and PostgreSQL's `percentile_cont` do it.
 * @param earlierMs in any order; which runs these are is the caller's choice, usually those of one job and command that succeeded
 * @returns `null` where there is nothing to compare with
 */
export function compareWithEarlier(totalMs: number, earlierMs: readonly number[]): Comparison | null {
  if (earlierMs.length === 0) return null;
  const sorted = [...earlierMs].sort((a, b) => a - b);
  const medianMs = quantile(sorted, 0.5);
  const p95Ms = quantile(sorted, 0.95);
  const ratio = medianMs === 0 ? null : totalMs / medianMs;
  return { totalMs, count: sorted.length, medianMs, p95Ms, ratio, isSlow: totalMs > p95Ms };
}

function quantile(sorted: readonly number[], share: number): number {
  const at = (sorted.length - 1) * share;
  const low = sorted[Math.floor(at)] ?? 0;
  const high = sorted[Math.ceil(at)] ?? low;
  return low + (high - low) * (at - Math.floor(at));
}
