import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { bucketOf } from '../config/bucket-of.js';
import type { Configuration } from '../config/configuration.js';
import { ConfigurationError } from '../config/configuration-error.js';
import type { KafkaConnection, KafkaJournalSettings } from '../config/kafka-settings.js';
import type { Clock } from '../core/clock.js';
import type { Guard } from '../core/guard.js';
import type { Health } from '../core/health.js';
import { lazy } from '../core/lazy.js';
import type { Logger } from '../core/logger.js';
import type { Feature } from '../feature.js';
import type { RejectFile } from '../files/feature.js';
import type { OtlpCodec, OtlpEncoding } from '../otlp/otlp-codec.js';
import type { BodyConsumer, ExportIntake } from '../receiver/feature.js';
import type { RecordConsumer } from '../record/record-batch.js';
import type { S3Location } from '../storage/bucket/object-store.js';
import { JOURNAL_FOLDER } from '../storage/data-folder.js';
import type { Fence, JournalStore } from '../storage/journal-store.js';
import type { TelemetryStorage } from '../storage/retention-store.js';
import type { Cluster, ClusterHost } from './cluster.js';
import type { KafkaSource } from './kafka/kafka-source.js';
import type { KafkaProducer, KafkaProducerDeps } from './kafka/producer.js';
import { sharedLocationProblems } from './sharing-problems.js';

// The door of Kafka and of several processes: no other folder imports anything else of this one. Kafka's client is loaded where the
// configuration names topics.

export type { Cluster, ClusterHost } from './cluster.js';
export { DatabaseLease, RETENTION_LEASE, SEVERAL, takeLease } from './leases.js';
export { sharedLocationProblems, sharingProblems } from './sharing-problems.js';

/** What reading topics needs of the program. */
export interface KafkaHost {
  /** Gives a message room, and takes requests in OTLP. */
  readonly intake: ExportIntake;
  /** Takes records of the engine's JSONL. */
  readonly consumer: RecordConsumer;
  readonly health: Health;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
}

/** Reads the topics that `sources: kafka:` names; does nothing where there are none. */
export function createKafkaSource(
  { kafkaSource: settings, 'data-dir': dataFolder }: Pick<Configuration, 'kafkaSource' | 'data-dir'>,
  host: KafkaHost,
): Feature {
  if (settings === null) return { components: [] };
  const source = lazy(async (): Promise<KafkaSource> => {
    const { KafkaSource: Source } = await import('./kafka/kafka-source.js');
    return new Source(settings, { ...host, rejects: await rejectsIn(dataFolder, host) });
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

/** Loads Kafka's client, and makes a producer that connects with its first message. */
export async function createKafkaProducer(
  connection: KafkaConnection,
  deps: KafkaProducerDeps,
): Promise<KafkaProducer> {
  const { KafkaProducer: Producer } = await import('./kafka/producer.js');
  return new Producer(connection, deps);
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

/** Opens the journal for a program that only receives. */
export async function openJournal(settings: KafkaJournalSettings, host: JournalHost): Promise<Journal> {
  const { KafkaJournal } = await import('./kafka/journal.js');
  const journal = new KafkaJournal(settings, host);
  host.health.register(journal.name, () => journal.health());
  return {
    components: [journal],
    bodies: journal,
    guard: journal,
    metrics: async () => (await import('./metrics.js')).journalMetrics(journal),
  };
}

/** A process that is about to share the work with others, before what follows record logs is made. */
export interface ClusterOpening {
  /** Who this process is among the others. */
  readonly fence: Fence;
  /** Where record logs and files of runs are on this machine, in `runs/`. */
  readonly folder: string;
  join(host: ClusterHost): Cluster;
}

/** What opening it needs of the program. */
export interface ClusterOpeningHost extends Pick<KafkaHost, 'clock' | 'logger' | 'random'> {
  /** The id of the data folder in the database. */
  readonly folderId: string;
  /** Whether this process builds runs. */
  readonly isBuilding: boolean;
}

/**
 * Opens the work that this process shares with others by `journal: kafka:`; `undefined` with one process.
 * @throws ConfigurationError if there is no shared bucket
 */
export async function openCluster(
  config: Configuration,
  { folderId, isBuilding, clock, logger, random }: ClusterOpeningHost,
): Promise<ClusterOpening | undefined> {
  const { processes, journal: settings, 'data-dir': dataFolder } = config;
  if (processes !== 'several' || settings === null) return undefined;
  const fence = { processId: randomUUID(), folderId };
  const folder = join(dataFolder, JOURNAL_FOLDER);
  const options = {
    ...{ settings, folder, fence, isBuilding, random, bucket: sharedBucketOf(config) },
    ...{ silenceMs: config['invocation-silence'], maxMemoryBytes: config['max-memory'] },
    rejects: await rejectsIn(dataFolder, { clock, logger }),
  };
  const { Cluster: Joined } = await import('./cluster.js');
  return { fence, folder, join: (host) => new Joined(options, host) };
}

/** The files of runs that several processes share, for a command. */
export interface SharedTelemetry {
  readonly storage: TelemetryStorage;
  close(): Promise<void>;
}

/** Opens the files of runs that several processes share; nothing is connected before it is used. @throws ConfigurationError if there is no shared bucket */
export async function openSharedTelemetry(config: Configuration, traces: JournalStore): Promise<SharedTelemetry> {
  const location = sharedBucketOf(config);
  const { TelemetryBucket } = await import('./bucket/telemetry-bucket.js');
  const bucket = lazy(async () => {
    const { S3ObjectStore } = await import('../storage/bucket/s3-bucket.js');
    return new S3ObjectStore(location);
  });
  return {
    storage: new TelemetryBucket({ openBucket: () => bucket.get(), traces }),
    close: async () => (await bucket.ifNeeded())?.close(),
  };
}

function sharedBucketOf(config: Configuration): S3Location {
  const location = bucketOf(config);
  if (location === null) throw new ConfigurationError(sharedLocationProblems(config));
  return location;
}

/** Opens the file of messages that cannot be read. */
async function rejectsIn(
  dataFolder: string,
  { clock, logger }: Pick<KafkaHost, 'clock' | 'logger'>,
): Promise<RejectFile> {
  const { REJECTS_FILE, RejectFile: Rejects } = await import('../files/feature.js');
  const notify = (problem: string) => logger.warn({ problem }, 'failed to keep rejected messages');
  return new Rejects(join(dataFolder, REJECTS_FILE), clock, notify);
}
