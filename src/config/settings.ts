import { formatDuration, parseDurationMs } from './duration.js';
import { formatListenAddress, type ListenAddress, parseListenAddress } from './listen-address.js';
import { MASK } from './mask.js';
import { platformAccountSetting, platformIntervalSetting, platformUrlSetting } from './platform-settings.js';
import { retentionSetting } from './retention-settings.js';
import { choiceSetting, isOff, parsePath, parseSwitch, type Setting, switchSetting } from './setting.js';
import { sizeOrWordSetting, sizeSetting } from './size-setting.js';
import {
  notifyOnArchiveSetting,
  publicUrlSetting,
  smtpFromSetting,
  smtpUrlSetting,
  webhookAllowSetting,
  webhookProxySetting,
  webhookRetriesSetting,
} from './webhook-settings.js';

const NAME = /^\.?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/;

/** The setting that adds names to those that are answered at loopback addresses. */
export const allowedHostsSetting: Setting<readonly string[]> = {
  placeholder: 'NAMES|off',
  summary:
    'names that requests at loopback addresses may be for, beside localhost, addresses, host.docker.internal, the names of this machine and of public-url, with commas between them; .example.com stands for all below it; others are answered 421; off for none',
  expected: 'off, or names such as runs.example.com or .example.com with commas between them',
  defaultText: 'off',
  parse(text) {
    const words = text.split(',').map((word) => word.trim().toLowerCase());
    if (words.length === 1 && words[0] === 'off') return [];
    return words.every((word) => NAME.test(word)) ? words : undefined;
  },
  format: (value) => (value.length === 0 ? 'off' : value.join(',')),
};

const MAX_ENGINE_NAME_LENGTH = 255;

/** The setting that says what the engine is called, beside its known names. */
export const engineNamesSetting: Setting<readonly string[]> = {
  placeholder: 'NAMES|off',
  summary:
    'service or scope names of the engine beside dbt, dbt-oss and those before 2.0, with commas between them, for example the service name that a Collector gives it; telemetry under other names is taken for the engine where its spans and log records look so; off for none',
  expected: 'off, or names with commas between them',
  defaultText: 'off',
  parse(text) {
    if (isOff(text)) return [];
    const names = text.split(',').map((name) => name.trim());
    return names.every((name) => name !== '' && name.length <= MAX_ENGINE_NAME_LENGTH) ? names : undefined;
  },
  format: (value) => (value.length === 0 ? 'off' : value.join(',')),
};

/** What `trace-url` expects. */
export const TRACE_URL = 'a URL with {trace_id} in it, such as http://127.0.0.1:16686/trace/{trace_id}';

/** Reads `trace-url`; `undefined` when it is no URL with `{trace_id}` in it. */
export function parseTraceUrl(text: string): string | undefined {
  const trimmed = text.trim();
  if (!trimmed.includes('{trace_id}') || !URL.canParse(trimmed)) return undefined;
  return /^https?:$/.test(new URL(trimmed).protocol) ? trimmed : undefined;
}

/** The setting that says where traces can be looked at. */
export const traceUrlSetting: Setting<string> = {
  placeholder: 'URL|off',
  summary:
    'where a trace can be looked at, for links on the page of its run: {trace_id} stands for its id, as in http://127.0.0.1:16686/trace/{trace_id}; destinations may have one of their own; off for none',
  expected: `${TRACE_URL}, or off`,
  defaultText: 'off',
  parse: (text) => (isOff(text) ? 'off' : parseTraceUrl(text)),
  format: (value) => value,
};

/** What an hour of the warehouse's time costs. */
export interface WarehousePrice {
  readonly perHour: number;
  /** As the page writes it, for example `USD`. */
  readonly currency: string;
}

/** The setting that says what the time of queries costs. */
export const warehousePriceSetting: Setting<WarehousePrice | 'off'> = {
  placeholder: 'PRICE|off',
  summary: 'what an hour of queries costs, for the page of models and tests; off shows their time alone',
  expected: 'off, or a price such as 3.50 USD',
  defaultText: 'off',
  parse(text) {
    if (text.trim().toLowerCase() === 'off') return 'off';
    const [, amount, currency] = /^(\d{1,9}(?:\.\d{1,6})?) ?([A-Za-z]{3}|[$€£¥])$/.exec(text.trim()) ?? [];
    return amount === undefined || currency === undefined
      ? undefined
      : { perHour: Number(amount), currency: currency.toUpperCase() };
  },
  format: (value) => (value === 'off' ? value : `${value.perHour} ${value.currency}`),
};

