import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, FixedDelayTask } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import type { LoggedRecord, LogRange, RecordLogReader } from '../log/record-log.js';
import { type DamageReport, RecordLogFiles } from '../log/record-log-files.js';
import type { TraceId } from '../record/telemetry-record.js';
import { sharedTelemetry } from '../retention/feature.js';
import { type EndingTimes, RunState } from '../run/open-run.js';
import { parseRun } from '../run/parse-run.js';
import type { RunEvent, RunListener, StepListener } from '../run/run-event.js';
import { RUN_TRACKER_DEFAULTS } from '../run/run-tracker-config.js';
import type { RunFileCopies, RunFinder, SharedLogHost, SharedRecordLog } from '../run/shared-record-log.js';
import { type StepReader, TraceSteps } from '../run/trace-steps.js';
import type { RunSummary } from '../run/verdict.js';
import type { ObjectStore } from '../storage/bucket/object-store.js';
import type { S3Location } from '../storage/bucket/s3-location.js';
import { S3ObjectStore } from '../storage/bucket/s3-object-store.js';
import type { ClusterStores } from '../storage/cluster/cluster-stores.js';
import type { SharedTraceStore } from '../storage/cluster/shared-trace-store.js';
import type { TelemetryStorage } from '../storage/retention-store.js';
import type { RunStore } from '../storage/run-store.js';
import { FileCopies } from './file-copies.js';
import { JournalObjects } from './journal-objects.js';
import { JournalWriter } from './journal-writer.js';
import { Membership, type ProcessIdentity } from './membership.js';
import { OwnedTraces } from './owned-traces.js';
import { RemovedCopies, type TraceCopies } from './removed-copies.js';
import { SharedFiles } from './shared-files.js';
import { TraceCopy, type TraceCopyDeps } from './trace-copy.js';

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
  readonly owned: OwnedTraces;
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
    this.owned = new OwnedTraces({
      ...{ stores, files: this.files, follower: deps.follower, processId, destinations: deps.destinations },
      ...{ copies: this.copyDeps, folder, clock, logger, nameHoldMs: NAME_HOLD_MS },
      silenceMs: silenceMs + AFTER_SILENCE_MS,
    });
    const onAccepted = () => this.owned.wake();
    this.writer = new JournalWriter({
      ...{ bucket, journal: stores.journal, objects, foreign: deps.foreign, processId, onAccepted, logger },
    });
    this.steps = new SharedSteps({ traces: stores.traces, processId, onNoted: onAccepted, logger });
    this.janitor = new Janitor({ stores, bucket, clock, logger });
    const onReborn = () => {
      deps.onReborn(identity.processId);
      this.owned.dropAll();
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
  get place(): TelemetryStorage {
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
    const { owned } = this;
    return new SharedRunReader({
      own: { has: (traceId) => owned.lengthBytes(traceId) !== undefined, find: (traceId) => own.find(traceId) },
      ...{ runs: state.runs, reader, steps: state.executions, times: RUN_TRACKER_DEFAULTS, clock },
    });
  }

  /** Reads any log. @param own logs that this process has */
  readerOf(own: RecordLogReader, folder: string): CopyReader {
    const { deps, copyDeps, owned } = this;
    this.copies ??= new CopyReader({
      copies: copyDeps,
      traces: deps.state.cluster.traces,
      folder: join(folder, 'read'),
      own: {
        read: own.read.bind(own),
        lengthBytes: own.lengthBytes.bind(own),
        has: (traceId) => owned.lengthBytes(traceId) !== undefined,
      },
      onDamage: deps.onDamage,
      clock: deps.clock,
    });
    return this.copies;
  }
}

const RUN_FILE = 'run.json';

/** Writes the files of a finished run, and shares them before listeners are notified that they can be read. */
export class SharedRunFiles implements RunListener {
  /** @param parquet writes Parquet; `null` where none is wanted */
  constructor(
    private readonly parquet: RunListener | null,
    private readonly files: Pick<SharedFiles, 'share'>,
  ) {}

  /** @throws when something cannot be written or shared: the event is repeated. */
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

/** Dependencies of the notifications about steps. */
export interface SharedStepsDeps {
  readonly traces: Pick<SharedTraceStore, 'noteSteps'>;
  readonly processId: () => string;
  /** A trace may have become this process's. */
  readonly onNoted: () => void;
  readonly logger: Logger;
}

/** Notifies the owner of a trace that its steps have changed; a trace without an owner is claimed again. */
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

/** What the janitor works with. */
export interface JanitorDeps {
  readonly stores: ClusterStores;
  readonly bucket: Pick<ObjectStore, 'list' | 'remove'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const CLEAN_MS = 10_000;
/** Objects that are removed at a time. */
const OBJECTS_AT_A_TIME = 1_000;

/** Removes unused objects from the bucket: those of the journal whose parts are all stored, and those that dead processes never registered. */
export class Janitor implements Component {
  readonly name = 'janitor of the journal';
  private readonly repeated: FixedDelayTask;

  constructor(private readonly deps: JanitorDeps) {
    const { clock, logger } = deps;
    const onError = (error: unknown) =>
      logger.warn({ error: reasonOf(error) }, 'failed to clean up the bucket; retrying');
    this.repeated = new FixedDelayTask(CLEAN_MS, clock, () => this.clean(), onError);
  }

  async start(): Promise<void> {
    this.repeated.start();
  }

  async shutdown(): Promise<void> {
    await this.repeated.stop();
  }

