const SECONDS = /^\d{1,9}$/;
const HTTP_DATE = /^[A-Z][a-z]+,? .* GMT$/;

/** Parses a `Retry-After` header, seconds or an HTTP-date, to milliseconds from now; `null` if it is missing or invalid. */
export function parseRetryAfterMs(header: string | undefined, nowUnixMs: number): number | null {
  const text = header?.trim() ?? '';
  if (SECONDS.test(text)) return Number(text) * 1_000;
  const atUnixMs = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(atUnixMs) ? null : Math.max(0, atUnixMs - nowUnixMs);
}
