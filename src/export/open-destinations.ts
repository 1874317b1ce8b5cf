import { randomBytes } from 'node:crypto';
import { type SpanContext, SpanKind, SpanStatusCode } from '@opentelemetry/api';
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
import { addressOf, otlpDestinations } from '../config/otlp-destinations.js';
import { type Clock, whenAborted } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Signal } from '../record/record-batch.js';
import { redactionFor } from '../redaction/known-names.js';
import { type Destination, retryable, type SendResult, secretMask } from './destination.js';
import type { ExporterThreads } from './exporter-thread.js';
import { KafkaDestination, KafkaJsonlDestination, type TopicWriter } from './kafka-destination.js';
import { OtlpDestination, type OtlpDestinationDeps } from './otlp-destination.js';
import { ExportGroup } from './wire/export-group.js';
import type { ItemBatch } from './wire/export-request.js';
import { WindowWriter } from './wire/item-window.js';
import {
  encodeAttributes,
  encodeSpanEnd,
  encodeValue,
  LOG,
  RECORD,
  SPAN,
  type WireWriter,
} from './wire/wire-writer.js';

/** What destinations are opened with. */
export interface OpenDestinationsDeps extends OtlpDestinationDeps {
  /** Where exporters of others run. */
  readonly threads: ExporterThreads;
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
export async function openDestinations(
  configuration: Configuration,
  ownHosts: readonly string[] | null,
  deps: OpenDestinationsDeps,
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
  for (const config of otlp) {
    await collect(async () => ({
      destination: await openOtlpDestination(config, deps),
      ...commonOf(config, configuration, config.usesSdk !== true && config.endpoints.logs !== undefined),
      where: addressOf(config),
    }));
  }
  for (const config of kafkaDestinations(configuration)) await collect(() => openKafka(config, configuration, deps));
  for (const settings of fromFile) {
    const { exporterModule } = settings;
    if (exporterModule !== null) await collect(() => openModule(settings, exporterModule, configuration, deps));
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return opened;
}

async function openOtlpDestination(config: DestinationConfig, deps: OpenDestinationsDeps): Promise<Destination> {
  const endpoint = config.endpoints.traces;
  if (config.usesSdk !== true || endpoint === undefined) return OtlpDestination.open(config, deps);
  const { name } = config;
  const { userAgent, threads } = deps;
  // It is started with the first batch.
  return threads.create({ name, timeoutMs: endpoint.timeoutMs, exporter: { kind: 'otlp', endpoint, userAgent } });
}

async function openKafka(
  config: KafkaDestinationConfig,
  configuration: Configuration,
  { clock, codecs, createKafkaProducer }: OpenDestinationsDeps,
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
    ...commonOf(config, configuration, signals.includes('logs')),
    where: topicsAndBrokersOf(config),
  };
}

function kafkaSecrets({ sasl }: KafkaConnection): readonly string[] {
  if (sasl === null) return [];
  return [sasl.mechanism === 'OAUTHBEARER' ? sasl.clientSecret : sasl.password];
}

async function openModule(
  settings: DestinationSettings,
  path: string,
  configuration: Configuration,
  { threads }: OpenDestinationsDeps,
): Promise<OpenedExport> {
  const { name, timeoutMs } = settings;
  const destination = threads.create({ name, timeoutMs, exporter: { kind: 'module', path } });
  await destination.open();
  return { destination, ...commonOf(settings, configuration, false), where: path };
}

/** Returns what all kinds of destinations have settings for; where one has none, that of the program counts. @param hasLogs whether it gets log records */
function commonOf(
  { redaction, mapping, resource, maxBacklogAgeMs }: CommonSettings,
  configuration: Configuration,
  hasLogs: boolean,
): Pick<OpenedExport, 'mapping' | 'maxBacklogAgeMs'> {
  const age = maxBacklogAgeMs ?? configuration['max-backlog-age'];
  const switches = mappingSwitchesFrom({ ...configuration.mapping, ...mapping });
  // Without log records, events stay where they are.
  const events = switches.events === 'logs' && !hasLogs ? true : switches.events;
  return {
    mapping: {
      ...DEFAULT_MAPPING_OPTIONS,
      switches: { ...switches, events },
      redaction: redactionFor('anybodyElse', redaction ?? configuration.redaction),
      resourceOverrides: { ...configuration.resourceOverrides, ...resource },
      publicUrl: configuration['public-url'] === 'off' ? null : configuration['public-url'],
      eventHoldMs: configuration['event-hold'],
    },
    maxBacklogAgeMs: age === 'off' ? null : age,
  };
}

interface CommonSettings extends Pick<DestinationConfig, 'redaction' | 'mapping' | 'resource'> {
  readonly maxBacklogAgeMs?: number | 'off' | null | undefined;
}

/** What a destination answered to a test of one signal. */
export interface TestAnswer {
  readonly signal: Signal;
  readonly result: SendResult;
  readonly durationMs: number;
}

/** What became of the test of a destination. */
export interface DestinationTest {
  /** Of the span and the log record that were sent, to be looked for there. */
  readonly traceId: string;
  /** One for each signal that the destination gets, traces first. */
  readonly answers: readonly TestAnswer[];
}

const NAME = 'run-bridge test';
const ATTRIBUTES = { 'run_bridge.test': true } as const;
const TEXT = 'A test of this destination, sent from the settings page of run-bridge. No run has happened.';
const SPAN_MS = 1;
const SEVERITY_INFO = 9;
const BLOCK_BYTES = 1_024;

/**
 * Sends a destination a span `run-bridge test`, and a log record where it gets those, each once: past the queue and the cursors
 * of its runs. Never throws for what the other side does.
 * @param version the program's
 * @param deadline when it is given up
 */
export async function testDestination(
  destination: Pick<Destination, 'send' | 'signals'>,
  { clock, version }: { readonly clock: Clock; readonly version: string },
  deadline: AbortSignal,
): Promise<DestinationTest> {
  const context = { traceId: randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex'), traceFlags: 1 };
  const answers: TestAnswer[] = [];
  for (const signal of destination.signals) {
    const startedMs = clock.monotonicMs();
    const batch = testBatch(signal, context, clock.nowUnixMs(), version);
    const sent = destination.send(batch, deadline).then(({ result }) => result);
    const result = await Promise.race([sent, whenAborted(deadline).then(() => GIVEN_UP)]);
    answers.push({ signal, result, durationMs: clock.monotonicMs() - startedMs });
  }
  return { traceId: context.traceId, answers };
}

const GIVEN_UP = retryable('no answer in time');

function testBatch(signal: Signal, context: SpanContext, nowUnixMs: number, version: string): ItemBatch {
  const resource = { 'service.name': 'run-bridge', 'service.version': version };
  const group = new ExportGroup(resource, { name: 'run-bridge', version });
  const windows = new WindowWriter(BLOCK_BYTES);
  const write = signal === 'logs' ? writeLog : writeSpan;
  write(windows.begin(), context, nowUnixMs);
  windows.add(signal, group, 0);
  return { signal, ranges: windows.take()[signal] };
}

function writeSpan(out: WireWriter, { traceId, spanId }: SpanContext, nowUnixMs: number): void {
  out.tag(RECORD);
  const start = out.open();
  out.tag(SPAN.traceId);
  out.hex(traceId);
  out.tag(SPAN.spanId);
  out.hex(spanId);
  out.tag(SPAN.name);
  out.text(NAME);
  out.tag(SPAN.kind);
  out.varint(SpanKind.INTERNAL + 1);
  out.tag(SPAN.startTime);
  writeTime(out, nowUnixMs - SPAN_MS);
  out.tag(SPAN.endTime);
  writeTime(out, nowUnixMs);
  encodeAttributes(out, SPAN.attributes, { ...ATTRIBUTES, 'run_bridge.description': TEXT });
  encodeSpanEnd(out, { code: SpanStatusCode.UNSET });
  out.close(start);
}

function writeLog(out: WireWriter, { traceId, spanId }: SpanContext, nowUnixMs: number): void {
  out.tag(RECORD);
  const start = out.open();
  out.tag(LOG.time);
  writeTime(out, nowUnixMs);
  out.tag(LOG.severityNumber);
  out.varint(SEVERITY_INFO);
  out.tag(LOG.severityText);
  out.text('INFO');
  out.tag(LOG.body);
  encodeValue(out, TEXT);
  encodeAttributes(out, LOG.attributes, ATTRIBUTES);
  out.tag(LOG.traceId);
  out.hex(traceId);
  out.tag(LOG.spanId);
  out.hex(spanId);
  out.tag(LOG.observedTime);
  writeTime(out, nowUnixMs);
  out.close(start);
}

function writeTime(out: WireWriter, unixMs: number): void {
  out.time(Math.floor(unixMs / 1_000), (unixMs % 1_000) * 1_000_000);
}