  /** Removes what can be removed now. @throws ArtifactError, StoreError */
  async clean(): Promise<void> {
    const { bucket, stores } = this.deps;
    const { journal } = stores;
    for (;;) {
      const keys = await journal.listUnneeded(OBJECTS_AT_A_TIME);
      if (keys.length === 0) break;
      await bucket.remove(keys);
      await journal.forget(keys);
      if (keys.length < OBJECTS_AT_A_TIME) break;
    }
    for (const processId of await stores.members.bury()) await this.forget(processId);
  }

  /** A dead process has nothing counted any more; what it had counted stays until it is stored. */
  private async forget(processId: string): Promise<void> {
    const { bucket, stores } = this.deps;
    if ((await stores.traces.listOf(processId)).length > 0) return;
    const keys = await bucket.list(`journal/${processId}/`);
    const known = await stores.journal.known(keys);
    await bucket.remove(keys.filter((key) => !known.has(key)));
    await stores.members.forget([processId]);
  }
}

/** What logs are read with. */
export interface CopyReaderDeps {
  readonly copies: TraceCopyDeps;
  readonly traces: Pick<SharedTraceStore, 'find'>;
  /** Copies are in its `runs/`; what is there at the start is removed. */
  readonly folder: string;
  /** Logs that this process has itself. */
  readonly own: RecordLogReader & { has(traceId: TraceId): boolean };
  readonly onDamage: DamageReport;
  readonly clock: Clock;
  /** What copies may take on disk together, in bytes; default 2 GiB. One that is read stays in any case. */
  readonly maxBytes?: number;
}

/** How long a copy counts as new, in milliseconds: clients that follow a run request it repeatedly. */
const FRESH_MS = 200;
const DEFAULT_MAX_BYTES = 2 * 1024 ** 3;
/** Copies that are kept; the one used longest ago goes first. */
const MAX_COPIES = 200;

interface Reading {
  readonly copy: TraceCopy;
  checkedMs: number;
  readerCount: number;
}

/**
 * Reads any trace's log in any process: those that it has itself where they lie, of the others a copy of its own, made of what
 * is in the bucket. So no process depends on another one to answer, and all answer the same.
 */
export class CopyReader implements RecordLogReader, TraceCopies, Component {
  readonly name = 'copies of record logs';
  private readonly readings = new Map<TraceId, Reading>();
  private readonly files: RecordLogFiles;

  constructor(private readonly deps: CopyReaderDeps) {
    const lengthOf = (traceId: TraceId) => this.readings.get(traceId)?.copy.lengthBytes;
    this.files = new RecordLogFiles(deps.folder, deps.onDamage, lengthOf);
  }

  async start(): Promise<void> {
    const runs = join(this.deps.folder, 'runs');
    await rm(runs, { recursive: true, force: true });
    await mkdir(runs, { recursive: true });
  }

  async shutdown(): Promise<void> {
    for (const { copy } of this.readings.values()) await copy.close();
  }

  async *read(traceId: TraceId, range: LogRange): AsyncIterable<readonly LoggedRecord[]> {
    if (this.deps.own.has(traceId)) {
      yield* this.deps.own.read(traceId, range);
      return;
    }
    const reading = this.readingOf(traceId);
    reading.readerCount += 1;
    try {
      if (await this.refresh(traceId, reading)) yield* this.files.read(traceId, range);
    } finally {
      reading.readerCount -= 1;
      await this.makeRoom();
    }
  }

  async lengthBytes(traceId: TraceId): Promise<number> {
    if (this.deps.own.has(traceId)) return await this.deps.own.lengthBytes(traceId);
    const reading = this.readingOf(traceId);
    reading.readerCount += 1;
    try {
      return (await this.refresh(traceId, reading)) ? reading.copy.lengthBytes : 0;
    } finally {
      reading.readerCount -= 1;
      await this.makeRoom();
    }
  }

  traceIds(): readonly TraceId[] {
    return [...this.readings.keys()];
  }

  async forget(traceId: TraceId): Promise<void> {
    const reading = this.readings.get(traceId);
    if (reading === undefined || reading.readerCount > 0) return;
    // Queued behind a concurrent request, which creates it again.
    await reading.copy.remove();
    if (reading.readerCount === 0) this.readings.delete(traceId);
  }

  private readingOf(traceId: TraceId): Reading {
    const { folder, copies } = this.deps;
    const known = this.readings.get(traceId);
    const reading = known ?? {
      copy: new TraceCopy(join(folder, 'runs', traceId), traceId, copies),
      checkedMs: Number.NEGATIVE_INFINITY,
      readerCount: 0,
    };
    this.readings.delete(traceId);
    this.readings.set(traceId, reading);
    return reading;
  }

  /** @returns false if the trace is unknown */
  private async refresh(traceId: TraceId, reading: Reading): Promise<boolean> {
    const nowMs = this.deps.clock.monotonicMs();
    if (nowMs - reading.checkedMs < FRESH_MS) return true;
    const trace = await this.deps.traces.find(traceId);
    if (trace === undefined) return false;
    await reading.copy.bringTo(trace);
    reading.checkedMs = nowMs;
    return true;
  }

  private async makeRoom(): Promise<void> {
    const { maxBytes = DEFAULT_MAX_BYTES } = this.deps;
    let bytes = 0;
    for (const { copy } of this.readings.values()) bytes += copy.lengthBytes;
    for (const [traceId, { copy, readerCount }] of this.readings) {
      if (this.readings.size <= MAX_COPIES && bytes <= maxBytes) return;
      if (readerCount > 0) continue;
      this.readings.delete(traceId);
      bytes -= copy.lengthBytes;
      await copy.remove();
    }
  }
}
