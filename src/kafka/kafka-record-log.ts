import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { KafkaJournalSettings } from '../config/kafka-settings.js';
import { reasonOf } from '../core/errors.js';
import type { HealthState } from '../core/health.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import type { RejectFile } from '../files/feature.js';
import type { RecordLogReader } from '../log/record-log.js';
import type { TraceId } from '../record/telemetry-record.js';
import { sharedTelemetry } from '../retention/feature.js';
import type { RunEvent, RunListener, StepListener } from '../run/run-event.js';
import { RUN_TRACKER_DEFAULTS } from '../run/run-tracker-config.js';
import type { RunFileCopies, RunFinder, SharedLogHost, SharedRecordLog } from '../run/shared-record-log.js';
import type { S3Location } from '../storage/bucket/s3-location.js';
import { S3ObjectStore } from '../storage/bucket/s3-object-store.js';
import type { JournalStore } from '../storage/journal-store.js';
import type { TelemetryStorage } from '../storage/retention-store.js';
import { Builder } from './builder.js';
import { FileCopies } from './file-copies.js';
import { KafkaJournal } from './journal.js';
import { KafkaSource } from './kafka-source.js';
import { CopyReader, SharedRunReader } from './readers.js';
import { RemovedCopies } from './removed-copies.js';
import { SharedFiles } from './shared-files.js';

/** What it is made with. */
export interface KafkaRecordLogOptions {
  readonly settings: KafkaJournalSettings;
  readonly bucket: S3Location;
  /** Where its files are on this machine. */
  readonly folder: string;
  readonly processId: string;
  /** After which a trace counts as silent, in milliseconds. */
  readonly silenceMs: number;
  readonly rejects: Pick<RejectFile, 'add'>;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** A trace is stored so long after it counts as silent, whatever is known of it, in milliseconds. */
const AFTER_SILENCE_MS = 60_000;

/** The record log of several processes, whose journal is two topics of Kafka, and whose logs go to a bucket in segments. */
export class KafkaRecordLog implements SharedRecordLog {
  readonly writer: KafkaJournal;
  readonly owned: SharedRecordLog['owned'];
  readonly steps: StepListener;
  private readonly builder: Builder;
  private readonly source: KafkaSource;
  private readonly files: SharedFiles;
  private readonly bucket: S3ObjectStore;
  private readonly fileCopies: FileCopies;
  private copies: CopyReader | undefined;

  constructor(
    { settings, bucket: location, folder, processId, silenceMs, rejects, random }: KafkaRecordLogOptions,
    private readonly deps: SharedLogHost,
  ) {
    const { state, clock, logger, foreign, follower, destinations, codecs } = deps;
    const { journal } = state;
    this.bucket = new S3ObjectStore(location);
    const { bucket } = this;
    this.files = new SharedFiles({ journal, bucket, processId, folder, newId: () => randomUUID() });
    this.writer = new KafkaJournal(settings, { codecs, clock, logger, random });
    this.builder = new Builder({
      ...{
        bucket,
        journal,
        files: this.files,
        foreign,
        follower,
        writer: this.writer,
        processId,
        destinations,
        folder,
      },
      ...{ silenceMs: silenceMs + AFTER_SILENCE_MS, clock, logger },
    });
    const { traces, logs } = settings.topics;
    const topics = { tracesTopics: [traces], logsTopics: [logs], jsonlTopics: [] };
    const read = { ...settings, ...topics, encoding: 'otlp_proto', initialOffset: 'earliest' } as const;
    this.source = new KafkaSource(read, {
      ...{ intake: deps.intakeFor(this.builder), consumer: this.builder, custody: this.builder, rejects },
      ...{ clock, logger, random },
    });
    this.owned = new ReadingBuilder(this.builder, this.source);
    this.steps = new SharedSteps(journal, logger);
    this.fileCopies = new FileCopies({ bucket, traces: journal, folder: join(folder, 'files'), clock });
  }

  health(): HealthState {
    return this.source.health();
  }

