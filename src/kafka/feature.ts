import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Configuration } from '../config/configuration.js';
import type { KafkaConnection, KafkaJournalSettings } from '../config/kafka-settings.js';
import type { Clock } from '../core/clock.js';
import type { Guard } from '../core/guard.js';
import type { Health } from '../core/health.js';
import { lazy } from '../core/lazy.js';
import type { Logger } from '../core/logger.js';
import type { Feature } from '../feature.js';
import type { OtlpCodec, OtlpEncoding } from '../otlp/otlp-codec.js';
import type { BodyConsumer, ExportIntake } from '../receiver/feature.js';
import type { RecordConsumer } from '../record/record-batch.js';
import { type SharedLogOpening, sharedLogFolder } from '../run/shared-record-log.js';
import type { S3Location } from '../storage/bucket/object-store.js';
import type { KafkaRecordLog } from './kafka-record-log.js';
import type { KafkaSource } from './kafka-source.js';
import type { KafkaProducer, KafkaProducerDeps } from './producer.js';

// The door of Kafka: no other folder imports anything else of this one. Its client is loaded where the configuration names topics.

/** What reading topics needs of the program. */
export interface KafkaHost {
  /** Gives a message room, and takes requests in OTLP. */
  readonly intake: ExportIntake;
  /** Takes records of the engine's JSONL. */
  readonly consumer: RecordConsumer;
  readonly health: Health;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** Writes requests to the topics that `journal: kafka:` names. */
export interface Journal extends Feature {
  /** Accepts requests once Kafka has them. */
  readonly bodies: BodyConsumer;
  /** Refuses requests while Kafka is away. */
  readonly guard: Guard;
}

/** What the journal needs of the program. */
export interface JournalHost extends Pick<KafkaHost, 'health' | 'clock' | 'logger'> {
  /** OTLP's encodings. */
  readonly codecs: Readonly<Record<OtlpEncoding, OtlpCodec>>;
}

export async function openJournal(settings: KafkaJournalSettings, host: JournalHost): Promise<Journal> {
  const { KafkaJournal } = await import('./journal.js');
  const journal = new KafkaJournal(settings, host);
  host.health.register(journal.name, () => journal.health());
  return {
    components: [journal],
    bodies: journal,
    guard: journal,
    metrics: async () => (await import('./metrics.js')).journalMetrics(journal),
  };
}

/** Loads what writes messages to topics, and makes one of it; it connects with the first message. */
export async function createKafkaProducer(
  connection: KafkaConnection,
  deps: KafkaProducerDeps,
): Promise<KafkaProducer> {
  const { KafkaProducer: Producer } = await import('./producer.js');
  return new Producer(connection, deps);
}

/** A record log that processes share, and its metrics: of each process that has it `written`, of those that build runs `built`. */
export interface OpenedSharedLog extends SharedLogOpening {
  readonly written: Feature;
  readonly built: Feature;
}

/** What a record log that processes share needs of the program before the program is made. */
export interface SharedLogPlace extends Pick<KafkaHost, 'clock' | 'logger' | 'random'> {
  readonly bucket: S3Location;
  readonly folderId: string;
}

/** Reads the topics that `sources: kafka:` names; nothing where there are none. */
export function createKafkaSource(
  { kafkaSource: settings, 'data-dir': dataFolder }: Pick<Configuration, 'kafkaSource' | 'data-dir'>,
  host: KafkaHost,
): Feature {
  if (settings === null) return { components: [] };
  const source = lazy(async (): Promise<KafkaSource> => {
    const [{ KafkaSource: Source }, { REJECTS_FILE, RejectFile }] = await Promise.all([
      import('./kafka-source.js'),
      import('../files/feature.js'),
    ]);
    const tell = (problem: string) => host.logger.warn({ problem }, 'failed to keep rejected messages');
    return new Source(settings, { ...host, rejects: new RejectFile(join(dataFolder, REJECTS_FILE), host.clock, tell) });
  });
  host.health.register('kafka', () => source.value?.health() ?? { ready: true, details: { state: 'starting' } });
  return {
    components: [
      {
        name: 'kafka-source',
        start: async () => (await source.get()).start(),
        shutdown: async (deadline) => (await source.ifNeeded())?.shutdown(deadline),
      },
    ],
    metrics: async () => (await import('./metrics.js')).sourceMetrics(await source.get(), host.clock),
  };
}

/**
 * Opens the record log that this process shares with others by `journal: kafka:`.
 * @param folderId of the data folder
 */
export async function openSharedLog(
  config: Pick<Configuration, 'data-dir' | 'invocation-silence' | 'max-memory'>,
  settings: KafkaJournalSettings,
  { bucket, folderId, clock, logger, random }: SharedLogPlace,
): Promise<OpenedSharedLog> {
  const [{ KafkaRecordLog: Log }, { REJECTS_FILE, RejectFile }, { builderMetrics, journalMetrics }] = await Promise.all(
    [import('./kafka-record-log.js'), import('../files/feature.js'), import('./metrics.js')],
  );
  const processId = randomUUID();
  const folder = sharedLogFolder(config['data-dir']);
  const silenceMs = config['invocation-silence'];
  const maxMemoryBytes = config['max-memory'];
  const tell = (problem: string) => logger.warn({ problem }, 'failed to keep rejected messages');
  const rejects = new RejectFile(join(config['data-dir'], REJECTS_FILE), clock, tell);
  const options = { settings, bucket, folder, processId, silenceMs, maxMemoryBytes, rejects, random };
  let log: KafkaRecordLog | undefined;
  const made = () => {
    if (log === undefined) throw new Error('the shared record log is not made yet');
    return log;
  };
  return {
    fence: { processId, folderId },
    folder,
    create(host) {
      log = new Log(options, host);
      return log;
    },
    written: { components: [], metrics: async () => journalMetrics(made().writer) },
    built: { components: [], metrics: async () => builderMetrics(made().builder, made().source, clock) },
  };
}
