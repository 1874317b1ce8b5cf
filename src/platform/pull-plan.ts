import type { Invocation } from '../cli/command-line.js';
import type { Configuration } from '../config/configuration.js';
import { ConfigurationError } from '../config/configuration-error.js';
import { parseDurationMs } from '../config/duration.js';
import { quoted } from '../config/mask.js';
import { parsePlatformId } from '../config/platform-settings.js';
import type { SettingContext } from '../config/setting.js';
import { SETTINGS, type SettingKey, type SettingValues } from '../config/settings.js';

/** What a pull was asked to do. */
export interface PullPlan {
  /** With the platform as the flags have it. */
  readonly configuration: Configuration;
  readonly accountId: string;
  readonly wanted: WantedRuns;
}

/** Which runs. */
export type WantedRuns =
  | { readonly kind: 'one'; readonly runId: string }
  | { readonly kind: 'list' | 'watch'; readonly jobId: string | null; readonly sinceUnixMs: number };

/** How far a watch looks back at its start by default, in milliseconds: a day. */
const WATCH_BACK_MS = 86_400_000;

/** Puts flags and configuration together. @throws ConfigurationError with every problem at once. */
export function planPull({ context, flags, switches }: Invocation, resolved: Configuration): PullPlan {
  const problems: string[] = [];
  const settingContext: SettingContext = { baseDir: context.workingDir, homeDir: context.homeDir };
  const configuration: Configuration = {
    ...resolved,
    'platform-url': setting('base-url', 'platform-url'),
    'platform-account': setting('account', 'platform-account'),
    'platform-interval': setting('interval', 'platform-interval'),
  };
  const { 'platform-url': url, 'platform-account': accountId, platformSecrets } = configuration;
  if (url === 'off' && flags['base-url'] === undefined)
    problems.push('--base-url is missing: name the platform, such as https://cloud.example.com');
  if (accountId === 'off' && flags.account === undefined)
    problems.push("--account is missing: name the account's number (it is in the platform's addresses)");
  if (platformSecrets.token === null) {
    problems.push('RUN_BRIDGE_PLATFORM_TOKEN is not set: set it to a token of the platform that may read the account');
  }
  const wanted = findWanted();
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { configuration, accountId, wanted };

  function setting<K extends SettingKey>(flag: string, key: K): SettingValues[K] {
    const text = flags[flag];
    if (text === undefined) return resolved[key];
    const value = SETTINGS[key].parse(text, settingContext);
    if (value !== undefined) return value;
    problems.push(`--${flag}: ${quoted(text)} is not ${SETTINGS[key].expected}`);
    return resolved[key];
  }

  function findWanted(): WantedRuns {
    const isWatch = switches.has('watch');
    const runId = id('run');
    const jobId = id('job');
    const sinceUnixMs = since();
    if (flags.interval !== undefined && !isWatch) problems.push('--interval goes with --watch');
    if (flags.run !== undefined) {
      const others = [...['job', 'since'].filter((flag) => flags[flag] !== undefined), ...(isWatch ? ['watch'] : [])];
      if (others.length > 0)
        problems.push(`--run is one run: leave out ${others.map((flag) => `--${flag}`).join(' and ')}`);
      return { kind: 'one', runId: runId ?? '' };
    }
    if (!isWatch && flags.since === undefined) {
      problems.push(
        'no runs given: pass --run ID, --since TIME (such as 24h), or --watch; --job ID goes with the last two',
      );
    }
    const defaultSince = context.clock.nowUnixMs() - WATCH_BACK_MS;
    return { kind: isWatch ? 'watch' : 'list', jobId, sinceUnixMs: sinceUnixMs ?? defaultSince };
  }

  function id(flag: string): string | null {
    const text = flags[flag];
    if (text === undefined) return null;
    const parsed = parsePlatformId(text);
    if (parsed === undefined) problems.push(`--${flag}: ${JSON.stringify(text)} is not a number of the platform`);
    return parsed ?? null;
  }

  function since(): number | undefined {
    if (flags.since === undefined) return undefined;
    const unixMs = parseSinceTime(flags.since, context.clock.nowUnixMs());
    if (unixMs === undefined) {
      problems.push(
        `--since: ${JSON.stringify(flags.since)} is not a time in the past such as 24h or 2026-01-31T08:00Z`,
      );
    }
    return unixMs;
  }
}

const ISO_TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?(Z|[+-]\d\d:?\d\d)?$/i;
/** A hundred years. */
const MAX_BACK_MS = 36_525 * 86_400_000;

/**
 * Parses a time: `24h` or `30d` ago, or ISO 8601, in UTC without a zone.
 * @returns milliseconds since the Unix epoch; `undefined` if it is neither, or in the future
 */
export function parseSinceTime(text: string, nowUnixMs: number): number | undefined {
  const backMs = parseDurationMs(text, MAX_BACK_MS);
  if (backMs !== undefined) return nowUnixMs - backMs;
  const [, date, time = '00:00', zone = 'Z'] = ISO_TIME.exec(text.trim()) ?? [];
  const unixMs = Date.parse(`${date}T${time}${zone.toUpperCase()}`);
  return Number.isNaN(unixMs) || unixMs > nowUnixMs ? undefined : unixMs;
}
