import { formatDuration, parseDurationMs } from './duration.js';
import { isOff, type Setting } from './setting.js';

/** Bounds of `platform-interval`, in milliseconds: 5 s to a day. */
const MIN_INTERVAL_MS = 5_000;
const MAX_INTERVAL_MS = 86_400_000;

/** The setting that says where the hosted platform is. */
export const platformUrlSetting: Setting<string> = {
  placeholder: 'URL|off',
  summary: 'base URL of the hosted platform from which runs are pulled, such as https://cloud.example.com',
  expected: 'a URL such as https://cloud.example.com, or off',
  defaultText: 'off',
  parse: parsePlatformUrl,
  format: (value) => value,
};

/** The setting that says which of the platform's accounts is meant. */
export const platformAccountSetting: Setting<string> = {
  placeholder: 'ID|off',
  summary:
    'account of the platform from which runs are pulled, and the only one whose webhooks are accepted; off for any',
  expected: 'an account number, or off',
  defaultText: 'off',
  parse: (text) => (isOff(text) ? 'off' : parsePlatformId(text)),
  format: (value) => value,
};

/** The setting that says how often the platform is asked. */
export const platformIntervalSetting: Setting<number> = {
  placeholder: 'TIME',
  summary: 'how often pull --watch asks for new runs, and runs that are not complete are asked for again',
  expected: 'a time from 5s to 1d',
  defaultText: '1m',
  parse(text) {
    const intervalMs = parseDurationMs(text);
    if (intervalMs === undefined) return undefined;
    return intervalMs >= MIN_INTERVAL_MS && intervalMs <= MAX_INTERVAL_MS ? intervalMs : undefined;
  },
  format: formatDuration,
};

/** Reads a number of the platform: an account, a job or a run. Kept as text: it may exceed the safe range of a number. */
export function parsePlatformId(text: string): string | undefined {
  const digits = text.trim().replace(/^0+(?=\d)/, '');
  return /^\d{1,20}$/.test(digits) ? digits : undefined;
}

/**
 * A URL without a slash at its end, and without `/api` or `/api/v2`, which is appended again; `off` as it is. One with a
 * user or password in it is none: it would be logged.
 */
function parsePlatformUrl(text: string): string | undefined {
  if (isOff(text)) return 'off';
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    return undefined;
  }
  return url.origin + url.pathname.replace(/\/+$/, '').replace(/\/api(\/v[23])?$/, '');
}
