import { join } from 'node:path';
import type { DeclaredEnvironment, DeclaredScope } from '../run/scope-finder.js';
import { formatByteSize } from './byte-size.js';
import type {
  BucketEnvironment,
  Configuration,
  ConfigurationRow,
  EnvironmentTrouble,
  PlatformSecrets,
  ResolvedConfiguration,
} from './configuration.js';
import { ConfigurationError } from './configuration-error.js';
import type { DestinationSettings } from './destination-settings.js';
import { formatDuration, formatExpected } from './duration.js';
import { type Environment, nonEmpty } from './environment.js';
import { type JobDefinition, joinCommandLine } from './jobs.js';
import type {
  KafkaConnection,
  KafkaDestinationSettings,
  KafkaJournalSettings,
  KafkaSaslSettings,
  KafkaSourceSettings,
} from './kafka-settings.js';
import { DEFAULT_MAPPING_SWITCHES, type SwitchValue, switchText } from './mapping-options.js';
import { MASK, maskUrl, quoted } from './mask.js';
import { type OtlpEnvironment, readOtlpEnvironment } from './otlp-environment.js';
import type { FileReading } from './read-configuration-file.js';
import { removedProblem } from './removed-settings.js';
import type { SettingContext } from './setting.js';
import { environmentName, SETTING_KEYS, SETTINGS, type SettingKey, type SettingValues } from './settings.js';
import { nearestName } from './suggestion.js';

/** Where configuration comes from. */
export interface ConfigurationSources {
  /** Flags by their name without hyphens in front, for example `data-dir`. */
  readonly flags: Readonly<Record<string, string | undefined>>;
  readonly environment: Environment;
  readonly workingDir: string;
  readonly homeDir: string;
  /** The default of `max-memory`, which depends on the machine. */
  readonly maxMemoryBytes: number;
  /** Whether OpenTelemetry's variables are read: a command that exports nothing does not care what they hold. Left out: yes. */
  readonly isExporting?: boolean;
}

/**
 * Puts the configuration together: flag > environment > file > default.
 * @param file the content of the configuration file; `undefined` where there is none.
 * @throws ConfigurationError with every problem at once.
 */
export function resolveConfiguration(
  sources: ConfigurationSources,
  file: FileReading | undefined,
): ResolvedConfiguration {
  const { environment } = sources;
  const problems: string[] = [...(file?.problems ?? [])];
  const passedOver: string[] = [];
  const fileValues = file?.values;
  const values: Partial<Record<SettingKey, unknown>> = {};
  const chosen = new Set<SettingKey>();
  const rows: ConfigurationRow[] = [];
  for (const key of SETTING_KEYS) {
    const found = resolveSetting(key, sources, file, problems, passedOver);
    if (found === undefined) continue;
    values[key] = found.value;
    if (found.origin !== DEFAULT) chosen.add(key);
    rows.push({ name: key, value: found.text, origin: found.origin });
  }
  const mapping: Record<string, SwitchValue> = {};
  for (const [name, byDefault] of Object.entries(DEFAULT_MAPPING_SWITCHES)) {
    const set = fileValues?.mapping[name];
    const value = set ?? byDefault;
    mapping[name] = value;
    const origin = set === undefined ? DEFAULT : (file?.locate(['mapping', name]) ?? DEFAULT);
    rows.push({ name: `mapping.${name}`, value: switchText(value), origin });
  }
  const standard = readOtlpEnvironment(sources.isExporting === false ? {} : environment);
  const platform = readPlatformSecrets(environment);
  const webhook = readWebhookKey(environment);
  const isBucketWanted = values.artifacts !== undefined && values.artifacts !== 'folder';
  const bucket = isBucketWanted ? readBucketEnvironment(environment) : undefined;
  problems.push(
    ...removedVariables(environment),
    ...platform.problems,
    ...webhook.problems,
    ...(bucket?.problems ?? []),
  );
  if (problems.length > 0) throw new ConfigurationError([...problems, ...standard.problems]);
  const destinations = fileValues?.destinations ?? [];
  rows.push(...platform.rows, ...webhook.rows, ...(bucket?.rows ?? []), ...environmentRows(standard));
  for (const destination of destinations) {
    if (destination.name === standard.destination?.name) continue;
    rows.push(...destinationRows(destination, file?.locate(['destinations', destination.name]) ?? ''));
  }
  const kafkaSource = fileValues?.kafkaSource ?? null;
  const journal = fileValues?.journal ?? null;
  if (kafkaSource !== null) rows.push(...kafkaSourceRows(kafkaSource, file?.locate(['sources', 'kafka']) ?? ''));
  if (journal !== null) rows.push(...journalRows(journal, file?.locate(['journal', 'kafka']) ?? ''));
  const jobs = fileValues?.jobs ?? [];
  rows.push(...jobs.flatMap((job) => jobRows(job, file?.locate(['jobs', job.name]) ?? '')));
  const { projects = [], environments = [] } = fileValues ?? {};
  for (const [kind, scopes] of Object.entries({ projects, environments })) {
    rows.push(...scopes.flatMap((scope) => scopeRows(kind, scope, file?.locate([kind, scope.name]) ?? '')));
  }
  return {
    // Every key of SETTING_KEYS was set just now, or a problem was thrown.
    configuration: {
      ...(values as unknown as SettingValues),
      chosen,
      mapping,
      destinations,
      kafkaSource,
      journal,
      jobs,
      projects,
      environments,
      environmentDestination: standard.destination,
      environmentMetrics: standard.metrics,
      metricsIntervalMs: standard.metricsIntervalMs,
      environmentTrouble: troubleOf(standard),
      resourceOverrides: standard.resourceOverrides,
      platformSecrets: platform.secrets,
      webhookKey: webhook.key,
      bucketEnvironment: bucket?.bucket ?? null,
    } satisfies Configuration,
    rows,
    file: file?.path ?? null,
    warnings: [
      ...passedOver,
      ...misspeltVariables(environment),
      ...standard.problems.map((problem) => `${problem}; it is ignored`),
      ...standard.warnings,
    ],
  };
}

