import { formatByteSize, parseByteSize } from './byte-size.js';
import { formatDuration, parseDurationMs } from './duration.js';
import { formatListenAddress, type ListenAddress, parseListenAddress } from './listen-address.js';
import { choiceSetting, parsePath, type Setting, switchSetting } from './setting.js';

/** How much of SQL and its literals leaves the machine; see `docs/configuration.md`. */
export const REDACTION_LEVELS = ['literals', 'statements', 'off'] as const;
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export const LOG_FORMATS = ['auto', 'text', 'json'] as const;

/** The values of the settings that are one word or number, by the name that file, flag and environment share. */
export interface SettingValues {
  readonly http: ListenAddress;
  readonly web: ListenAddress;
  readonly 'data-dir': string;
  readonly parquet: boolean;
  /** `-` is standard output, `off` no stream, anything else an absolute path. */
  readonly jsonl: string;
  readonly 'max-body-bytes': number;
  readonly 'invocation-quiet': number;
  readonly 'invocation-silence': number;
  readonly 'event-hold': number;
  readonly redaction: (typeof REDACTION_LEVELS)[number];
  readonly 'log-level': (typeof LOG_LEVELS)[number];
  readonly 'log-format': (typeof LOG_FORMATS)[number];
}

export type SettingKey = keyof SettingValues;

/** Every such setting, in the order of help texts, `run-bridge config` and the documentation. */
export const SETTINGS: { readonly [K in SettingKey]: Setting<SettingValues[K]> } = {
  http: address('127.0.0.1:4318', 'where OTLP over HTTP is received; port 0 picks a free one'),
  web: address('127.0.0.1:4380', 'where health is served; port 0 picks a free one'),
  'data-dir': {
    placeholder: 'DIR',
    summary: 'folder for runs and state (default: $XDG_DATA_HOME/run-bridge, else ~/.local/share/run-bridge)',
    expected: 'a path',
    defaultText: null,
    parse: parsePath,
    format: (value) => value,
  },
  parquet: switchSetting(true, "write a Parquet file at each invocation's end"),
  jsonl: {
    placeholder: '-|PATH',
    summary: 'also stream every record as JSON lines to standard output (-) or append it to one file; off for neither',
    expected: '-, off or a path',
    defaultText: 'off',
    parse: (text, context) => (text === '-' || text === 'off' ? text : parsePath(text, context)),
    format: (value) => value,
  },
  'max-body-bytes': {
    placeholder: 'SIZE',
    summary: 'largest request body after inflating; a larger one is answered 413',
    expected: 'a size such as 64MiB or 500000',
    defaultText: '64MiB',
    parse: parseByteSize,
    format: formatByteSize,
  },
  'invocation-quiet': duration('2s', 'an invocation whose own span has ended is over after this long without a record'),
  'invocation-silence': duration('10m', 'an invocation without any end is lost after this long without a record'),
  'event-hold': duration('2s', 'how long a span waits for log records that belong to it before it is exported'),
  redaction: choiceSetting(
    REDACTION_LEVELS,
    'literals',
    'what exports hide: literals in SQL, whole statements, or nothing; files on disk keep everything',
  ),
  'log-level': choiceSetting(LOG_LEVELS, 'info', "least severe lines of the program's own log"),
  'log-format': choiceSetting(LOG_FORMATS, 'auto', 'auto is text on a terminal, JSON elsewhere'),
};

/** The settings' names in order. */
export const SETTING_KEYS = Object.keys(SETTINGS) as readonly SettingKey[];

/** The environment variable of a setting, for example `RUN_BRIDGE_DATA_DIR`. */
export function environmentName(key: string): string {
  return `RUN_BRIDGE_${key.toUpperCase().replaceAll('-', '_')}`;
}

function address(defaultText: string, summary: string): Setting<ListenAddress> {
  const expected = 'an address such as 127.0.0.1:4318 or a port from 0 to 65535';
  return {
    placeholder: 'HOST:PORT',
    summary,
    expected,
    defaultText,
    parse: parseListenAddress,
    format: formatListenAddress,
  };
}

function duration(defaultText: string, summary: string): Setting<number> {
  return {
    placeholder: 'TIME',
    summary,
    expected: 'a time such as 500ms, 2s or 10m',
    defaultText,
    parse: parseDurationMs,
    format: formatDuration,
  };
}
