import { allowedHostsSetting } from './allowed-hosts-setting.js';
import {
  type ArtifactPlace,
  artifactsEndpointSetting,
  artifactsPathStyleSetting,
  artifactsRegionSetting,
  artifactsSetting,
  type PATH_STYLES,
} from './artifact-settings.js';
import { databaseUrlSetting } from './database-url-setting.js';
import { formatDuration, parseDurationMs } from './duration.js';
import { formatListenAddress, type ListenAddress, parseListenAddress } from './listen-address.js';
import { platformAccountSetting, platformIntervalSetting, platformUrlSetting } from './platform-settings.js';
import { ageSetting } from './retention-settings.js';
import { choiceSetting, parsePath, type Setting, switchSetting } from './setting.js';
import { sizeOrWordSetting, sizeSetting } from './size-setting.js';
import {
  publicUrlSetting,
  smtpFromSetting,
  smtpUrlSetting,
  webhookAllowSetting,
  webhookRetriesSetting,
} from './webhook-settings.js';

/** How much of SQL and its literals leaves the machine; see `docs/configuration.md`. */
export const REDACTION_LEVELS = ['literals', 'statements', 'off'] as const;
/** Who may send telemetry; see `docs/tokens.md`. */
export const OTLP_AUTHS = ['auto', 'token', 'none'] as const;
/** What an answer means; see `docs/operations.md`. */
export const DURABILITIES = ['fsync', 'os'] as const;
/** How many run-bridges share a database; see `docs/several-processes.md`. */
export const PROCESSES = ['one', 'several'] as const;
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export const LOG_FORMATS = ['auto', 'text', 'json'] as const;

/** The values of the settings that are one word or number, by the name that file, flag and environment share. */
export interface SettingValues {
  readonly http: ListenAddress;
  readonly grpc: ListenAddress | 'off';
  readonly web: ListenAddress;
  readonly 'otlp-auth': (typeof OTLP_AUTHS)[number];
  /** In lower case; one with a dot in front stands for all names below it. */
  readonly 'allowed-hosts': readonly string[];
  readonly 'data-dir': string;
  /** With its password, or `off`. */
  readonly 'database-url': string;
  readonly processes: (typeof PROCESSES)[number];
  readonly parquet: boolean;
  /** `-` is standard output, `off` no stream, anything else an absolute path. */
  readonly jsonl: string;
  readonly 'max-body-bytes': number;
  readonly durability: (typeof DURABILITIES)[number];
  /** In bytes. */
  readonly 'max-memory': number;
  /** In bytes, or `off`. */
  readonly 'max-disk': number | 'off';
  /** In bytes, `off`, or `auto`: the smaller of 1 GiB and 5 % of the file system. */
  readonly 'disk-reserve': number | 'auto' | 'off';
  readonly 'invocation-quiet': number;
  readonly 'invocation-silence': number;
  readonly 'event-hold': number;
  /** In milliseconds, or `off`. */
  readonly 'max-backlog-age': number | 'off';
  readonly 'max-running-jobs': number;
  /** Without a slash at its end, or `off`. */
  readonly 'platform-url': string;
  /** A text of digits, or `off`. */
  readonly 'platform-account': string;
  /** In milliseconds. */
  readonly 'platform-interval': number;
  /** In bytes. */
  readonly 'platform-max-file': number;
  readonly artifacts: ArtifactPlace | 'folder';
  readonly 'artifacts-endpoint': string;
  readonly 'artifacts-region': string;
  readonly 'artifacts-path-style': (typeof PATH_STYLES)[number];
  /** In bytes. */
  readonly 'max-artifact-bytes': number;
  /** In milliseconds, or `off`; so are other ages. */
  readonly 'retain-telemetry-age': number | 'off';
  /** In bytes, or `off`; so are other sizes. */
  readonly 'retain-telemetry-size': number | 'off';
  readonly 'retain-artifacts-age': number | 'off';
  readonly 'retain-artifacts-size': number | 'off';
  readonly 'retain-deliveries-age': number | 'off';
  readonly 'retain-deliveries-size': number | 'off';
  /** Addresses, ranges, and the words `loopback` and `private`. */
  readonly 'webhook-allow': readonly string[];
  /** In milliseconds each. */
  readonly 'webhook-retries': readonly number[];
  /** Without a slash at its end, or `off`. */
  readonly 'public-url': string;
  /** With its password, or `off`. */
  readonly 'smtp-url': string;
  readonly 'smtp-from': string;
  readonly redaction: (typeof REDACTION_LEVELS)[number];
  readonly 'log-level': (typeof LOG_LEVELS)[number];
  readonly 'log-format': (typeof LOG_FORMATS)[number];
}