function troubleOf({ offReason, problems }: OtlpEnvironment): EnvironmentTrouble | undefined {
  return offReason === null && problems.length === 0 ? undefined : { offReason, ignored: problems };
}

/** The source of a default value. */
const DEFAULT = 'default';

interface Found {
  readonly value: unknown;
  readonly text: string;
  readonly origin: string;
}

function resolveSetting<K extends SettingKey>(
  key: K,
  sources: ConfigurationSources,
  file: FileReading | undefined,
  problems: string[],
  passedOver: string[],
): Found | undefined {
  const setting = SETTINGS[key];
  const context: SettingContext = { baseDir: sources.workingDir, homeDir: sources.homeDir };
  const read = (text: string, origin: string): Found | undefined => {
    const value = setting.parse(text, context);
    if (value !== undefined) return { value, text: setting.format(value), origin };
    problems.push(`${origin}: ${setting.isSecret ? 'the value' : quoted(text)} is not ${setting.expected}`);
    return undefined;
  };
  const flag = sources.flags[key];
  if (flag !== undefined) return read(flag, `--${key}`);
  const variable = nonEmpty(sources.environment[environmentName(key)]);
  if (variable !== undefined) return read(variable, environmentName(key));
  const { sharedVariable } = setting;
  const shared = sharedVariable && nonEmpty(sources.environment[sharedVariable.name]);
  if (sharedVariable !== undefined && shared !== undefined) {
    if (sharedVariable.isMeant(shared)) return read(shared, sharedVariable.name);
    passedOver.push(`${sharedVariable.name} is not ${setting.expected}; it is ignored`);
  }
  const value: SettingValues[K] | undefined = file?.values?.values[key];
  if (value !== undefined && file !== undefined) {
    return { value, text: setting.format(value), origin: file.locate([key]) };
  }
  return read(setting.defaultText ?? machineDefault(key, sources), DEFAULT);
}

/** The defaults that depend on the machine: a folder and a size. */
function machineDefault(key: SettingKey, { environment, homeDir, maxMemoryBytes }: ConfigurationSources): string {
  if (key === 'max-memory') return formatByteSize(maxMemoryBytes);
  return join(nonEmpty(environment.XDG_DATA_HOME) ?? join(homeDir, '.local', 'share'), 'run-bridge');
}

/**
 * Variables that look like a misspelt setting. Only reported, never refused: Kubernetes gives every container variables such
 * as RUN_BRIDGE_PORT for a service called run-bridge.
 */
