import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { KafkaJournalSettings } from '../config/kafka-settings.js';
import type { Clock } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { HealthCheck } from '../core/health.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import type { Feature } from '../feature.js';
import type { RejectFile } from '../files/feature.js';
import type { PassthroughSegments } from '../log/passthrough-segments.js';
import type { RecordLogReader } from '../log/record-log.js';
import { type DamageReport, RecordLogFiles } from '../log/record-log-files.js';
import type { OtlpCodec, OtlpEncoding } from '../otlp/otlp-codec.js';
import type { ExportIntake } from '../receiver/feature.js';
import type { RecordConsumer } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';
import { RunState } from '../run/open-run.js';
import { parseRun } from '../run/parse-run.js';
import type { RunFinder, RunListener, StepListener } from '../run/run-event.js';
import { RUN_TRACKER_DEFAULTS } from '../run/run-tracker-config.js';
import { TraceSteps } from '../run/trace-steps.js';
import type { RunSummary } from '../run/verdict.js';
import type { S3Location } from '../storage/bucket/object-store.js';
import { S3ObjectStore } from '../storage/bucket/s3-bucket.js';
import type { Fence } from '../storage/journal-store.js';
import type { TelemetryStorage } from '../storage/retention-store.js';
import type { RunStore } from '../storage/run-store.js';
import type { State } from '../storage/state.js';
import { Copies } from './bucket/copies.js';
import { SharedFiles } from './bucket/shared-files.js';
import { TelemetryBucket } from './bucket/telemetry-bucket.js';
import { Builder, type TraceFollower } from './builder.js';
import { KafkaJournal } from './kafka/journal.js';
import { KafkaSource } from './kafka/kafka-source.js';
import { Leased, ProcessLease } from './leases.js';
import { builderMetrics, journalMetrics } from './metrics.js';

/** The settings of a process that shares the work with others. */
export interface ClusterOptions {
  readonly settings: KafkaJournalSettings;
  readonly bucket: S3Location;
  /** Where its files are on this machine. */
  readonly folder: string;
  readonly fence: Fence;
  /** Whether it builds runs; if not, it reads no partition of the journal. */
  readonly isBuilding: boolean;
  /** After which a trace counts as silent, in milliseconds. */
  readonly silenceMs: number;
  /** What the program may take, in bytes. */
  readonly maxMemoryBytes: number;
  readonly rejects: Pick<RejectFile, 'add'>;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
}

/** What sharing the work needs of the program. */
export interface ClusterHost {
  readonly state: State;
  readonly passthrough: PassthroughSegments;
  readonly follower: TraceFollower;
  /** Returns the names of destinations. */
  readonly destinations: () => readonly string[];
  /** Makes an intake for requests in OTLP that do not come over the network. */
  readonly intakeFor: (consumer: RecordConsumer) => ExportIntake;
  readonly codecs: Readonly<Record<OtlpEncoding, OtlpCodec>>;
  readonly onDamage: DamageReport;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A trace is stored so long after it counts as silent, whatever is known of it, in milliseconds. */
const AFTER_SILENCE_MS = 60_000;
const RUN_FILE = 'run.json';

/**
 * One of several processes that share the work. Their journal is two topics of Kafka, one process a trace builds the record log of
 * it, and logs go to a bucket in segments, where all processes read them.
 */
export class Cluster implements StepListener {
  /** Accepts requests and deliveries: Kafka has them when it resolves. */
  readonly writer: KafkaJournal;
  /** What is started before all that follows logs: the lease of this process, the bucket and copies of it. */
  readonly first: readonly Component[];
  /** Builds logs of the traces whose partitions this process has; empty where it builds none. */
  readonly building: readonly Component[];
  readonly healthChecks: readonly (readonly [name: string, check: HealthCheck])[];
  /** Metrics of the journal, and of the building of runs. */
  readonly features: readonly Feature[];
  /** Reads logs that this process builds. */
  readonly localReader: RecordLogReader;
  /** Reads any log, and finds files of any run. */
  readonly copies: Copies;
  /** Counts and removes files of runs. */
  readonly storage: TelemetryStorage;
  private readonly builder: Builder;