export type SettingKey = keyof SettingValues;

/** The program takes about 75 MiB before the first request comes, and some 300 MiB after it has written large Parquet files, of which a third is not counted. */
const MIN_MEMORY_BYTES = 256 * 2 ** 20;

/** Every such setting, in the order of help texts, `run-bridge config` and the documentation. */
export const SETTINGS: { readonly [K in SettingKey]: Setting<SettingValues[K]> } = {
  http: address('127.0.0.1:4318', 'where OTLP over HTTP is received; port 0 picks a free one'),
  grpc: {
    ...address('127.0.0.1:4317', 'where OTLP over gRPC is received; port 0 picks a free one; off for not at all'),
    placeholder: 'HOST:PORT|off',
    expected: 'off, an address such as 127.0.0.1:4317 or a port from 0 to 65535',
    parse: (text) => (text.trim().toLowerCase() === 'off' ? 'off' : parseListenAddress(text)),
    format: (value) => (value === 'off' ? 'off' : formatListenAddress(value)),
  },
  web: address('127.0.0.1:4380', 'where pages, the API and health are served; port 0 picks a free one'),
  'otlp-auth': choiceSetting(
    OTLP_AUTHS,
    'auto',
    'who may send telemetry: whoever has a token (token), everybody (none), or everybody at loopback addresses and whoever has a token at others (auto)',
  ),
  'allowed-hosts': allowedHostsSetting,
  'data-dir': {
    placeholder: 'DIR',
    summary: 'folder for runs and state (default: $XDG_DATA_HOME/run-bridge, else ~/.local/share/run-bridge)',
    expected: 'a path',
    defaultText: null,
    parse: parsePath,
    format: (value) => value,
  },
  'database-url': databaseUrlSetting,
  processes: choiceSetting(
    PROCESSES,
    'one',
    'whether one run-bridge serves the database, or several share it and a bucket; several needs --database-url and --artifacts s3://…',
  ),
  parquet: switchSetting(true, "write a Parquet file at each invocation's end"),
  jsonl: {
    placeholder: '-|PATH',
    summary: 'also stream every record as JSON lines to standard output (-) or append it to one file; off for neither',
    expected: '-, off or a path',
    defaultText: 'off',
    parse: (text, context) => (text === '-' || text === 'off' ? text : parsePath(text, context)),
    format: (value) => value,
  },
  'max-body-bytes': sizeSetting('64MiB', 'largest request body after inflating; a larger one is answered 413'),
  durability: choiceSetting(
    DURABILITIES,
    'fsync',
    'answer once the disk has the records (fsync), or once the operating system has them (os): less work, but the last seconds are lost when the machine, not just the program, goes down',
  ),
  'max-memory': sizeSetting(
    null,
    "memory that the program may take; near it requests are answered 503 (default: a quarter of the machine's or container's)",
    MIN_MEMORY_BYTES,
  ),
  'max-disk': sizeOrWordSetting(
    ['off'],
    'off',
    'what the data folder may hold; from there on requests are answered 503; off for no limit',
  ),
  'disk-reserve': sizeOrWordSetting(
    ['auto', 'off'],
    'auto',
    'what is kept free on the file system of the data folder; below it requests are answered 503; auto is 1 GiB or 5 %, whichever is less',
  ),
  'invocation-quiet': duration('2s', 'an invocation whose own span has ended is over after this long without a record'),
  'invocation-silence': duration('10m', 'an invocation without any end is lost after this long without a record'),
  'event-hold': duration('2s', 'how long a span waits for log records that belong to it before it is exported'),
  'max-backlog-age': {
    placeholder: 'TIME|off',
    summary: 'what a destination has not taken for this long is given up; the runs stay on disk; off for never',
    expected: 'a time such as 12h or 7d, or off',
    defaultText: '7d',
    parse: (text) => parseAge(text),
    format: (value) => (value === 'off' ? 'off' : formatDuration(value)),
  },
  'max-running-jobs': {
    placeholder: 'NUMBER',
    summary: 'runs of jobs that are under way at a time; those of one job follow each other',
    expected: 'a number from 1 to 64',
    defaultText: '1',
    parse: (text) => (/^[1-9]\d?$/.test(text.trim()) && Number(text) <= 64 ? Number(text) : undefined),
    format: String,
  },
  'platform-url': platformUrlSetting,
  'platform-account': platformAccountSetting,
  'platform-interval': platformIntervalSetting,
  'platform-max-file': sizeSetting('512MiB', "largest Parquet file of a hosted run's step that is downloaded"),
  artifacts: artifactsSetting,
  'artifacts-endpoint': artifactsEndpointSetting,
  'artifacts-region': artifactsRegionSetting,
  'artifacts-path-style': artifactsPathStyleSetting,
  'max-artifact-bytes': sizeSetting(
    '256MiB',
    'largest artifact of a step; exec leaves a larger one out, an upload of one is answered 413',
  ),
  'retain-telemetry-age': ageSetting('runs that ended longer ago are removed, with all that is kept of them'),
  'retain-telemetry-size': sizeOrWordSetting(
    ['off'],
    'off',
    'what record logs and Parquet files may take together; of more, the oldest runs are removed',
  ),
  'retain-artifacts-age': ageSetting('artifacts of runs that ended longer ago are removed'),
  'retain-artifacts-size': sizeOrWordSetting(
    ['off'],
    'off',
    'what artifacts may take together; of more, those of the oldest runs are removed',
  ),
  'retain-deliveries-age': ageSetting(
    'events of webhooks that are older are removed, with the log of their attempts',
    '7d',
  ),
  'retain-deliveries-size': sizeOrWordSetting(
    ['off'],
    'off',
    'what events of webhooks and the log of attempts may take together; of more, the oldest are removed',
  ),
  'webhook-allow': webhookAllowSetting,
  'webhook-retries': webhookRetriesSetting,
  'public-url': publicUrlSetting,
  'smtp-url': smtpUrlSetting,
  'smtp-from': smtpFromSetting,
  redaction: choiceSetting(
    REDACTION_LEVELS,
    'literals',
    'what everything that leaves the machine hides (exports, webhooks, chats, mail): literals in SQL, whole statements, or nothing; files on disk keep everything, and who may read artifacts sees it',
  ),
  'log-level': choiceSetting(LOG_LEVELS, 'info', "least severe lines of the program's own log"),
  'log-format': choiceSetting(LOG_FORMATS, 'auto', 'auto is text on a terminal, JSON elsewhere'),
};

/** The settings' names in order. */
export const SETTING_KEYS = Object.keys(SETTINGS) as readonly SettingKey[];

/** Reads `max-backlog-age`: a time that is not 0, or `off`. `undefined` when it is neither. */
export function parseAge(text: string): number | 'off' | undefined {
  if (text.trim().toLowerCase() === 'off') return 'off';
  return parseDurationMs(text) || undefined;
}

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
    parse: (text) => parseDurationMs(text),
    format: formatDuration,
  };
}