/** A bucket of artifacts. What is `null` is as AWS' variables or its library say. */
export interface ArtifactLocation {
  readonly bucket: string;
  /** Empty, or with `/` at its end. */
  readonly prefix: string;
  /** Without a slash at its end. */
  readonly endpoint: string | null;
  readonly region: string | null;
  /** Whether the bucket stands in the path of URLs, and not in the host's name; `null`: where there is an endpoint. */
  readonly isPathStyle: boolean | null;
}

/** The setting that says where artifacts of runs are kept. */
export const artifactsSetting: Setting<ArtifactLocation | 'folder'> = {
  placeholder: 'folder|s3://BUCKET/PREFIX',
  summary:
    "where artifacts of runs are kept: the data folder's artifacts, or an S3-compatible bucket; behind ? may stand endpoint= (default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, else AWS), region= (default: AWS_REGION, AWS_DEFAULT_REGION, else us-east-1) and path-style=on or off (default: on where there is an endpoint), with & between them",
  expected:
    'folder, or a bucket such as s3://my-bucket/run-bridge or s3://my-bucket?endpoint=https://minio.example.com:9000&region=eu-central-1',
  defaultText: 'folder',
  parse: parseLocation,
  format(value) {
    if (value === 'folder') return value;
    const { bucket, prefix, endpoint, region, isPathStyle } = value;
    const parameters = [
      ...(endpoint === null ? [] : [`endpoint=${endpoint}`]),
      ...(region === null ? [] : [`region=${region}`]),
      ...(isPathStyle === null ? [] : [`path-style=${isPathStyle ? 'on' : 'off'}`]),
    ];
    const query = parameters.length === 0 ? '' : `?${parameters.join('&')}`;
    return `s3://${bucket}/${prefix}`.replace(/\/+$/, '') + query;
  },
};

