import { reasonOf } from '../core/errors.js';
import type { Signal } from '../record/record-batch.js';
import type { Configuration } from './configuration.js';
import { ConfigurationError } from './configuration-error.js';
import { type DestinationConfig, findLoops, loadTls, type SignalEndpoint } from './destination-config.js';
import type { DestinationSettings } from './destination-settings.js';
import { brokerUrlsOf, findKafkaLoops, kafkaDestinations, topicsAndBrokersOf } from './kafka-destinations.js';
import { maskUrl } from './mask.js';
import { ENVIRONMENT_DESTINATION } from './otlp-environment.js';

/** A destination's name, and where it is: without secrets. */
export type NamedLocation = readonly [name: string, where: string];

/** Destinations that speak OTLP; the environment's comes first, and in place of one of its name in the file. */
export function otlpDestinations({
  destinations,
  environmentDestination,
}: Configuration): readonly DestinationConfig[] {
  const fromFile = destinations.filter(({ name }) => name !== environmentDestination?.name);
  const otlp = fromFile
    .filter(({ exporterModule, kafka }) => exporterModule === null && kafka === null)
    .map(toDestinationConfig);
  return environmentDestination === undefined ? otlp : [environmentDestination, ...otlp];
}

/** Names of all destinations, whatever they are sent by. */
export function destinationNames({
  destinations,
  environmentDestination,
}: Pick<Configuration, 'destinations' | 'environmentDestination'>): readonly string[] {
  const ofEnvironment = environmentDestination === undefined ? [] : [environmentDestination.name];
  return [...new Set([...ofEnvironment, ...destinations.map(({ name }) => name)])];
}

/** A destination that is configured and cannot be used. */
export interface OffDestination {
  readonly name: string;
  /** Without secrets. */
  readonly reason: string;
}

/** The destination of the environment, where it is off and none of the file has its name. */
export function offDestinationOf({
  destinations,
  environmentTrouble,
}: Pick<Configuration, 'destinations' | 'environmentTrouble'>): OffDestination | undefined {
  const name = ENVIRONMENT_DESTINATION;
  const reason = environmentTrouble?.offReason ?? null;
  return reason === null || destinations.some((one) => one.name === name) ? undefined : { name, reason };
}

/** Every destination that another program can name, too, and where it is: origins of URLs, and `kafka://HOST:PORT`. */
export function destinationOrigins(
  configuration: Configuration,
): readonly { readonly name: string; readonly isOfEnvironment: boolean; readonly origins: readonly string[] }[] {
  const { environmentDestination } = configuration;
  return [
    ...otlpDestinations(configuration).map((config) => ({
      name: config.name,
      isOfEnvironment: config === environmentDestination,
      origins: originsOf(config),
    })),
    ...kafkaDestinations(configuration).map((config) => ({
      name: config.name,
      isOfEnvironment: false,
      origins: brokerUrlsOf(config),
    })),
  ];
}

/** Where a destination's signals go: the origins of their URLs, each once. */
function originsOf({ endpoints }: DestinationConfig): readonly string[] {
  return [...new Set(Object.values(endpoints).map(({ url }) => new URL(maskUrl(url)).origin))];
}

/** The same in words, for start lines. */
export function addressOf(config: DestinationConfig): string {
  return originsOf(config).join(' and ');
}

/** What keeps the files of a destination's TLS from being read: a sentence for each, none where nothing does. */
export async function unreadableFilesOf({ endpoints }: DestinationConfig): Promise<readonly string[]> {
  const problems = new Set<string>();
  for (const { tls } of Object.values(endpoints)) {
    await loadTls(tls).catch((error: unknown) => problems.add(reasonOf(error)));
  }
  return [...problems];
}

/**
 * Checks destinations as far as possible without loading their code, which takes a while.
 * @param ownHosts addresses and names of this machine; `null` for a program that takes nothing, to which nothing can come back
 * @returns their addresses; `undefined` if there is a custom exporter, which has to be loaded.
 * @throws ConfigurationError if one is the bridge itself, or a certificate cannot be read.
 */
export async function checkDestinations(
  configuration: Configuration,
  ownHosts: readonly string[] | null,
): Promise<readonly NamedLocation[] | undefined> {
  const otlp = otlpDestinations(configuration);
  const kafka = kafkaDestinations(configuration);
  const { environmentDestination: fromEnvironment, http, web } = configuration;
  const problems = [...findLoops(otlp, [http, web], ownHosts), ...findKafkaLoops(configuration)];
  for (const one of otlp) problems.push(...(await unreadableFilesOf(one)));
  for (const { tls } of kafka.map((one) => one.kafka)) {
    const files = Object.entries(tls ?? {}).filter(([, path]) => path !== null);
    await loadTls(Object.fromEntries(files)).catch((error: unknown) => problems.push(reasonOf(error)));
  }
  if (problems.length > 0) throw new ConfigurationError([...new Set(problems)]);
  const hasModule = configuration.destinations.some(
    ({ name, exporterModule }) => exporterModule !== null && name !== fromEnvironment?.name,
  );
  if (hasModule) return undefined;
  return [
    ...otlp.map((config): NamedLocation => [config.name, addressOf(config)]),
    ...kafka.map((config): NamedLocation => [config.name, topicsAndBrokersOf(config)]),
  ];
}

/** Where metrics of runs are pushed to. */
export interface MetricDestination {
  readonly name: string;
  readonly endpoint: SignalEndpoint;
}

/** Lists the destinations that get metrics of runs, that of the environment first. */
export function metricDestinations({
  destinations,
  environmentMetrics,
}: Pick<Configuration, 'destinations' | 'environmentMetrics'>): readonly MetricDestination[] {
  const fromFile = destinations
    .filter(
      ({ name, hasMetrics }) => hasMetrics && (name !== ENVIRONMENT_DESTINATION || environmentMetrics === undefined),
    )
    .flatMap((settings) => {
      const url = appendPath(settings.endpoint, 'metrics');
      return url === null ? [] : [{ name: settings.name, endpoint: endpointOf(settings, url) }];
    });
  return environmentMetrics === undefined
    ? fromFile
    : [{ name: ENVIRONMENT_DESTINATION, endpoint: environmentMetrics }, ...fromFile];
}

/** A destination of the configuration file as the exporter takes it: each signal with its own URL. */
export function toDestinationConfig(settings: DestinationSettings): DestinationConfig {
  const own = { traces: settings.tracesEndpoint, logs: settings.logsEndpoint };
  const endpoints: Partial<Record<Signal, SignalEndpoint>> = {};
  for (const signal of settings.signals) {
    const url = own[signal] ?? appendPath(settings.endpoint, signal);
    if (url === null) continue;
    endpoints[signal] = endpointOf(settings, url);
  }
  const { name, redaction, mapping, resource, maxBacklogAgeMs } = settings;
  return {
    ...{ name, endpoints, redaction, mapping, resource, usesSdk: settings.protocol === 'sdk' },
    ...(maxBacklogAgeMs === null ? {} : { maxBacklogAgeMs }),
  };
}

function endpointOf({ headers, timeoutMs, compression, protocol }: DestinationSettings, url: string): SignalEndpoint {
  return {
    url,
    headers,
    timeoutMs,
    compression,
    encoding: protocol === 'http/protobuf' ? 'protobuf' : 'json',
    tls: {},
  };
}

function appendPath(base: string | null, signal: Signal | 'metrics'): string | null {
  if (base === null) return null;
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/${signal}`;
  return url.href;
}
