import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Clock } from '../core/clock.js';
import type { Component } from '../core/component.js';
import type { Logger } from '../core/logger.js';
import { reasonOf } from '../core/reason-of.js';
import type { RecordLogReader } from '../log/record-log.js';
import type { TraceId } from '../record/ids.js';
import { sharedTelemetry } from '../retention/feature.js';
import { parseRun } from '../run/parse-run.js';
import type { RunEvent, RunListener, StepListener } from '../run/run-event.js';
import { type EndingTimes, RunState } from '../run/run-state.js';
import type { RunSummary } from '../run/run-summary.js';
import { RUN_TRACKER_DEFAULTS } from '../run/run-tracker-config.js';
import type { RunFileCopies, RunFinder, SharedLogHost, SharedRecordLog } from '../run/shared-record-log.js';
import { type StepReader, TraceSteps } from '../run/trace-steps.js';
import type { S3Location } from '../storage/bucket/s3-location.js';
import { S3ObjectStore } from '../storage/bucket/s3-object-store.js';
import type { SharedTraceStore } from '../storage/cluster/shared-trace-store.js';
import type { TelemetryPlace } from '../storage/retention-store.js';
import type { RunStore } from '../storage/run-store.js';
import { CopyReader } from './copy-reader.js';
import { FileCopies } from './file-copies.js';
import { HeldTraces } from './held-traces.js';
import { Janitor } from './janitor.js';
import { JournalObjects } from './journal-objects.js';
import { JournalWriter } from './journal-writer.js';
import { Membership, type ProcessIdentity } from './membership.js';
import { RemovedCopies } from './removed-copies.js';
import { SharedFiles } from './shared-files.js';
import type { TraceCopyDeps } from './trace-copy.js';

/** What a cluster is made with. */
export interface ClusterOptions {
  readonly bucket: S3Location;
  /** Where its files are on this machine. */
  readonly folder: string;
  readonly identity: ProcessIdentity;
  /** After which a trace counts as silent, in milliseconds. */
  readonly silenceMs: number;
}

/** How long a log record waits for its span's name, in milliseconds; as the record log of one process has it. */
const NAME_HOLD_MS = 6_000;
/** A trace is stored so long after it counts as silent, whatever is known of it, in milliseconds. */
const AFTER_SILENCE_MS = 60_000;

/** The record log of several processes, whose journal is objects in a bucket and their order in the database. */
export class Cluster implements SharedRecordLog {
  readonly writer: JournalWriter;
  readonly held: HeldTraces;
  readonly membership: Membership;
  readonly steps: StepListener;
  private readonly files: SharedFiles;
  private readonly janitor: Janitor;
  private readonly bucket: S3ObjectStore;
  private readonly copyDeps: TraceCopyDeps;
  private readonly fileCopies: FileCopies;
  private copies: CopyReader | undefined;

  constructor(
    { bucket: location, folder, identity, silenceMs }: ClusterOptions,
    private readonly deps: SharedLogHost,
  ) {
    const { state, clock, logger } = deps;
    const { cluster: stores } = state;
    const processId = () => identity.processId;
    this.bucket = new S3ObjectStore(location);
    const { bucket } = this;
    const objects = new JournalObjects(bucket);
    this.copyDeps = { bucket, objects, journal: stores.journal, traces: stores.traces };
    const newId = () => randomUUID();
    this.files = new SharedFiles({ stores, bucket, processId, folder, newId });
    this.held = new HeldTraces({
      ...{ stores, files: this.files, follower: deps.follower, processId, destinations: deps.destinations },
      ...{ copies: this.copyDeps, folder, clock, logger, nameHoldMs: NAME_HOLD_MS },
      silenceMs: silenceMs + AFTER_SILENCE_MS,
    });
    const onAccepted = () => this.held.wake();
    this.writer = new JournalWriter({
      ...{ bucket, journal: stores.journal, objects, foreign: deps.foreign, processId, onAccepted, logger },
    });
    this.steps = new SharedSteps({ traces: stores.traces, processId, onNoted: onAccepted, logger });
    this.janitor = new Janitor({ stores, bucket, clock, logger });
    const onReborn = () => {
      deps.onReborn(identity.processId);
      this.held.dropAll();
    };
    this.fileCopies = new FileCopies({ bucket, traces: stores.traces, folder: join(folder, 'files'), clock });
    this.membership = new Membership({ members: stores.members, folder, identity, onReborn, clock, logger });
  }

  /** Parts that are there before all that follows logs. */
  get first(): readonly Component[] {
    const closing: Component = { name: 'bucket', start: async () => {}, shutdown: async () => this.bucket.close() };
    const copies = [this.fileCopies, ...(this.copies === undefined ? [] : [this.copies])];
    const { state, clock, logger } = this.deps;
    const removed = new RemovedCopies({ copies, traces: state.cluster.traces, clock, logger });
    return [closing, this.membership, this.janitor, ...copies, removed];
  }

  /** Where files of runs are, to be counted and removed. */
  get place(): TelemetryPlace {
    return sharedTelemetry({ openBucket: async () => this.bucket, traces: this.deps.state.cluster.traces });
  }

