import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { KafkaJournalSettings } from '../config/kafka-settings.js';
import { reasonOf } from '../core/errors.js';
import type { HealthState } from '../core/health.js';
import type { Component } from '../core/lifecycle.js';
import type { RejectFile } from '../files/feature.js';
import { Copies } from '../log/bucket/copies.js';
import { SharedFiles } from '../log/bucket/shared-files.js';
import type { RecordLogReader } from '../log/record-log.js';
import { RecordLogFiles } from '../log/record-log-files.js';
import type { TraceId } from '../record/telemetry-record.js';
import { sharedTelemetry } from '../retention/feature.js';
import { RunState } from '../run/open-run.js';
import { parseRun } from '../run/parse-run.js';
import type { RunListener } from '../run/run-event.js';
import { RUN_TRACKER_DEFAULTS } from '../run/run-tracker-config.js';
import type { RunFinder, SharedLogHost, SharedRecordLog } from '../run/shared-record-log.js';
import { TraceSteps } from '../run/trace-steps.js';
import type { RunSummary } from '../run/verdict.js';
import type { S3Location } from '../storage/bucket/object-store.js';
import { S3ObjectStore } from '../storage/bucket/s3-bucket.js';
import type { TelemetryStorage } from '../storage/retention-store.js';
import { Builder } from './builder.js';
import { KafkaJournal } from './journal.js';
import { KafkaSource } from './kafka-source.js';

/** What it is made with. */
export interface KafkaRecordLogOptions {
  readonly settings: KafkaJournalSettings;
  readonly bucket: S3Location;
  /** Where its files are on this machine. */
  readonly folder: string;
  readonly processId: string;
  /** After which a trace counts as silent, in milliseconds. */
  readonly silenceMs: number;
  /** What the program may take, in bytes. */
  readonly maxMemoryBytes: number;
  readonly rejects: Pick<RejectFile, 'add'>;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** A trace is stored so long after it counts as silent, whatever is known of it, in milliseconds. */
const AFTER_SILENCE_MS = 60_000;
const RUN_FILE = 'run.json';

/** The record log of several processes, whose journal is two topics of Kafka, and whose logs go to a bucket in segments. */
export class KafkaRecordLog implements SharedRecordLog {
  readonly writer: KafkaJournal;
  /** What it builds of its partitions, and how it reads them: nothing of which happens before they are started. */
  readonly builder: Builder;
  readonly source: KafkaSource;
  readonly building: readonly Component[];
  readonly first: readonly Component[];
  readonly ownReader: RecordLogReader;
  readonly reader: Copies;
  readonly telemetry: Copies;
  readonly place: TelemetryStorage;

  constructor(
    options: KafkaRecordLogOptions,
    private readonly deps: SharedLogHost,
  ) {
    const { settings, folder, processId } = options;
    const { journal } = deps.state;
    const bucket = new S3ObjectStore(options.bucket);
    const files = new SharedFiles({ journal, bucket, processId, folder, newId: () => randomUUID() });
    const silenceMs = options.silenceMs + AFTER_SILENCE_MS;
    this.writer = new KafkaJournal(settings, deps);
    const builder = new Builder({ ...deps, ...options, bucket, journal, files, writer: this.writer, silenceMs });
    this.builder = builder;
    const { traces, logs } = settings.topics;
    const topics = { tracesTopics: [traces], logsTopics: [logs], jsonlTopics: [] };
    this.source = new KafkaSource(
      { ...settings, ...topics, encoding: 'otlp_proto', initialOffset: 'earliest' },
      { ...deps, ...options, intake: deps.intakeFor(builder), consumer: builder, custody: builder },
    );
    const own = new RecordLogFiles(folder, deps.onDamage, (traceId) => builder.lengthBytes(traceId));
    const isOwn = (traceId: TraceId) => builder.lengthBytes(traceId) !== undefined;
    const copies = new Copies({ ...deps, bucket, journal, folder: join(folder, 'copies'), own, isOwn });
    this.building = [builder, this.source];
    this.first = [{ name: 'bucket', start: async () => {}, shutdown: async () => bucket.close() }, copies];
    this.ownReader = own;
    this.reader = copies;
    this.telemetry = copies;
    this.place = sharedTelemetry({ openBucket: async () => bucket, traces: journal });
  }

  health(): HealthState {
    return this.source.health();
  }

  storedBytes(traceId: TraceId): number {
    return this.builder.storedBytes(traceId);
  }

  /** Whoever looks after the traces looks at their steps again. */
  onStepChanged(traceIds: readonly TraceId[]): void {
    const { state, logger } = this.deps;
    state.journal.noteSteps(traceIds).catch((error: unknown) => {
      const message = 'failed to report updated steps; the verdicts of their runs may be late';
      logger.error({ error: reasonOf(error) }, message);
    });
  }

  store(traceId: TraceId, isFinished: boolean): Promise<boolean> {
    return this.builder.store(traceId, isFinished);
  }

  /** Files of a run are in the bucket before listeners are notified that they can be read; what fails is repeated with its event. */
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

  runsOf(own: RunFinder): RunFinder {
    return {
      find: (traceId) => (this.builder.lengthBytes(traceId) === undefined ? this.findRun(traceId) : own.find(traceId)),
    };
  }

  /** A run that another process has: what its log adds up to. */
  private async findRun(traceId: TraceId): Promise<RunSummary | undefined> {
    const { reader } = this;
    const { state, clock } = this.deps;
    const row = await state.runs.find(traceId);
    const logBytes = await reader.lengthBytes(traceId);
    if (row?.state === 'finished' && row.logBytes === logBytes) return parseRun(row.summary);
    if (logBytes === 0) return row && parseRun(row.summary);
    const run = new RunState(RUN_TRACKER_DEFAULTS);
    const nowMs = clock.monotonicMs();
    for await (const records of reader.read(traceId, { fromOffset: 0, toOffset: logBytes })) run.add(records, nowMs);
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
