const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** Maximum of timers in Node (about 24 days). */
const MAX_DURATION_MS = 2 ** 31 - 1;

/**
 * Reads `500ms`, `2s`, `1.5m`, `1h` or `7d` as milliseconds; `0` needs no unit. `undefined` when it is no duration or too long.
 * @param maxMs the longest; default the maximum of a timer, about 24 days
 */
export function parseDurationMs(text: string, maxMs = MAX_DURATION_MS): number | undefined {
  const trimmed = text.trim();
  if (trimmed === '0') return 0;
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/i.exec(trimmed);
  const unitMs = UNITS_MS[(match?.[2] ?? '').toLowerCase()];
  if (match === null || unitMs === undefined) return undefined;
  const durationMs = Math.round(Number(match[1]) * unitMs);
  return durationMs <= maxMs ? durationMs : undefined;
}

/** Between two runs of a job that is expected to run regularly, in milliseconds. */
const MIN_EXPECTED_MS = 60_000;
const MAX_EXPECTED_MS = 31 * 86_400_000;

/** Instead of a time: a job is expected as often as it has started of late. */
export const AS_USUAL = 0;

/** Reads how often a job is expected to run: `every` and a time from 1m to 31d, or `usual`. @returns milliseconds, or `AS_USUAL`; `undefined` for anything else */
export function parseExpectedMs(text: string): number | undefined {
  if (text.trim() === 'usual') return AS_USUAL;
  const expectedMs = parseDurationMs(/^every\s+(\S+)$/.exec(text.trim())?.[1] ?? '', MAX_EXPECTED_MS);
  return expectedMs !== undefined && expectedMs >= MIN_EXPECTED_MS ? expectedMs : undefined;
}

/** What is wrong with a text that `parseExpectedMs` does not read. */
export const EXPECTED_PROBLEM = 'must be a time from 1m to 31d after the word every, such as every 24h, or usual';

/** Spells how often a job is expected to run as `parseExpectedMs` reads it. */
export function formatExpected(expectMs: number): string {
  return expectMs === AS_USUAL ? 'usual' : `every ${formatDuration(expectMs)}`;
}

/** Spells milliseconds as `parseDurationMs` reads them, in the largest unit that divides them. */
export function formatDuration(durationMs: number): string {
  if (durationMs === 0) return '0s';
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    const unitMs = UNITS_MS[unit] ?? 1;
    if (durationMs % unitMs === 0) return `${durationMs / unitMs}${unit}`;
  }
  return `${durationMs}ms`;
}