function misspeltVariables(environment: Environment): string[] {
  const known = [
    'RUN_BRIDGE_CONFIG',
    'RUN_BRIDGE_TOKEN',
    ...PLATFORM_SECRET_NAMES,
    WEBHOOK_KEY_NAME,
    ...SETTING_KEYS.map(environmentName),
  ];
  const warnings: string[] = [];
  for (const name of Object.keys(environment)) {
    if (!name.startsWith('RUN_BRIDGE_') || known.includes(name)) continue;
    const suffixes = known.map((one) => one.slice('RUN_BRIDGE_'.length));
    const nearest = nearestName(name.slice('RUN_BRIDGE_'.length), suffixes);
    if (nearest !== undefined) warnings.push(`${name} is not a setting; did you mean RUN_BRIDGE_${nearest}?`);
  }
  return warnings;
}

function removedVariables(environment: Environment): string[] {
  return Object.keys(environment).flatMap((name) => {
    const key = /^RUN_BRIDGE_([A-Z_]+)$/.exec(name)?.[1]?.toLowerCase().replaceAll('_', '-') ?? '';
    return removedProblem(key, name) ?? [];
  });
}

const KEY_ID = 'AWS_ACCESS_KEY_ID';
const SECRET = 'AWS_SECRET_ACCESS_KEY';
const SESSION = 'AWS_SESSION_TOKEN';
const REGIONS = ['AWS_REGION', 'AWS_DEFAULT_REGION'] as const;
const ENDPOINTS = ['AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL'] as const;

/** Reads what AWS' own variables say of a bucket; asked only where one is configured. */
export function readBucketEnvironment(environment: Environment): {
  readonly bucket: BucketEnvironment;
  readonly problems: readonly string[];
  readonly rows: readonly ConfigurationRow[];
} {
  const of = (name: string) => nonEmpty(environment[name])?.trim();
  const first = (names: readonly string[]) => names.map(of).find((value) => value !== undefined) ?? null;
  const [accessKeyId, secretAccessKey, sessionToken] = [of(KEY_ID), of(SECRET), of(SESSION)];
  const isHalf = (accessKeyId === undefined) !== (secretAccessKey === undefined);
  const session = sessionToken === undefined ? {} : { sessionToken };
  const credentials =
    accessKeyId === undefined || secretAccessKey === undefined ? null : { accessKeyId, secretAccessKey, ...session };
  return {
    bucket: { credentials, region: first(REGIONS), endpoint: first(ENDPOINTS) },
    problems: isHalf
      ? [`${accessKeyId === undefined ? KEY_ID : SECRET}: is not set, but its counterpart is; set both`]
      : [],
    rows: [KEY_ID, SECRET, SESSION]
      .filter((name) => of(name) !== undefined)
      .map((name) => ({ name: name.toLowerCase().replaceAll('_', '-'), value: MASK, origin: name })),
  };
}

/** A destination as rows of `run-bridge config`; header values and passwords in URLs are masked. */
export function destinationRows(destination: DestinationSettings, origin: string): ConfigurationRow[] {
  const row = (name: string, value: string) => ({ name: `destinations.${destination.name}.${name}`, value, origin });
  const endpoints = [
    ['endpoint', destination.endpoint],
    ['traces-endpoint', destination.tracesEndpoint],
    ['logs-endpoint', destination.logsEndpoint],
  ] as const;
  return [
    ...endpoints.flatMap(([name, url]) => (url === null ? [] : [row(name, maskUrl(url))])),
    ...(destination.exporterModule === null ? [] : [row('exporter', destination.exporterModule)]),
    row('signals', destination.signals.join(',')),
    ...(destination.endpoint === null ? [] : [row('metrics', destination.hasMetrics ? 'on' : 'off')]),
    ...Object.keys(destination.headers).map((name) => row(`headers.${name}`, MASK)),
    ...(destination.kafka === null ? [row('protocol', destination.protocol)] : []),
    ...(destination.kafka === null ? [] : kafkaDestinationRows(destination.name, destination.kafka, origin)),
    row('compression', destination.compression),
    row('timeout', formatDuration(destination.timeoutMs)),
    ...(destination.maxBacklogAgeMs === null
      ? []
      : [row('max-backlog-age', SETTINGS['max-backlog-age'].format(destination.maxBacklogAgeMs))]),
    ...(destination.traceUrl === null ? [] : [row('trace-url', maskUrl(destination.traceUrl))]),
    ...(destination.redaction === null ? [] : [row('redaction', destination.redaction)]),
    ...Object.entries(destination.mapping).map(([name, value]) => row(`mapping.${name}`, switchText(value))),
    ...Object.entries(destination.resource).map(([name, value]) => row(`resource.${name}`, String(value))),
  ];
}

