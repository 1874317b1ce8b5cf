import { join } from 'node:path';
import type { Cluster, ClusterHost } from '../cluster/feature.js';
import type { Configuration } from '../config/configuration.js';
import { openPartBytes } from '../core/guard.js';
import { packageFile } from '../core/package-file.js';
import { Appended, type AppendListener } from '../log/appended.js';
import { JsonlRecordLog } from '../log/jsonl-record-log.js';
import { type PassthroughListener, PassthroughSegments } from '../log/passthrough-segments.js';
import type { RecordLogReader } from '../log/record-log.js';
import { listTraces, RecordLogFiles } from '../log/record-log-files.js';
import { ParquetThread } from '../parquet/parquet-thread.js';
import { InvocationParquet } from '../parquet/run-parquet.js';
import type { TraceId } from '../record/telemetry-record.js';
import { InvocationNotes } from '../run/invocation-notes.js';
import { RunFile } from '../run/run-document.js';
import type { RunFinder, RunListener } from '../run/run-event.js';
import { RunLog } from '../run/run-log.js';
import { RunTracker } from '../run/run-tracker.js';
import { RUN_TRACKER_DEFAULTS } from '../run/run-tracker-config.js';
import { ScopeFinder } from '../run/scope-finder.js';
import type { RunStore } from '../storage/run-store.js';
import type { AppDeps } from './app-deps.js';
import type { OpenOptions, OpenParts } from './open-parts.js';

/**
 * Logs up to this length, in bytes, are made Parquet without a thread where there is no server: with a single run most often, another
 * thread would load and compile anew what is there already.
 */
const MAX_OWN_PARQUET_BYTES = 32 * 1024 * 1024;

/** The parts between records and runs: the record logs, their readers, the run model, and its listeners. */
export class RunParts {
  readonly passthrough: PassthroughSegments;
  /** The work that several processes share; `undefined` with one process. */
  readonly cluster: Cluster | undefined;
  readonly recordLog: JsonlRecordLog | Cluster['writer'];
  /** Reads the record logs of this process. */
  readonly reader: RecordLogReader;
  /** Reads the record logs of all processes. */
  readonly anyReader: RecordLogReader;
  readonly tracker: RunTracker;
  /** Finds the runs of all processes. */
  readonly anyRuns: RunFinder;
  readonly scopes: ScopeFinder;
  readonly notes: InvocationNotes;
  readonly parquetThread: ParquetThread;
  private readonly appendListeners: AppendListener[] = [];
  private readonly passthroughListeners: PassthroughListener[] = [];
  private readonly runListeners: RunListener[] = [];

  constructor(
    configuration: Configuration,
    deps: Pick<AppDeps, 'clock' | 'logger'>,
    private readonly opened: OpenParts,
    private readonly options: Pick<OpenOptions, 'isShareable' | 'imported'>,
    private readonly decoding: Pick<ClusterHost, 'intakeFor' | 'codecs'>,
  ) {
    const { clock, logger } = deps;
    const { durability, 'data-dir': dataFolder } = configuration;
    const onDamage = (traceId: string, offset: number, reason: string) =>
      logger.warn({ traceId, offset, reason }, 'skipped a damaged line');
    const isSynced = durability === 'fsync';
    this.passthrough = new PassthroughSegments(join(dataFolder, 'foreign'), {
      isSynced,
      listeners: this.passthroughListeners,
    });
    this.cluster = this.openCluster({ clock, logger, onDamage });
    const { cluster } = this;
    const logFolder = opened.cluster?.folder ?? dataFolder;
    if (cluster === undefined) {
      const log = this.openLog(configuration, { clock, logger });
      this.recordLog = log;
      this.runListeners.push({
        onRunEvent: async ({ type, run }) => {
          if (type === 'finished') log.noteEnded(run.traceId, run.logBytes);
        },
      });
      this.reader = new RecordLogFiles(dataFolder, onDamage, (traceId) => log.durableLength(traceId));
    } else {
      this.recordLog = cluster.writer;
      this.reader = cluster.localReader;
    }
    this.anyReader = cluster?.copies ?? this.reader;
    const entry = packageFile('dist/parquet-thread.js');
    const { isShareable, imported } = options;
    const maxOwnBytes = isShareable || imported !== undefined ? 0 : MAX_OWN_PARQUET_BYTES;
    this.parquetThread = new ParquetThread({ dataFolder: logFolder }, { entry, clock, logger, maxOwnBytes });
    this.scopes = new ScopeFinder(configuration);
    const parquet = configuration.parquet ? new InvocationParquet(logFolder, this.parquetThread) : null;
    const files = cluster === undefined ? parquet : cluster.sharing(parquet);
    this.notes = new InvocationNotes({ store: opened.state.invocations, files, scopes: this.scopes, clock, logger });
    this.runListeners.push(this.notes, new RunLog(logger));
    this.tracker = new RunTracker(
      { ...RUN_TRACKER_DEFAULTS, ...(imported === undefined ? servingConfig(configuration) : IMPORT_TIMES) },
      {
        reader: this.reader,
        store: this.runStore(),
        listeners: this.runListeners,
        clock,
        logger,
        steps: opened.state.executions,
        file: new RunFile(logFolder),
        ...(cluster === undefined && {
          listTraces: async () => (imported === undefined ? listTraces(dataFolder) : [...imported]),
        }),
      },
    );
    this.anyRuns = cluster?.runsOf(this.tracker) ?? this.tracker;
    // An import judges its runs after all files were read, since a later file may have a run's end.
    if (imported === undefined) this.appendListeners.push(this.tracker);
  }