  /** Has files of runs shared when they are written. @param parquet `null` where none is written */
  sharing(parquet: RunListener | null): RunListener {
    return new SharedRunFiles(parquet, this.files);
  }

  /** Files of runs, copied to this machine when they are asked for. */
  get telemetry(): RunFileCopies {
    return this.fileCopies;
  }

  /** Finds any run. @param own runs that this process has */
  runsOf(own: RunFinder, reader: RecordLogReader): RunFinder {
    const { state, clock } = this.deps;
    const { held } = this;
    return new SharedRunReader({
      own: { has: (traceId) => held.lengthBytes(traceId) !== undefined, find: (traceId) => own.find(traceId) },
      ...{ runs: state.runs, reader, steps: state.executions, times: RUN_TRACKER_DEFAULTS, clock },
    });
  }

  /** Reads any log. @param own logs that this process has */
  readerOf(own: RecordLogReader, folder: string): CopyReader {
    const { deps, copyDeps, held } = this;
    this.copies ??= new CopyReader({
      copies: copyDeps,
      traces: deps.state.cluster.traces,
      folder: join(folder, 'read'),
      own: {
        read: own.read.bind(own),
        lengthBytes: own.lengthBytes.bind(own),
        has: (traceId) => held.lengthBytes(traceId) !== undefined,
      },
      onDamage: deps.onDamage,
      clock: deps.clock,
    });
    return this.copies;
  }
}

const RUN_FILE = 'run.json';

/** Has the files that a run is over with written, and shares them before anybody is told that they can be read. */
export class SharedRunFiles implements RunListener {
  /** @param parquet writes Parquet; `null` where none is wanted */
  constructor(
    private readonly parquet: RunListener | null,
    private readonly files: Pick<SharedFiles, 'share'>,
  ) {}

  /** @throws when something cannot be written or shared: it is told again. */
  async onRunEvent(event: RunEvent): Promise<void> {
    await this.parquet?.onRunEvent(event);
    const { run } = event;
    const { traceId } = run;
    if (event.type === 'finished') {
      await this.files.share(traceId, [...run.invocations.map(({ parquetFile }) => parquetFile), RUN_FILE]);
    } else if (event.type === 'invocationEnded' && run.state === 'open') {
      await this.files.share(traceId, [event.invocation.parquetFile]);
    }
  }
}

/** What steps are told on with. */
export interface SharedStepsDeps {
  readonly traces: Pick<SharedTraceStore, 'noteSteps'>;
  readonly processId: () => string;
  /** A trace may have become this process's. */
  readonly onNoted: () => void;
  readonly logger: Logger;
}

/** Tells whichever process has a trace that more is known of its steps; one that nobody has is taken up again. */
export class SharedSteps implements StepListener {
  constructor(private readonly deps: SharedStepsDeps) {}

  onStepChanged(traceIds: readonly TraceId[]): void {
    const { traces, processId, onNoted, logger } = this.deps;
    if (traceIds.length === 0) return;
    traces.noteSteps(processId(), traceIds).then(onNoted, (error: unknown) => {
      logger.error(
        { error: reasonOf(error) },
        'failed to report updated steps; the verdicts of their runs may be late',
      );
    });
  }
}

/** What runs are read with. */
export interface SharedRunReaderDeps {
  /** Runs that this process has. */
  readonly own: { has(traceId: TraceId): boolean; find(traceId: TraceId): Promise<RunSummary | undefined> };
  readonly runs: Pick<RunStore, 'find'>;
  readonly reader: RecordLogReader;
  readonly steps: Pick<StepReader, 'stepsOf'>;
  readonly times: EndingTimes;
  readonly clock: Clock;
}

/** Runs as they are known now, in any process: of one that another process has, what its log adds up to. */
export class SharedRunReader {
  constructor(private readonly deps: SharedRunReaderDeps) {}

  async find(traceId: TraceId): Promise<RunSummary | undefined> {
    const { own, runs, reader } = this.deps;
    if (own.has(traceId)) return await own.find(traceId);
    const row = await runs.find(traceId);
    const logBytes = await reader.lengthBytes(traceId);
    if (row?.state === 'finished' && row.logBytes === logBytes) return parseRun(row.summary);
    if (logBytes === 0) return row && parseRun(row.summary);
    const { clock, times, steps } = this.deps;
    const state = new RunState(times);
    const nowMs = clock.monotonicMs();
    for await (const records of reader.read(traceId, { fromOffset: 0, toOffset: logBytes })) state.add(records, nowMs);
    const known = new TraceSteps(traceId, { ...NO_CHANGES, stepsOf: (id) => steps.stepsOf(id) });
    await known.refresh([]);
    const seenMs = clock.nowUnixMs();
    return {
      traceId,
      firstSeenUnixMs: row?.firstSeenUnixMs ?? seenMs,
      lastSeenUnixMs: row?.lastSeenUnixMs ?? seenMs,
      // Whether it is over is for the process to say that has it.
      state: 'open',
      logBytes,
      invocations: state.judge(nowMs, known).invocations,
    };
  }
}

const NO_CHANGES: Pick<StepReader, 'findStep' | 'attach'> = {
  findStep: async () => undefined,
  attach: async () => false,
};