  store(traceId: TraceId, isFinished: boolean): Promise<boolean> {
    return this.builder.store(traceId, isFinished);
  }

  get first(): readonly Component[] {
    const closing: Component = { name: 'bucket', start: async () => {}, shutdown: async () => this.bucket.close() };
    const copies = [this.fileCopies, ...(this.copies === undefined ? [] : [this.copies])];
    const { state, clock, logger } = this.deps;
    return [closing, ...copies, new RemovedCopies({ copies, traces: state.journal, clock, logger })];
  }

  get place(): TelemetryStorage {
    return sharedTelemetry({ openBucket: async () => this.bucket, traces: this.deps.state.journal });
  }

  sharing(parquet: RunListener | null): RunListener {
    return new SharedRunFiles(parquet, (traceId, names) => this.builder.share(traceId, names));
  }

  get telemetry(): RunFileCopies {
    return this.fileCopies;
  }

  runsOf(own: RunFinder, reader: RecordLogReader): RunFinder {
    const { state, clock } = this.deps;
    return new SharedRunReader({
      own: { has: (traceId) => this.has(traceId), find: (traceId) => own.find(traceId) },
      ...{ runs: state.runs, reader, steps: state.executions, times: RUN_TRACKER_DEFAULTS, clock },
    });
  }

  readerOf(own: RecordLogReader, folder: string): CopyReader {
    const { state, onDamage, clock } = this.deps;
    this.copies ??= new CopyReader({
      copies: { bucket: this.bucket, journal: state.journal },
      traces: state.journal,
      folder: join(folder, 'read'),
      own: {
        read: own.read.bind(own),
        lengthBytes: own.lengthBytes.bind(own),
        has: (traceId) => this.has(traceId),
      },
      ...{ onDamage, clock },
    });
    return this.copies;
  }

  private has(traceId: TraceId): boolean {
    return this.owned.lengthBytes(traceId) !== undefined;
  }
}

/** The builder, with what it reads. */
class ReadingBuilder implements Component {
  readonly name = 'builder';

  constructor(
    private readonly builder: Builder,
    private readonly source: KafkaSource,
  ) {}

  async start(): Promise<void> {
    await this.builder.start();
    this.source.start();
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    await this.source.shutdown(deadline);
    await this.builder.shutdown(deadline);
  }

  lengthBytes(traceId: TraceId): number | undefined {
    return this.builder.lengthBytes(traceId);
  }

  storedBytes(traceId: TraceId): number {
    return this.builder.storedBytes(traceId);
  }
}

const RUN_FILE = 'run.json';

/** Writes the files of a finished run, and shares them before listeners are notified that they can be read. */
export class SharedRunFiles implements RunListener {
  /** @param parquet writes Parquet; `null` where none is wanted @param share puts files into the bucket */
  constructor(
    private readonly parquet: RunListener | null,
    private readonly share: (traceId: TraceId, names: readonly string[]) => Promise<void>,
  ) {}

  /** @throws when something cannot be written or shared: the event is repeated. */
  async onRunEvent(event: RunEvent): Promise<void> {
    await this.parquet?.onRunEvent(event);
    const { run } = event;
    const { traceId } = run;
    if (event.type === 'finished') {
      await this.share(traceId, [...run.invocations.map(({ parquetFile }) => parquetFile), RUN_FILE]);
    } else if (event.type === 'invocationEnded' && run.state === 'open') {
      await this.share(traceId, [event.invocation.parquetFile]);
    }
  }
}

/** Has whoever looks after a trace look at its steps again. */
class SharedSteps implements StepListener {
  constructor(
    private readonly journal: Pick<JournalStore, 'noteSteps'>,
    private readonly logger: Logger,
  ) {}

  onStepChanged(traceIds: readonly TraceId[]): void {
    if (traceIds.length === 0) return;
    this.journal.noteSteps(traceIds).catch((error: unknown) => {
      this.logger.error(
        { error: reasonOf(error) },
        'failed to report updated steps; the verdicts of their runs may be late',
      );
    });
  }
}