  /** Adds listeners: of records, of telemetry of other services, of runs. */
  listen(listeners: {
    readonly appended?: AppendListener | undefined;
    readonly passthrough?: PassthroughListener | undefined;
    readonly runs?: RunListener | undefined;
  }): void {
    if (listeners.appended !== undefined) this.appendListeners.push(listeners.appended);
    if (listeners.passthrough !== undefined) this.passthroughListeners.push(listeners.passthrough);
    if (listeners.runs !== undefined) this.runListeners.push(listeners.runs);
  }

  /** Returns how much of a log exports may read: the part that no crash can lose. */
  async lengthBytes(traceId: TraceId): Promise<number> {
    const { cluster } = this;
    return cluster === undefined ? await this.reader.lengthBytes(traceId) : cluster.storedBytes(traceId);
  }

  private openLog(configuration: Configuration, deps: Pick<AppDeps, 'clock' | 'logger'>): JsonlRecordLog {
    const { durability, 'data-dir': dataFolder } = configuration;
    return new JsonlRecordLog(
      { dataFolder, durability, maxOpenBytes: openPartBytes(configuration['max-memory']) },
      { ...deps, passthrough: this.passthrough, listeners: this.appendListeners },
    );
  }

  private openCluster(
    deps: Pick<AppDeps, 'clock' | 'logger'> & { onDamage: (traceId: string, offset: number, reason: string) => void },
  ): Cluster | undefined {
    const { cluster: opening, state, exports } = this.opened;
    if (opening === undefined) return undefined;
    return opening.join({
      ...deps,
      state,
      passthrough: this.passthrough,
      destinations: () => exports?.destinations.map(([name]) => name) ?? [],
      ...this.decoding,
      follower: {
        onAppended: (appended) => {
          for (const listener of this.appendListeners) listener.onAppended(appended);
        },
        onStored: (traceId, lengthBytes) => exports?.onAppended(new Appended(traceId, [], lengthBytes)),
        adopt: async (traceId, lengthBytes) => {
          await this.tracker.adopt(traceId);
          exports?.onAppended(new Appended(traceId, [], lengthBytes));
          this.notes.lookAgain();
        },
        onStepsChanged: (traceId) => this.tracker.onStepChanged([traceId]),
        isSettled: (traceId) => this.tracker.isSettled(traceId),
        drop: async (traceId) => {
          await this.tracker.drop(traceId);
          exports?.drop(traceId);
        },
      },
    });
  }

  private runStore(): RunStore {
    const { runs } = this.opened.state;
    const { imported } = this.options;
    if (imported !== undefined) return onlyImported(runs, imported);
    return this.cluster?.runs ?? runs;
  }
}

/** The times for an import: a file that was read to its end gets no more records. */
const IMPORT_TIMES = { quietAfterProcessMs: 0, quietAfterInvocationMs: 0, silenceMs: 0, maxRetries: 0 };

function servingConfig(configuration: Configuration) {
  return {
    quietAfterInvocationMs: configuration['invocation-quiet'],
    silenceMs: configuration['invocation-silence'],
    maxMemoryBytes: openPartBytes(configuration['max-memory']),
  };
}

/** Restricts a store to the runs of an import, so that it does not judge runs that others left open. */
export function onlyImported(store: RunStore, imported: ReadonlySet<TraceId>): RunStore {
  return {
    find: (traceId) => store.find(traceId),
    save: (rows) => store.save(rows),
    list: (limit) => store.list(limit),
    listUnfinished: async () => (await store.listUnfinished()).filter(({ traceId }) => imported.has(traceId)),
  };
}
