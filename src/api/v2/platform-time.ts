import humanizeDuration from 'humanize-duration';

/** A time as the platform writes it, in UTC with microseconds: `2021-12-07 10:32:24.326000+00:00`. */
export function formatTime(unixMs: number): string {
  return new Date(unixMs).toISOString().replace('T', ' ').replace('Z', '000+00:00');
}

/** As `formatTime`; `null` stays. */
export function formatTimeOrNull(unixMs: number | null): string | null {
  return unixMs === null ? null : formatTime(unixMs);
}

/** Whole seconds as `00:01:50`; hours go on after 24. */
export function formatDuration(durationMs: number): string {
  const seconds = wholeSeconds(durationMs);
  return [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
}

/** Whole seconds in words: `1 minute, 50 seconds`. */
export function humanDuration(durationMs: number): string {
  return humanizeDuration(wholeSeconds(durationMs) * 1_000, { units: ['d', 'h', 'm', 's'] });
}

/** How long ago that was, by its two largest units: `2 hours, 3 minutes ago`; empty for `null`. */
export function humanAge(unixMs: number | null, nowUnixMs: number): string {
  if (unixMs === null) return '';
  const ageMs = wholeSeconds(nowUnixMs - unixMs) * 1_000;
  return `${humanizeDuration(ageMs, { units: ['y', 'mo', 'w', 'd', 'h', 'm', 's'], largest: 2, round: true })} ago`;
}

function wholeSeconds(durationMs: number): number {
  return Math.max(0, Math.floor(durationMs / 1_000));
}