/** What is read of Kafka, as rows of `run-bridge config`; secrets are masked. */
export function kafkaSourceRows(kafka: KafkaSourceSettings, origin: string): ConfigurationRow[] {
  const topics = (names: readonly string[]) => (names.length === 0 ? 'off' : names.join(','));
  const own = [
    ['group-id', kafka.groupId],
    ['traces-topic', topics(kafka.tracesTopics)],
    ['logs-topic', topics(kafka.logsTopics)],
    ['jsonl-topic', topics(kafka.jsonlTopics)],
    ['encoding', kafka.encoding],
    ['initial-offset', kafka.initialOffset],
  ] as const;
  return kafkaRows('sources.kafka', kafka, own, origin);
}

/** Where the journal is, as rows of `run-bridge config`; secrets are masked. */
export function journalRows(kafka: KafkaJournalSettings, origin: string): ConfigurationRow[] {
  const { groupId, topics } = kafka;
  const own = [
    ['group-id', groupId],
    ['traces-topic', topics.traces],
    ['logs-topic', topics.logs],
  ] as const;
  return kafkaRows('journal.kafka', kafka, own, origin);
}

function kafkaDestinationRows(name: string, kafka: KafkaDestinationSettings, origin: string): ConfigurationRow[] {
  const { content } = kafka;
  const topics =
    content.encoding === 'jsonl'
      ? ([['jsonl-topic', content.topic]] as const)
      : ([
          ['traces-topic', content.topics.traces],
          ['logs-topic', content.topics.logs],
        ] as const);
  const own = [...topics, ['encoding', content.encoding] as const];
  return kafkaRows(`destinations.${name}.kafka`, kafka, own, origin);
}

/** A connection to Kafka as rows; secrets are masked. @param own keys beside it, with their values */
function kafkaRows(
  prefix: string,
  { brokers, tls, sasl }: KafkaConnection,
  own: readonly (readonly [name: string, value: string])[],
  origin: string,
): ConfigurationRow[] {
  const texts: readonly (readonly [string, string | null | undefined])[] = [
    ['brokers', brokers.join(',')],
    ...own,
    ['tls', tls === null ? 'off' : 'on'],
    ['tls-ca-file', tls?.caFile],
    ['tls-cert-file', tls?.certFile],
    ['tls-key-file', tls?.keyFile],
    ['sasl-mechanism', sasl?.mechanism],
    ...(sasl === null ? [] : saslTexts(sasl)),
  ];
  return texts.flatMap(([name, value]) => (value == null ? [] : [{ name: `${prefix}.${name}`, value, origin }]));
}

function saslTexts(sasl: KafkaSaslSettings): readonly (readonly [string, string | null])[] {
  if (sasl.mechanism !== 'OAUTHBEARER')
    return [
      ['sasl-username', sasl.username],
      ['sasl-password', MASK],
    ];
  return [
    ['sasl-token-url', maskUrl(sasl.tokenUrl)],
    ['sasl-client-id', sasl.clientId],
    ['sasl-client-secret', MASK],
    ['sasl-scope', sasl.scope],
  ];
}

/** What OpenTelemetry's variables say, as rows of `run-bridge config`; secrets are masked. */
export function environmentRows({ destination, metrics, resourceOverrides }: OtlpEnvironment): ConfigurationRow[] {
  const rows: ConfigurationRow[] = Object.entries(resourceOverrides).map(([name, value]) => ({
    name: `resource.${name}`,
    value,
    origin: 'OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES',
  }));
  const endpoints = { ...destination?.endpoints, ...(metrics === undefined ? {} : { metrics }) };
  for (const [signal, endpoint] of Object.entries(endpoints)) {
    const row = (name: string, value: string) => ({
      name: `destinations.otlp.${signal}.${name}`,
      value,
      origin: 'OTEL_EXPORTER_OTLP_*',
    });
    rows.push(
      row('url', maskUrl(endpoint.url)),
      ...Object.keys(endpoint.headers).map((name) => row(`headers.${name}`, MASK)),
      row('protocol', `http/${endpoint.encoding}`),
      row('compression', endpoint.compression),
      row('timeout', formatDuration(endpoint.timeoutMs)),
    );
  }
  return rows;
}

