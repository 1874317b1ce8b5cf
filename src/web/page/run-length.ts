import type { CatalogRun } from '../../storage/run-catalog.js';

/** How long a run took, or has taken so far, in milliseconds; `null` while it waits. */
export function runLengthMs(
  { startedUnixMs, dequeuedUnixMs, finishedUnixMs }: CatalogRun,
  nowUnixMs: number,
): number | null {
  const fromUnixMs = startedUnixMs ?? dequeuedUnixMs;
  return fromUnixMs === null ? null : Math.max(0, (finishedUnixMs ?? nowUnixMs) - fromUnixMs);
}
