import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { LiveRuns } from '../api/live-runs.js';
import { RunMeasures } from '../api/run-measures.js';
import { ArtifactStorage } from '../artifact/feature.js';
import type { Cluster } from '../cluster/feature.js';
import type { Configuration } from '../config/configuration.js';
import { destinationNames, type OffDestination, offDestinationOf } from '../config/otlp-destinations.js';
import type { DiskGuard, Guard, MemoryGuard } from '../core/guard.js';
import { Health, type HealthState } from '../core/health.js';
import type { Component } from '../core/lifecycle.js';
import { SPOOL_FOLDER } from '../exec/feature.js';
import type { DestinationStatus } from '../export/feature.js';
import type { Feature } from '../feature.js';
import { JsonlOutput } from '../log/jsonl-output.js';
import type { PassthroughSegments } from '../log/passthrough-segments.js';
import type { RecordLogReader } from '../log/record-log.js';
import { WatchedConsumer } from '../log/write-watch.js';
import { createDecoding, type Decoding } from '../otlp/create-decoding.js';
import { EngineSightings } from '../otlp/engine-sightings.js';
import { DecodedBodies, ExportIntake } from '../receiver/feature.js';
import type { RecordConsumer } from '../record/record-batch.js';
import type { InvocationNotes } from '../run/invocation-notes.js';
import { LocalStepRegistry } from '../run/local-step-registry.js';
import { RunRowBackup } from '../run/run-row-backup.js';
import type { RunTracker } from '../run/run-tracker.js';
import type { ArtifactStore } from '../storage/artifacts.js';
import { ManifestReader } from '../storage/manifest.js';
import type { TelemetryStorage } from '../storage/retention-store.js';
import type { AppDeps } from './app-deps.js';
import { createLimits } from './limits.js';
import { closeParts, type OpenOptions, type OpenParts, openParts } from './open-parts.js';
import { RunParts } from './run-parts.js';

/** The common part of all commands' programs: a data folder with its state, record logs and run model. Features get the parts that they need. */
export interface Host extends AppDeps, Pick<OpenParts, 'state' | 'outbox' | 'folderId' | 'lock' | 'exports'> {
  readonly health: Health;
  /** Stores records for a receiver: resolves when they are durable. */
  readonly consumer: RecordConsumer;
  /** Stores records of this process's commands; its failures are not counted as disk problems. */
  readonly recordLog: RunParts['recordLog'];
  readonly passthrough: PassthroughSegments;
  readonly decoding: Decoding;
  /** Notices telemetry that may or may not be the engine's. */
  readonly sightings: EngineSightings;
  /** Accepts OTLP requests. */
  readonly intake: ExportIntake;
  /** Checked before anything is accepted. */
  readonly guards: readonly Guard[];
  readonly disk: DiskGuard;
  /** Reports in `/readyz` whether the data folder can be written. */
  readonly watch: Component;
  readonly memory: MemoryGuard;
  /** Runs and record logs of this process or of any of several processes. */
  readonly tracker: RunParts['anyRuns'];
  readonly reader: RecordLogReader;
  /** Measures of these runs: durations and outcomes of nodes and phases. */
  readonly measures: RunMeasures;
  readonly live: LiveRuns;
  /** Runs and record logs of this process only. */
  readonly localRuns: RunTracker;
  readonly localReader: RecordLogReader;
  /** Registers the steps of runs. */
  readonly registry: LocalStepRegistry;
  readonly notes: InvocationNotes;
  readonly openArtifacts: () => Promise<ArtifactStore>;
  /** Files of runs that several processes share; `undefined` if they are in the data folder. */
  readonly shared: Pick<Cluster['copies'], 'find' | 'bringAll'> | undefined;
  readonly sharedFiles: TelemetryStorage | undefined;
  /** The names of all configured destinations, including those that other processes export to. */
  readonly destinations: readonly string[];
  /** A configured destination that is off, with the reason; `undefined` if there is none. */
  readonly offDestination: OffDestination | undefined;
  /** OpenTelemetry's environment variables that are ignored, one sentence each. */
  readonly ignoredVariables: readonly string[];
  /** Metrics of what several processes share, for the parts that this process runs. */
  readonly clusterFeatures: readonly Feature[];
  readonly nowUnixMs: () => number;
  readonly components: HostComponents;
  /** Wraps components that only one of several processes runs at a time. @param name of their lease */
  leased(name: string, components: readonly Component[]): readonly Component[];
  /** Closes what was opened; to be called once, after all components have ended. */
  close(): Promise<void>;
}