/** A job as rows of `run-bridge config`; values of its variables are masked. */
export function jobRows(job: JobDefinition, origin: string): ConfigurationRow[] {
  const row = (name: string, value: string | number | null) =>
    value === null ? [] : [{ name: `jobs.${job.name}.${name}`, value: String(value), origin }];
  const isStartable = job.commands.length > 0;
  return [
    ...scopeRows('jobs', job, origin),
    ...row('environment', job.environment),
    ...job.commands.flatMap((words, index) => row(`command.${index + 1}`, joinCommandLine(words))),
    ...row('steps-override', job.takesOtherSteps ? 'true' : null),
    ...row('working-dir', isStartable ? job.workingDir : null),
    ...Object.keys(job.variables).flatMap((name) => row(`env.${name}`, MASK)),
    ...row('target', job.targetName),
    ...row('threads', job.threads),
    ...row('timeout', job.timeoutMs === null ? null : formatDuration(job.timeoutMs)),
    ...row('expect', job.expectMs === null ? null : formatExpected(job.expectMs)),
  ];
}

/** What a job, project or environment says of itself, as rows of `run-bridge config`. @param kind for example `jobs` */
export function scopeRows(
  kind: string,
  scope: DeclaredScope & Partial<Pick<DeclaredEnvironment, 'project'>>,
  origin: string,
): ConfigurationRow[] {
  const row = (name: string, value: string | number | null | undefined) =>
    value == null ? [] : [{ name: `${kind}.${scope.name}.${name}`, value: String(value), origin }];
  return [
    ...row('id', scope.id),
    ...row('project', scope.project),
    ...scope.match.flatMap((rule, index) => row(`match.${index + 1}`, JSON.stringify(rule))),
  ];
}

/** The variable with the key by which secrets of webhooks are sealed. */
export const WEBHOOK_KEY_NAME = 'RUN_BRIDGE_WEBHOOK_KEY';
const KEY_BYTES = 32;

/** Reads the key; it comes from the environment alone. `null` where it is to be a file in the data folder. */
export function readWebhookKey(environment: Environment): {
  readonly key: Uint8Array | null;
  readonly problems: readonly string[];
  readonly rows: readonly ConfigurationRow[];
} {
  const text = nonEmpty(environment[WEBHOOK_KEY_NAME])?.trim();
  if (text === undefined) return { key: null, problems: [], rows: [] };
  const key = Buffer.from(text, /^[0-9a-f]{64}$/i.test(text) ? 'hex' : 'base64');
  const rows = [{ name: 'webhook-key', value: MASK, origin: WEBHOOK_KEY_NAME }];
  if (key.byteLength === KEY_BYTES) return { key, problems: [], rows };
  const problem = `${WEBHOOK_KEY_NAME}: is not 32 bytes in base64 or hexadecimal; make one with: openssl rand -base64 32`;
  return { key: null, problems: [problem], rows };
}

const TOKEN = 'RUN_BRIDGE_PLATFORM_TOKEN';
const HOOK_SECRET = 'RUN_BRIDGE_PLATFORM_HOOK_SECRET';

/** The variables with secrets of the hosted platform. */
export const PLATFORM_SECRET_NAMES = [TOKEN, HOOK_SECRET] as const;

/**
 * Reads the hosted platform's secrets. They come from the environment alone: a command line is seen by every user of the
 * machine, and a file is copied.
 */
export function readPlatformSecrets(environment: Environment): {
  readonly secrets: PlatformSecrets;
  readonly problems: readonly string[];
  readonly rows: readonly ConfigurationRow[];
} {
  const token = nonEmpty(environment[TOKEN])?.trim() ?? null;
  const hookSecret = nonEmpty(environment[HOOK_SECRET]) ?? null;
  const isToken = token === null || /^[\x21-\x7e]+$/.test(token);
  const rows = [
    { name: 'platform-token', value: MASK, origin: TOKEN },
    { name: 'platform-hook-secret', value: MASK, origin: HOOK_SECRET },
  ];
  return {
    secrets: { token, hookSecret },
    problems: isToken ? [] : [`${TOKEN}: contains a space or a line break; set it to the token alone`],
    rows: rows.filter(({ origin }) => nonEmpty(environment[origin]) !== undefined),
  };
}
