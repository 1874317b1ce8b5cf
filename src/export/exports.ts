import type { Configuration } from '../config/configuration.js';
import { ConfigurationError } from '../config/configuration-error.js';
import { type DestinationConfig, findLoops } from '../config/destination-config.js';
import type { DestinationSettings } from '../config/destination-settings.js';
import {
  findKafkaLoops,
  type KafkaDestinationConfig,
  kafkaDestinations,
  topicsAndBrokersOf,
} from '../config/kafka-destinations.js';
import type { KafkaConnection } from '../config/kafka-settings.js';
import { DEFAULT_MAPPING_OPTIONS, type MappingOptions, mappingSwitchesFrom } from '../config/mapping-options.js';
import { otlpDestinations, placeOf } from '../config/otlp-destinations.js';
import { type Clock, DEFAULT_RETRY_POLICY, REQUEST_RETRY_POLICY, RetryPolicy } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import { type Lazy, lazy } from '../core/lazy.js';
import type { Logger } from '../core/logger.js';
import type { ForeignEntry, ForeignLogReader, ForeignPosition } from '../log/foreign-segments.js';
import type { RecordLogReader } from '../log/record-log.js';
import type { TraceId } from '../record/telemetry-record.js';
import { type RedactionLevel, redactionFor } from '../redaction/known-names.js';
import type { RunSummary } from '../run/verdict.js';
import type { CursorStore } from '../storage/cursor-store.js';
import type { TraceCatalog } from '../storage/trace-catalog.js';
import { createOtlpTraceExporter, loadExporterModule, SpanExporterDestination } from './custom-exporter.js';
import type { Destination } from './destination.js';
import { ExportWorker } from './export-worker.js';
import { DEFAULT_EXPORT_WORKER_OPTIONS } from './export-worker-options.js';
import type { ForeignRedaction } from './foreign-redaction.js';
import { KafkaDestination, KafkaJsonlDestination, type TopicWriter } from './kafka-destination.js';
import { JsonlRunMapper } from './mapping/jsonl-run-mapper.js';
import { OtlpDestination, type OtlpDestinationDeps } from './otlp-destination.js';
import type { LineSource } from './record-log-lines.js';
import { secretMask, secretsOf } from './transport.js';

export { testDestination } from './destination-test.js';
export { RecordLogLines } from './record-log-lines.js';

/** What destinations are opened with. */
export interface OpenExportsDeps extends OtlpDestinationDeps {
  /** The process's: OpenTelemetry's exporters read it themselves. */
  readonly environment: NodeJS.ProcessEnv;
  /** Loads Kafka's client, and makes what writes to topics with it. */
  readonly createKafkaProducer: (
    connection: KafkaConnection,
    deps: { readonly clock: Clock; readonly timeoutMs: number; readonly compression: 'none' | 'gzip' },
  ) => Promise<TopicWriter>;
}

/** A destination that is ready to be sent to, and how runs are mapped for it. */
export interface OpenedExport {
  readonly destination: Destination;
  readonly mapping: MappingOptions;
  /** Whether it gets what the mapping makes of records, and not the records; left out: yes. */
  readonly isMapped?: boolean;
  /** `null`: nothing is discarded. */
  readonly maxBacklogAgeMs: number | null;
  /** Where it is, for start lines; without secrets. */
  readonly where: string;
}

/**
 * Opens every destination of the configuration.
 * @param ownHosts addresses and names of this machine; `null` where the program listens nowhere
 * @throws ConfigurationError when one is the bridge itself, or its module or a certificate cannot be loaded.
 */