/** The components of the host, to be started in this order, with those of features in between. */
export interface HostComponents {
  /** Buckets, and what several processes share. */
  readonly storage: readonly Component[];
  /** Writes the rows of runs to files. */
  readonly rowBackup: readonly Component[];
  readonly exports: readonly Component[];
  /** What is derived from records and runs: Parquet, run.json, measures, the JSONL stream. */
  readonly projections: readonly Component[];
  /** The run model; an import starts it after all records were read. */
  readonly runs: readonly Component[];
  readonly recordLog: readonly Component[];
}

/**
 * Locks the data folder, opens its state and makes a program on top of it. If that fails, everything is closed again.
 * @throws ConfigurationError, StoreError, DataFolderInUseError, OutputError
 */
export async function onHost<Made>(
  config: Configuration,
  deps: AppDeps,
  options: OpenOptions,
  make: (host: Host) => Promise<Made>,
): Promise<Made> {
  const opened = await openParts(config, deps, options);
  try {
    return await make(makeHost(config, deps, opened, options));
  } catch (error) {
    await opened.exports?.close();
    await closeParts(opened);
    throw error;
  }
}

/** How long a page waits for the record log of a run under way that nobody has looked at before, in milliseconds. */
const MAX_LIVE_READ_MS = 1_000;

