const SECONDS = /^\d{1,9}$/;
const HTTP_DATE = /^[A-Z][a-z]+,? .* GMT$/;

/** Reads a `Retry-After` header, seconds or an HTTP-date, as milliseconds from now; `null` when there is none or it is neither. */
export function parseRetryAfterMs(header: string | undefined, nowUnixMs: number): number | null {
  const text = header?.trim() ?? '';
  if (SECONDS.test(text)) return Number(text) * 1_000;
  const atUnixMs = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(atUnixMs) ? null : Math.max(0, atUnixMs - nowUnixMs);
}