function parseLocation(text: string): ArtifactLocation | 'folder' | undefined {
  const trimmed = text.trim();
  if (trimmed.toLowerCase() === 'folder') return 'folder';
  const [, bucket = '', path = '', query = ''] =
    /^s3:\/\/([a-z0-9][a-z0-9._-]{1,253}[a-z0-9])(\/[^?]*)?(?:\?(.*))?$/i.exec(trimmed) ?? [];
  const names = path.split('/').filter((name) => name !== '');
  const isSafe = names.every((name) => /^[\w!.*'()-]{1,100}$/.test(name) && name !== '.' && name !== '..');
  if (bucket === '' || !isSafe || names.length > 8) return undefined;
  const given = new URLSearchParams(query);
  const endpoint = given.has('endpoint') ? parseEndpoint(given.get('endpoint') ?? '') : null;
  const region = given.get('region')?.toLowerCase() ?? null;
  const isPathStyle = given.has('path-style') ? parseSwitch(given.get('path-style') ?? '') : null;
  const isKnown = [...given.keys()].every((name) => ['endpoint', 'region', 'path-style'].includes(name));
  if (!isKnown || endpoint === undefined || isPathStyle === undefined) return undefined;
  if (region !== null && !/^[a-z0-9-]{1,64}$/.test(region)) return undefined;
  return { bucket, prefix: names.map((name) => `${name}/`).join(''), endpoint, region, isPathStyle };
}

/** @returns the URL without a slash at its end */
function parseEndpoint(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // One with a user or a password in it would be logged.
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    return undefined;
  }
  return url.origin + url.pathname.replace(/\/+$/, '');
}

const SCHEME = /^postgres(ql)?:\/\//i;
/** Stands for the host where there is none because a folder of sockets is named instead: such a URL has no other parser. */
const NO_HOST = 'socket';

/** The setting that says which PostgreSQL keeps the state, in place of the data folder's SQLite file. */
export const databaseUrlSetting: Setting<string> = {
  placeholder: 'URL|off',
  summary:
    'PostgreSQL that keeps the state, such as postgresql://user:password@host:5432/run_bridge; also read from `DATABASE_URL`; off keeps it in the data folder',
  expected: 'a URL such as postgresql://user:password@host:5432/run_bridge, or off',
  defaultText: 'off',
  isSecret: true,
  sharedVariable: { name: 'DATABASE_URL', isMeant: (text) => SCHEME.test(text.trim()) },
  parse: parseDatabaseUrl,
  format: maskDatabaseUrl,
};

function parseDatabaseUrl(text: string): string | undefined {
  const trimmed = text.trim();
  if (isOff(trimmed)) return 'off';
  return SCHEME.test(trimmed) && URL.canParse(withHost(trimmed)) ? trimmed : undefined;
}

/** The URL as it may be shown: without passwords. */
function maskDatabaseUrl(text: string): string {
  if (text === 'off') return text;
  const url = new URL(withHost(text));
  if (url.password !== '') url.password = MASK;
  for (const name of url.searchParams.keys()) {
    if (/password|key|token/i.test(name)) url.searchParams.set(name, MASK);
  }
  return url.href.replace(`@${NO_HOST}/`, '@/');
}

function withHost(text: string): string {
  return text.replace('@/', `@${NO_HOST}/`);
}

/** How much of SQL and its literals leaves the machine; see `docs/reference/settings.md`. */
export const REDACTION_LEVELS = ['literals', 'statements', 'off'] as const;
/** Who may send telemetry; see `docs/operate.md`. */
export const OTLP_AUTHS = ['auto', 'token', 'none'] as const;
/** What an answer means; see `docs/operate.md`. */
export const DURABILITIES = ['fsync', 'os'] as const;
/** How many run-bridges share a database; see `docs/operate.md`. */
export const PROCESSES = ['one', 'several'] as const;
/** What one of several machines does; see `docs/operate.md`. */
export const ROLES = ['all', 'receive', 'build', 'web'] as const;
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export const LOG_FORMATS = ['auto', 'text', 'json'] as const;

/** The program takes about 75 MiB before the first request comes, and some 300 MiB after it has written large Parquet files, of which a third is not counted. */
const MIN_MEMORY_BYTES = 256 * 2 ** 20;

const TABLE = {
  http: address('127.0.0.1:4318', 'where OTLP over HTTP is received; port 0 picks a free one'),
  grpc: setting<ListenAddress | 'off'>({
    ...address('127.0.0.1:4317', 'where OTLP over gRPC is received; port 0 picks a free one; off for not at all'),
    placeholder: 'HOST:PORT|off',
    expected: 'off, an address such as 127.0.0.1:4317 or a port from 0 to 65535',
    parse: (text) => (isOff(text) ? 'off' : parseListenAddress(text)),
    format: (value) => (value === 'off' ? 'off' : formatListenAddress(value)),
  }),
  web: address('127.0.0.1:4380', 'where pages, the API and health are served; port 0 picks a free one'),
  'otlp-auth': choiceSetting(
    OTLP_AUTHS,
    'auto',
    'who may send telemetry: clients with a token (token), anyone (none), or anyone on loopback addresses and clients with a token on others (auto)',
  ),
  'allowed-hosts': allowedHostsSetting,
  'engine-names': engineNamesSetting,
  'data-dir': setting<string>({
    placeholder: 'DIR',
    summary: 'folder for runs and state (default: $XDG_DATA_HOME/run-bridge, else ~/.local/share/run-bridge)',
    expected: 'a path',
    defaultText: null,
    parse: parsePath,
    format: (value) => value,
  }),
  'database-url': databaseUrlSetting,
  processes: choiceSetting(
    PROCESSES,
    'one',
    'whether one run-bridge serves the database, or several share it, a bucket and a journal; several needs --database-url, --artifacts s3://… and `journal:` in the file',
  ),
  role: choiceSetting(
    ROLES,
    'all',
    'what this run-bridge does: everything (all), or only receive telemetry and write it to the topics of Kafka that `journal:` in the file names (receive), or of several processes only build runs from there (build), or only answer people and programs (web)',
  ),
  parquet: switchSetting(true, "write a Parquet file at each invocation's end"),
  jsonl: setting<string>({
    placeholder: '-|PATH',
    summary: 'also stream every record as JSON lines to standard output (-) or append it to one file; off for neither',
    expected: '-, off or a path',
    defaultText: 'off',
    parse: (text, context) => (text === '-' || text === 'off' ? text : parsePath(text, context)),
    format: (value) => value,
  }),
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
    'free space to keep on the file system of the data folder; below it requests are answered 503; auto is 1 GiB or 5 %, whichever is less',
  ),
  'invocation-quiet': duration('2s', 'an invocation whose own span has ended is over after this long without a record'),
  'invocation-silence': duration('10m', 'an invocation without any end is lost after this long without a record'),
  'event-hold': duration('2s', 'how long a span waits for log records that belong to it before it is exported'),
  'max-backlog-age': setting<number | 'off'>({
    placeholder: 'TIME|off',
    summary: 'what a destination has not taken for this long is given up; the runs stay on disk; off for never',
    expected: 'a time such as 12h or 7d, or off',
    defaultText: '7d',
    parse: (text) => parseAge(text),
    format: (value) => (value === 'off' ? 'off' : formatDuration(value)),
  }),
  'max-running-jobs': setting<number>({
    placeholder: 'NUMBER',
    summary: 'runs of jobs that are under way at a time; those of one job follow each other',
    expected: 'a number from 1 to 64',
    defaultText: '1',
    parse: (text) => (/^[1-9]\d?$/.test(text.trim()) && Number(text) <= 64 ? Number(text) : undefined),
    format: String,
  }),
  'warehouse-price': warehousePriceSetting,
  'node-metrics': setting<number>({
    placeholder: 'NUMBER|off',
    summary: "nodes of each job's last run that have a metric of their own, those with the largest shares of its time",
    expected: 'off, or a number from 1 to 1000',
    defaultText: 'off',
    parse: (text) => (isOff(text) ? 0 : parseNodeCount(text.trim())),
    format: (value) => (value === 0 ? 'off' : String(value)),
  }),
  'platform-url': platformUrlSetting,
  'platform-account': platformAccountSetting,
  'platform-interval': platformIntervalSetting,
  artifacts: artifactsSetting,
  'max-artifact-bytes': sizeSetting(
    '256MiB',
    'largest artifact of a step; exec leaves a larger one out, an upload of one is answered 413',
  ),
  'retain-telemetry': retentionSetting(
    'how old runs may get since their end, and what their record logs and Parquet files may take together; older ones, and of more the oldest, are removed with all that is kept of them',
  ),
  'retain-artifacts': retentionSetting(
    'how old artifacts may get since the end of their run, and what they may take together; older ones, and of more those of the oldest runs, are removed',
  ),
  'retain-deliveries': retentionSetting(
    'how old events of webhooks may get with the log of their attempts, and what they may take together; older ones, and of more the oldest, are removed',
    '7d',
  ),
  'webhook-allow': webhookAllowSetting,
  'webhook-retries': webhookRetriesSetting,
  'webhook-proxy': webhookProxySetting,
  'notify-on-archive': notifyOnArchiveSetting,
  'public-url': publicUrlSetting,
  'trace-url': traceUrlSetting,
  'smtp-url': smtpUrlSetting,
  'smtp-from': smtpFromSetting,
  redaction: choiceSetting(
    REDACTION_LEVELS,
    'literals',
    'what is redacted in everything that leaves the machine (exports, webhooks, chats, mail): literals in SQL, whole statements, or nothing; files on disk keep everything, and users who may read artifacts see it',
  ),
  'log-level': choiceSetting(LOG_LEVELS, 'info', "least severe lines of the program's own log"),
  'log-format': choiceSetting(LOG_FORMATS, 'auto', 'auto is text on a terminal, JSON elsewhere'),
} satisfies Readonly<Record<string, Setting<unknown>>>;