export async function openExports(
  configuration: Configuration,
  ownHosts: readonly string[] | null,
  deps: OpenExportsDeps,
): Promise<readonly OpenedExport[]> {
  const { environmentDestination: fromEnvironment, http, web } = configuration;
  const fromFile = configuration.destinations.filter(({ name }) => name !== fromEnvironment?.name);
  const otlp = otlpDestinations(configuration);
  const problems = [...findLoops(otlp, [http, web], ownHosts), ...findKafkaLoops(configuration)];
  const opened: OpenedExport[] = [];
  const collect = async (open: () => Promise<OpenedExport>) => {
    try {
      opened.push(await open());
    } catch (error) {
      problems.push(reasonOf(error));
    }
  };
  for (const config of otlp) await collect(() => openOtlp(config, configuration, deps));
  for (const config of kafkaDestinations(configuration)) await collect(() => openKafka(config, configuration, deps));
  for (const { name, exporterModule, ...settings } of fromFile) {
    if (exporterModule !== null) {
      await collect(() => openModule(name, exporterModule, settings, configuration, deps.clock));
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return opened;
}

/** What workers share. */
export interface ExportDeps {
  readonly cursors: CursorStore;
  readonly reader: RecordLogReader;
  readonly lines: LineSource;
  readonly foreign: ForeignLogReader;
  /** What the engine is called beside its known names. */
  readonly engineNames: readonly string[];
  readonly runs: { find(traceId: TraceId): Promise<RunSummary | undefined> };
  readonly origins?: Pick<TraceCatalog, 'originsOf'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Memory that the mappers of a destination's open runs may take, as estimated. */
  readonly maxOpenBytes: number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** The worker of a destination. */
export function createWorker(opened: OpenedExport, deps: ExportDeps): ExportWorker {
  const { destination, mapping, isMapped = true, maxBacklogAgeMs } = opened;
  // Loaded for the first run: it is most of what exports take in memory.
  const mappers = lazy(async () => {
    const { mapperFactory } = await import('./mapping/otel-run-mapper.js');
    return mapperFactory(mapping);
  });
  return new ExportWorker(
    {
      ...DEFAULT_EXPORT_WORKER_OPTIONS,
      eventHoldMs: mapping.eventHoldMs,
      maxBacklogAgeMs,
      maxOpenBytes: deps.maxOpenBytes,
    },
    {
      ...deps,
      destination,
      foreign: new RedactedForeign(deps.foreign, mapping.redaction, deps.engineNames),
      createMapper: async () => (isMapped ? (await mappers.get())() : new JsonlRunMapper()),
      retryPolicy: new RetryPolicy(DEFAULT_RETRY_POLICY, deps.random),
      requestRetryPolicy: new RetryPolicy(REQUEST_RETRY_POLICY, deps.random),
    },
  );
}

/** The telemetry of other services as a destination gets it: what in it is the engine's is redacted. */
class RedactedForeign implements ForeignLogReader {
  /** Loaded where it is needed: most exports are of the engine's telemetry alone. */
  private readonly redaction: Lazy<ForeignRedaction>;

  constructor(
    private readonly reader: ForeignLogReader,
    level: RedactionLevel,
    engineNames: readonly string[],
  ) {
    this.redaction = lazy(async () => {
      const { ForeignRedaction: Redaction } = await import('./foreign-redaction.js');
      return new Redaction(level, engineNames);
    });
  }

  async *read(from?: ForeignPosition): AsyncIterable<ForeignEntry> {
    for await (const entry of this.reader.read(from)) {
      const redaction = await this.redaction.get();
      yield { ...entry, body: redaction.redact(entry.signal, entry.body) };
    }
  }

  end(): Promise<ForeignPosition | undefined> {
    return this.reader.end();
  }
}

async function openOtlp(
  config: DestinationConfig,
  configuration: Configuration,
  deps: OpenExportsDeps,
): Promise<OpenedExport> {
  return {
    destination: await openOtlpDestination(config, deps),
    mapping: mappingOptions(config, configuration),
    maxBacklogAgeMs: backlogAge(config.maxBacklogAgeMs, configuration),
    where: placeOf(config),
  };
}

async function openOtlpDestination(config: DestinationConfig, deps: OpenExportsDeps): Promise<Destination> {
  const endpoint = config.endpoints.traces;
  if (config.usesSdk !== true || endpoint === undefined) return OtlpDestination.open(config, deps);
  const exporter = await createOtlpTraceExporter(endpoint, deps.userAgent, deps.environment);
  const masked = secretMask(secretsOf(endpoint));
  return new SpanExporterDestination(config.name, exporter, deps.clock, endpoint.timeoutMs, masked);
}

async function openKafka(
  config: KafkaDestinationConfig,
  configuration: Configuration,
  { clock, codecs, createKafkaProducer }: OpenExportsDeps,
): Promise<OpenedExport> {
  const { name, signals, kafka, timeoutMs, compression } = config;
  const { content } = kafka;
  const producer = await createKafkaProducer(kafka, { clock, timeoutMs, compression });
  const masked = secretMask(kafkaSecrets(kafka));
  return {
    destination:
      content.encoding === 'jsonl'
        ? new KafkaJsonlDestination(name, content.topic, { producer, masked })
        : new KafkaDestination(name, signals, content, { producer, codecs, masked }),
    isMapped: content.encoding !== 'jsonl',
    mapping: mappingOptions(config, configuration),
    maxBacklogAgeMs: backlogAge(config.maxBacklogAgeMs ?? undefined, configuration),
    where: topicsAndBrokersOf(config),
  };
}

function kafkaSecrets({ sasl }: KafkaConnection): readonly string[] {
  if (sasl === null) return [];
  return [sasl.mechanism === 'OAUTHBEARER' ? sasl.clientSecret : sasl.password];
}

async function openModule(
  name: string,
  path: string,
  settings: Pick<DestinationSettings, 'redaction' | 'mapping' | 'resource' | 'maxBacklogAgeMs' | 'timeoutMs'>,
  configuration: Configuration,
  clock: Clock,
): Promise<OpenedExport> {
  return {
    destination: new SpanExporterDestination(name, await loadExporterModule(path), clock, settings.timeoutMs),
    mapping: mappingOptions(settings, configuration),
    maxBacklogAgeMs: backlogAge(settings.maxBacklogAgeMs ?? undefined, configuration),
    where: path,
  };
}

function mappingOptions(
  { redaction, mapping, resource }: Pick<DestinationConfig, 'redaction' | 'mapping' | 'resource'>,
  configuration: Configuration,
): MappingOptions {
  return {
    ...DEFAULT_MAPPING_OPTIONS,
    switches: mappingSwitchesFrom({ ...configuration.mapping, ...mapping }),
    redaction: redactionFor('anybodyElse', redaction ?? configuration.redaction),
    resourceOverrides: { ...configuration.resourceOverrides, ...resource },
    publicUrl: configuration['public-url'] === 'off' ? null : configuration['public-url'],
    eventHoldMs: configuration['event-hold'],
  };
}

function backlogAge(own: number | 'off' | undefined, configuration: Configuration): number | null {
  const age = own ?? configuration['max-backlog-age'];
  return age === 'off' ? null : age;
}