function makeHost(config: Configuration, deps: AppDeps, opened: OpenParts, options: OpenOptions): Host {
  const { clock, logger, machine } = deps;
  const { state, exports, lease } = opened;
  const { 'data-dir': dataFolder, 'max-body-bytes': maxBodyBytes } = config;
  const health = new Health();
  const storage = new ArtifactStorage(config);
  const openArtifacts = storage.open;
  const sightings = new EngineSightings(logger);
  const decoding = createDecoding({ engineNames: config['engine-names'], sightings });
  const { codecs } = decoding;
  const intakeFor = (consumer: RecordConsumer) => {
    const bodies = new DecodedBodies(decoding.bodies, consumer);
    return new ExportIntake({ maxBodyBytes }, { codecs, bodies, clock, logger });
  };
  const parts = new RunParts(config, deps, opened, options, { intakeFor, codecs });
  const { cluster, passthrough, recordLog, reader, scopes, notes, tracker } = parts;
  const registry = new LocalStepRegistry({
    store: state.executions,
    runs: state.runs,
    listeners: [cluster ?? tracker],
    scopes,
    clock,
    logger,
    isShared: cluster !== undefined,
    openArtifacts,
    areSpooled: (stepId) => existsSync(join(dataFolder, SPOOL_FOLDER, stepId)),
  });
  const output = opened.stream === undefined ? [] : [new JsonlOutput(opened.stream, { reader, logger })];
  for (const one of output) parts.listen({ appended: one });
  // With several processes, the record log notifies exports of records only when no crash can lose them any more.
  parts.listen({ appended: cluster === undefined ? exports : undefined, passthrough: exports, runs: exports });
  const measures = new RunMeasures({ store: state.measures, tracker: parts.anyRuns, reader: parts.anyReader, logger });
  parts.listen({ runs: measures });
  const live = new LiveRuns({ catalog: state.catalog, measures, reader: parts.anyReader, maxReadMs: MAX_LIVE_READ_MS });
  exports?.connect({
    lengthBytes: (traceId) => parts.lengthBytes(traceId),
    findRun: (traceId) => tracker.find(traceId),
    cursors: state.cursors,
    origins: state.traces,
    manifests: new ManifestReader({ catalog: state.catalog, openArtifacts }),
    passthrough,
  });
  const limits = createLimits(config, { machine, clock, logger, health });
  limits.memory.collectsWith(() => exports?.collectGarbage());
  const guards = [...limits.guards, lease ?? [], cluster?.writer ?? []].flat();
  // With several processes, a failure to store records is no sign of a disk problem.
  const consumer = cluster?.writer ?? new WatchedConsumer(recordLog, limits.watch);
  const { maxInFlightBytes } = limits;
  const bodies = cluster?.writer ?? new DecodedBodies(decoding.bodies, consumer, 'durable');
  const intake = new ExportIntake({ maxBodyBytes, maxInFlightBytes }, { codecs, bodies, guards, clock, logger });
  health.register(notes.name, () => notes.health());
  if (config['database-url'] !== 'off') {
    addDatabaseHealth(health, { state, lease });
  }
  for (const [name, check] of cluster?.healthChecks ?? []) health.register(name, check);
  for (const [name] of exports?.destinations ?? []) {
    health.register(`export to ${name}`, () =>
      exportHealth(exports?.statuses().find((status) => status.name === name)),
    );
  }
  const offDestination = offDestinationOf(config);
  if (offDestination !== undefined) {
    const { name, reason } = offDestination;
    logger.warn({ destination: name, reason }, 'the destination is off');
    health.register(`export to ${name}`, () => ({ ready: true, details: { state: 'off', lastError: reason } }));
  }
  const ignoredVariables = config.environmentTrouble?.ignored ?? [];
  if (ignoredVariables.length > 0) {
    const ignored = ignoredVariables.join('; ');
    health.register("OpenTelemetry's variables", () => ({ ready: true, details: { ignored } }));
  }
  // The rows of several processes are in a database that all of them need anyway.
  const rowBackup = cluster === undefined ? [new RunRowBackup(dataFolder, { store: state.rows, clock, logger })] : [];
  return {
    ...deps,
    state,
    outbox: opened.outbox,
    folderId: opened.folderId,
    lock: opened.lock,
    exports,
    health,
    consumer,
    recordLog,
    passthrough,
    decoding,
    sightings,
    intake,
    guards,
    disk: limits.disk,
    watch: limits.watch,
    memory: limits.memory,
    tracker: parts.anyRuns,
    reader: parts.anyReader,
    measures,
    live,
    localRuns: tracker,
    localReader: reader,
    registry,
    notes,
    openArtifacts,
    shared: cluster?.copies,
    sharedFiles: cluster?.storage,
    destinations: destinationNames(config),
    offDestination,
    ignoredVariables,
    nowUnixMs: () => clock.nowUnixMs(),
    components: {
      storage: [...(cluster?.first ?? []), storage],
      rowBackup,
      exports: exports === undefined ? [] : [exports],
      projections: [parts.parquetThread, notes, measures, ...output],
      runs: [tracker, registry],
      recordLog: [recordLog, ...(cluster?.building ?? [])],
    },
    clusterFeatures: cluster?.features ?? [],
    leased: (name, components) => (cluster === undefined ? components : [cluster.leased(name, components)]),
    close: () => closeParts(opened),
  };
}

/** Returns the state of a destination for `/readyz`. It is always ready: while a destination is down the bridge stores telemetry, so it need not be sent elsewhere. */
export function exportHealth(status: DestinationStatus | undefined): HealthState {
  if (status === undefined) return { ready: true, details: { state: 'starting' } };
  const { name: _name, signals, ...details } = status;
  const { traces, logs } = signals;
  const counts = {
    sentSpanCount: traces.sentCount,
    sentLogCount: logs.sentCount,
    refusedCount: traces.refusedCount + logs.refusedCount,
    rejectedCount: traces.rejectedCount + logs.rejectedCount,
    failedAttemptCount: traces.failedAttemptCount + logs.failedAttemptCount,
  };
  return { ready: true, details: { ...details, ...counts } };
}

/** Adds the state of a database server to `/readyz`. Telemetry is accepted while it is down, since the record logs store it. */
export function addDatabaseHealth(health: Health, { state, lease }: Pick<OpenParts, 'state' | 'lease'>): void {
  health.register('database', () => {
    const problem = state.problem();
    return problem === null ? { ready: true } : { ready: false, reason: problem };
  });
  if (lease !== undefined) health.register('lease of the database', () => lease.health());
}
