import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { CopyReader } from '../cluster/copy-reader.js';
import { FileCopies } from '../cluster/file-copies.js';
import { HeldTraces } from '../cluster/held-traces.js';
import { Janitor } from '../cluster/janitor.js';
import { JournalObjects } from '../cluster/journal-objects.js';
import { JournalWriter } from '../cluster/journal-writer.js';
import { Membership } from '../cluster/membership.js';
import type { ProcessIdentity } from '../cluster/process-identity.js';
import { RemovedCopies } from '../cluster/removed-copies.js';
import { SharedFiles } from '../cluster/shared-files.js';
import { SharedRunFiles } from '../cluster/shared-run-files.js';
import { SharedRunReader } from '../cluster/shared-run-reader.js';
import { SharedSteps } from '../cluster/shared-steps.js';
import type { TraceCopyDeps } from '../cluster/trace-copy.js';
import type { TraceFollower } from '../cluster/trace-follower.js';
import type { Configuration } from '../config/configuration.js';
import type { Clock } from '../core/clock.js';
import type { Component } from '../core/component.js';
import type { Logger } from '../core/logger.js';
import type { ForeignSegments } from '../log/foreign-segments.js';
import type { RecordLogReader } from '../log/record-log.js';
import type { TraceId } from '../record/ids.js';
import { sharedTelemetry, type TelemetryPlace } from '../retention/feature.js';
import type { RunListener, StepListener } from '../run/run-event.js';
import type { RunSummary } from '../run/run-summary.js';
import { RUN_TRACKER_DEFAULTS } from '../run/run-tracker-config.js';
import { S3ObjectStore } from '../storage/bucket/s3-object-store.js';
import type { State } from '../storage/state.js';
import { sharedBucketOf } from './bucket-of.js';
import { clusterFolder } from './cluster-folder.js';

/** What the parts of a cluster work with. */
export interface ClusterDeps {
  readonly state: State;
  readonly identity: ProcessIdentity;
  readonly foreign: ForeignSegments;
  readonly follower: TraceFollower;
  /** Names of destinations. */
  readonly destinations: () => readonly string[];
  /** The process goes on under another id. */
  readonly onReborn: (processId: string) => void;
  readonly onDamage: (traceId: string, offset: number, reason: string) => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How long a log record waits for its span's name, in milliseconds; as the record log of one process has it. */
const NAME_HOLD_MS = 6_000;
/** A trace is stored so long after it counts as silent, whatever is known of it, in milliseconds. */
const AFTER_SILENCE_MS = 60_000;

/** What takes the place of the record log where several processes share a database and a bucket. Loaded there only. */
export class Cluster {
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
    configuration: Configuration,
    private readonly deps: ClusterDeps,
  ) {
    const { state, identity, clock, logger } = deps;
    const location = sharedBucketOf(configuration);
    const folder = clusterFolder(configuration);
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
      silenceMs: configuration['invocation-silence'] + AFTER_SILENCE_MS,
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
  get telemetry(): Pick<FileCopies, 'find' | 'bringAll'> {
    return this.fileCopies;
  }

  /** Finds any run. @param own runs that this process has */
  runsOf(own: { find(traceId: TraceId): Promise<RunSummary | undefined> }, reader: RecordLogReader): SharedRunReader {
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
