import { join } from 'node:path';
import { formatByteSize } from './byte-size.js';
import type { BucketEnvironment, Configuration, ConfigurationRow, ResolvedConfiguration } from './configuration.js';
import { ConfigurationError } from './configuration-error.js';
import type { DestinationSettings } from './destination-settings.js';
import { formatDuration } from './duration.js';
import { type Environment, nonEmpty } from './environment.js';
import { jobRows } from './job-rows.js';
import { MASK, maskUrl, quoted } from './mask.js';
import { type OtlpEnvironment, readOtlpEnvironment } from './otlp-environment.js';
import { placeRows } from './place-rows.js';
import { PLATFORM_SECRET_NAMES, readPlatformSecrets } from './platform-secrets.js';
import type { FileReading } from './read-configuration-file.js';
import type { SettingContext } from './setting.js';
import { environmentName, SETTING_KEYS, SETTINGS, type SettingKey, type SettingValues } from './settings.js';
import { nearestName } from './suggestion.js';
import { readWebhookKey, WEBHOOK_KEY_NAME } from './webhook-key.js';

/** Where configuration comes from. */
export interface ConfigurationSources {
  /** Flags by their name without hyphens in front, for example `data-dir`. */
  readonly flags: Readonly<Record<string, string | undefined>>;
  readonly environment: Environment;
  readonly workingDir: string;
  readonly homeDir: string;
  /** The default of `max-memory`, which depends on the machine. */
  readonly maxMemoryBytes: number;
  /** Names of the mapping switches and their defaults. */
  readonly mappingDefaults: Readonly<Record<string, boolean>>;
}

/**
 * Puts the configuration together: flag > environment > file > default.
 * @param file what the configuration file holds; `undefined` where there is none.
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
  const mapping: Record<string, boolean> = {};
  for (const [name, byDefault] of Object.entries(sources.mappingDefaults)) {
    const set = fileValues?.mapping[name];
    mapping[name] = set ?? byDefault;
    const origin = set === undefined ? DEFAULT : (file?.locate(['mapping', name]) ?? DEFAULT);
    rows.push({ name: `mapping.${name}`, value: mapping[name] ? 'on' : 'off', origin });
  }
  const standard = readOtlpEnvironment(environment);
  const platform = readPlatformSecrets(environment);
  const webhook = readWebhookKey(environment);
  const isBucketWanted = values.artifacts !== undefined && values.artifacts !== 'folder';
  const bucket = isBucketWanted ? readBucketEnvironment(environment) : undefined;
  problems.push(...standard.problems, ...platform.problems, ...webhook.problems, ...(bucket?.problems ?? []));
  if (problems.length > 0) throw new ConfigurationError(problems);
  const destinations = fileValues?.destinations ?? [];
  rows.push(...platform.rows, ...webhook.rows, ...(bucket?.rows ?? []), ...environmentRows(standard));
  for (const destination of destinations) {
    if (destination.name === standard.destination?.name) continue;
    rows.push(...destinationRows(destination, file?.locate(['destinations', destination.name]) ?? ''));
  }
  const jobs = fileValues?.jobs ?? [];
  rows.push(...jobs.flatMap((job) => jobRows(job, file?.locate(['jobs', job.name]) ?? '')));
  const { projects = [], environments = [] } = fileValues ?? {};
  for (const [kind, places] of Object.entries({ projects, environments })) {
    rows.push(...places.flatMap((place) => placeRows(kind, place, file?.locate([kind, place.name]) ?? '')));
  }
  return {
    // Every key of SETTING_KEYS was set just now, or a problem was thrown.
    configuration: {
      ...(values as unknown as SettingValues),
      chosen,
      mapping,
      destinations,
      jobs,
      projects,
      environments,
      environmentDestination: standard.destination,
      resourceOverrides: standard.resourceOverrides,
      platformSecrets: platform.secrets,
      webhookKey: webhook.key,
      bucketEnvironment: bucket?.bucket ?? null,
    } satisfies Configuration,
    rows,
    file: file?.path ?? null,
    warnings: [...passedOver, ...misspeltVariables(environment), ...standard.warnings],
  };
}

/** Where a value comes from that nobody has set. */
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
    passedOver.push(`${sharedVariable.name} is not ${setting.expected}; it is passed over`);
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
 * Variables that look like a misspelt setting. Only told, never refused: Kubernetes gives every container variables such
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
    ...Object.keys(destination.headers).map((name) => row(`headers.${name}`, MASK)),
    row('protocol', destination.protocol),
    row('compression', destination.compression),
    row('timeout', formatDuration(destination.timeoutMs)),
    ...(destination.maxBacklogAgeMs === null
      ? []
      : [row('max-backlog-age', SETTINGS['max-backlog-age'].format(destination.maxBacklogAgeMs))]),
    ...(destination.redaction === null ? [] : [row('redaction', destination.redaction)]),
    ...Object.entries(destination.mapping).map(([name, isOn]) => row(`mapping.${name}`, isOn ? 'on' : 'off')),
    ...Object.entries(destination.resource).map(([name, value]) => row(`resource.${name}`, String(value))),
  ];
}

/** What OpenTelemetry's variables say, as rows of `run-bridge config`; secrets are masked. */
export function environmentRows({ destination, resourceOverrides }: OtlpEnvironment): ConfigurationRow[] {
  const rows: ConfigurationRow[] = Object.entries(resourceOverrides).map(([name, value]) => ({
    name: `resource.${name}`,
    value,
    origin: 'OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES',
  }));
  for (const [signal, endpoint] of Object.entries(destination?.endpoints ?? {})) {
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
