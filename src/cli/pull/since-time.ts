import { parseDurationMs } from '../../config/duration.js';

const ISO_TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?(Z|[+-]\d\d:?\d\d)?$/i;
/** A hundred years. */
const MAX_BACK_MS = 36_525 * 86_400_000;

/**
 * Reads a time: `24h` or `30d` ago, or in ISO 8601, which is UTC where no zone is said.
 * @returns milliseconds since the Unix epoch; `undefined` when it is neither, or in the future
 */
export function parseSinceTime(text: string, nowUnixMs: number): number | undefined {
  const backMs = parseDurationMs(text, MAX_BACK_MS);
  if (backMs !== undefined) return nowUnixMs - backMs;
  const [, date, time = '00:00', zone = 'Z'] = ISO_TIME.exec(text.trim()) ?? [];
  const unixMs = Date.parse(`${date}T${time}${zone.toUpperCase()}`);
  return Number.isNaN(unixMs) || unixMs > nowUnixMs ? undefined : unixMs;
}