  constructor(
    private readonly options: ClusterOptions,
    private readonly host: ClusterHost,
  ) {
    const { settings, folder, fence, isBuilding } = options;
    const { state, clock } = host;
    const { processId } = fence;
    const { journal } = state;
    const bucket = new S3ObjectStore(options.bucket);
    const files = new SharedFiles({ journal, bucket, processId, folder, newId: () => randomUUID() });
    const silenceMs = options.silenceMs + AFTER_SILENCE_MS;
    const writer = new KafkaJournal(settings, host);
    const builder = new Builder({ ...host, ...options, processId, bucket, journal, files, writer, silenceMs });
    const { traces, logs } = settings.topics;
    const topics = { tracesTopics: [traces], logsTopics: [logs], jsonlTopics: [] };
    const source = new KafkaSource(
      { ...settings, ...topics, encoding: 'otlp_proto', initialOffset: 'earliest' },
      { ...host, ...options, intake: host.intakeFor(builder), consumer: builder, custody: builder },
    );
    this.writer = writer;
    this.builder = builder;
    this.localReader = new RecordLogFiles(folder, host.onDamage, (traceId) => builder.lengthBytes(traceId));
    this.copies = new Copies({
      ...{ ...host, bucket, journal, folder: join(folder, 'copies') },
      localReader: this.localReader,
      isLocal: (traceId) => this.isLocal(traceId),
    });
    this.first = [
      new ProcessLease(fence, { ...host, leases: state.leases }),
      { name: 'bucket', start: async () => {}, shutdown: async () => bucket.close() },
      this.copies,
    ];
    this.building = isBuilding ? [builder, source] : [];
    this.healthChecks = [
      [writer.name, () => writer.health()],
      ...(isBuilding ? [['builder', () => source.health()] as const] : []),
    ];
    this.features = [
      { components: [], metrics: async () => journalMetrics(writer) },
      ...(isBuilding ? [{ components: [], metrics: async () => builderMetrics(builder, source, clock) }] : []),
    ];
    this.storage = new TelemetryBucket({ openBucket: async () => bucket, traces: journal });
  }

  /** Has components run in one process at a time. @param name of their lease */
  leased(name: string, components: readonly Component[]): Component {
    const { state, clock, logger } = this.host;
    const { processId } = this.options.fence;
    return new Leased(name, components, { leases: state.leases, holder: () => processId, clock, logger });
  }

  /** Returns how much of a log no crash of this machine can lose; 0 where another process has the trace. */
  storedBytes(traceId: TraceId): number {
    return this.builder.storedBytes(traceId);
  }

  /** Notifies whoever has the traces that their steps have changed. */
  onStepChanged(traceIds: readonly TraceId[]): void {
    const { state, logger } = this.host;
    state.journal.noteSteps(traceIds).catch((error: unknown) => {
      const message = 'failed to report updated steps; the verdicts of their runs may be late';
      logger.error({ error: reasonOf(error) }, message);
    });
  }

  /** Stores rows of runs: a process starts without any, and saves one only after the log that it describes is in the bucket. */
  get runs(): RunStore {
    const { runs } = this.host.state;
    return {
      find: (traceId) => runs.find(traceId),
      save: async (rows) => {
        const areStored = await Promise.all(
          rows.map(({ traceId, state }) => this.builder.store(traceId, state === 'finished')),
        );
        await runs.save(rows.filter((_, index) => areStored[index] === true));
      },
      listUnfinished: async () => [],
      list: (limit) => runs.list(limit),
    };
  }

  /**
   * Puts files of a run into the bucket before other listeners are notified that they can be read; what fails is repeated with its event.
   * @param parquet writes them; `null` where none is written
   */
  sharing(parquet: RunListener | null): RunListener {
    return {
      onRunEvent: async (event) => {
        await parquet?.onRunEvent(event);
        const { traceId, invocations, state } = event.run;
        if (event.type === 'finished') {
          await this.builder.share(traceId, [...invocations.map(({ parquetFile }) => parquetFile), RUN_FILE]);
        } else if (event.type === 'invocationEnded' && state === 'open') {
          await this.builder.share(traceId, [event.invocation.parquetFile]);
        }
      },
    };
  }

  /** Finds any run. @param local finds those that this process builds */
  runsOf(local: RunFinder): RunFinder {
    return { find: (traceId) => (this.isLocal(traceId) ? local.find(traceId) : this.findRun(traceId)) };
  }

  private isLocal(traceId: TraceId): boolean {
    return this.builder.lengthBytes(traceId) !== undefined;
  }

  /** Sums up the log of a run that another process has. */
  private async findRun(traceId: TraceId): Promise<RunSummary | undefined> {
    const { copies, host } = this;
    const { state, clock } = host;
    const row = await state.runs.find(traceId);
    const logBytes = await copies.lengthBytes(traceId);
    if (row?.state === 'finished' && row.logBytes === logBytes) return parseRun(row.summary);
    if (logBytes === 0) return row && parseRun(row.summary);
    const run = new RunState(RUN_TRACKER_DEFAULTS);
    const nowMs = clock.monotonicMs();
    for await (const records of copies.read(traceId, { fromOffset: 0, toOffset: logBytes })) run.add(records, nowMs);
    // Its steps are registered by whoever has it.
    const steps = new TraceSteps(traceId, {
      stepsOf: (id) => state.executions.stepsOf(id),
      findStep: async () => undefined,
      attach: async () => false,
    });
    await steps.refresh([]);
    const seenUnixMs = clock.nowUnixMs();
    return {
      traceId,
      firstSeenUnixMs: row?.firstSeenUnixMs ?? seenUnixMs,
      lastSeenUnixMs: row?.lastSeenUnixMs ?? seenUnixMs,
      // Whether it is over is for the process to say that has it.
      state: 'open',
      logBytes,
      invocations: run.judge(nowMs, steps).invocations,
    };
  }
}