export type SettingKey = keyof typeof TABLE;

/** The values of the settings, by the name that file, flag and environment share. Sizes are in bytes, times in milliseconds, paths absolute. */
export type SettingValues = {
  readonly [K in SettingKey]: (typeof TABLE)[K] extends Setting<infer Value> ? Value : never;
};

/** Every setting that is one word or number, in the order of help texts, `run-bridge config` and the documentation. */
export const SETTINGS: { readonly [K in SettingKey]: Setting<SettingValues[K]> } = TABLE;

/** The settings' names in order. */
export const SETTING_KEYS = Object.keys(SETTINGS) as readonly SettingKey[];

/** Settings of every command that uses the state. */
export const STATE_SETTINGS = ['data-dir', 'database-url'] as const satisfies readonly SettingKey[];
export const LOG_SETTINGS = ['log-level', 'log-format'] as const satisfies readonly SettingKey[];
/** Settings of commands that take records. */
export const TAKING_SETTINGS = [
  ...STATE_SETTINGS,
  'parquet',
  'durability',
  'max-disk',
  'disk-reserve',
  'max-backlog-age',
  'engine-names',
  'redaction',
  ...LOG_SETTINGS,
] as const satisfies readonly SettingKey[];

/** Reads `max-backlog-age`: a time that is not 0, or `off`. `undefined` when it is neither. */
export function parseAge(text: string): number | 'off' | undefined {
  if (isOff(text)) return 'off';
  return parseDurationMs(text) || undefined;
}

/** The most nodes of a job with a metric of their own. */
const MAX_NODE_METRICS = 1_000;

function parseNodeCount(text: string): number | undefined {
  return /^[1-9]\d{0,3}$/.test(text) && Number(text) <= MAX_NODE_METRICS ? Number(text) : undefined;
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

function setting<T>(one: Setting<T>): Setting<T> {
  return one;
}
