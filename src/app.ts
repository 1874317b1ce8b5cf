import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Access } from './app/access.js';
import type { AppDeps, AppPurpose } from './app/app-deps.js';
import { ArtifactStorage } from './app/artifact-storage.js';
import { addDatabaseHealth } from './app/database-health.js';
import { exportHealth } from './app/export-health.js';
import { LateApi } from './app/late-api.js';
import { Leased, RETENTION_LEASE } from './app/leases.js';
import { createLimits } from './app/limits.js';
import { type OpenParts, openParts } from './app/open-parts.js';
import { Ports } from './app/ports.js';
import { RunParts } from './app/run-parts.js';
import { createArtifacts } from './artifact/feature.js';
import type { Configuration } from './config/configuration.js';
import { missingForHooks } from './config/missing-for-hooks.js';
import { originsOf, otlpDestinations } from './config/otlp-destinations.js';
import type { Clock } from './core/clock.js';
import type { Component } from './core/component.js';
import { Health } from './core/health.js';
import { Lifecycle } from './core/lifecycle.js';
import { pause } from './core/pause.js';
import type { Feature } from './feature.js';
import type { ArtifactSink } from './files/artifact/artifact-sink.js';
import { StoreArtifactSink } from './files/artifact/store-artifact-sink.js';
import { Spool } from './files/spool.js';
import { SPOOL_FOLDER } from './files/spool-folder.js';
import { createJobs } from './job/feature.js';
import { GuardedConsumer, WatchedConsumer } from './log/guarded-consumer.js';
import { JsonlOutput } from './log/jsonl-output.js';
import type { RecordLogReader } from './log/record-log.js';
import { createMetrics } from './metric/feature.js';
import { createDecoding } from './otlp/create-decoding.js';
import { createPlatformApi } from './platform/feature.js';
import { createQueries } from './query/feature.js';
import { ExportIntake } from './receiver/export-intake.js';
import type { TraceId } from './record/ids.js';
import type { RecordConsumer } from './record/record-batch.js';
import { createRetention } from './retention/feature.js';
import { LocalStepRegistry } from './run/local-step-registry.js';
import { RunRowBackup } from './run/run-row-backup.js';
import type { RunTracker } from './run/run-tracker.js';
import type { PullStore } from './storage/pull-store.js';
import { platformHookOff } from './web/platform-hook-off.js';
import { createWebhooks, retainedDeliveries, type Webhooks } from './webhook/feature.js';

/** The program without its command line: components made of a configuration and wired to each other. */
export class App {
  /**
   * Takes the data folder and opens its state.
   * @throws ConfigurationError, StoreError, DataFolderInUseError, OutputError
   */
  static async open(configuration: Configuration, deps: AppDeps, purpose: AppPurpose = 'serve'): Promise<App> {
    const opened = await openParts(configuration, deps, purpose);
    try {
      return new App(configuration, deps, opened, purpose);
    } catch (error) {
      await opened.exports?.close();
      await close(opened);
      throw error;
    }
  }

  /** Accepts records like a receiver does: resolves when they are durable. Without a listener, the disk is checked before. */
  readonly consumer: RecordConsumer;
  readonly reader: RecordLogReader;
  readonly tracker: RunTracker;
  /** Registers the steps of runs, for commands that run under this program. */
  readonly registry: LocalStepRegistry;
  /** Keeps artifacts of steps. */
  readonly artifacts: ArtifactSink;
  /** Hosted runs in the queue. */
  readonly pulls: PullStore;
  /** The addresses the program listens on; known after `start()`. */
  readonly ports: Ports;
  private readonly spool: Spool;
  private readonly clock: Clock;
  private readonly dataFolder: string;
  private readonly lifecycle: Lifecycle;
  private readonly webhooks: Webhooks;
  /** Ends answers that have no end of their own. */
  private readonly stopping = new AbortController();

  private constructor(
    configuration: Configuration,
    deps: AppDeps,
    private readonly opened: OpenParts,
    private readonly purpose: AppPurpose,
    private readonly imported = new Set<TraceId>(),
  ) {
    const { clock, logger } = deps;
    this.clock = clock;
    this.pulls = opened.state.pulls;
    const dataFolder = configuration['data-dir'];
    this.dataFolder = dataFolder;
    const storage = new ArtifactStorage(configuration);
    this.artifacts = new StoreArtifactSink(() => storage.open());
    const health = new Health();
    const parts = new RunParts(configuration, deps, opened, purpose, imported);
    const { cluster, foreign, recordLog, reader, places } = parts;
    this.reader = parts.reader;
    this.tracker = parts.tracker;
    this.webhooks = createWebhooks(configuration, {
      ...deps,
      health,
      state: opened.state,
      outbox: opened.outbox,
      folderId: opened.folderId,
      // With several processes any of them delivers an event, whichever owns the run.
      tracker: parts.anyRuns,
      reader: parts.anyReader,
      webUrl: () => (purpose === 'serve' ? this.ports.webUrl : null),
    });
    const { executions: store, runs } = opened.state;
    this.registry = new LocalStepRegistry({
      ...{ store, runs, listeners: [cluster?.steps ?? this.tracker] },
      ...{ places, clock, logger, isShared: cluster !== undefined, openArtifacts: () => storage.open() },
      areSpooled: (stepId) => existsSync(join(dataFolder, SPOOL_FOLDER, stepId)),
    });
    const output = opened.stream && new JsonlOutput(opened.stream, { reader, logger });
    parts.listen({ appended: output });
    const decoding = createDecoding(opened.schema);
    const limits = createLimits(configuration, { machine: deps.machine, clock, logger, health });
    const { lease } = opened;
    limits.memory.collectsWith(() => opened.exports?.collectGarbage());
    const { maxInFlightBytes } = limits;
    const guards = [...limits.guards, lease ?? [], cluster?.membership ?? []].flat();
    // A failure that several processes share says nothing about the disk.
    const consumer = cluster?.writer ?? new WatchedConsumer(recordLog, limits.watch);
    this.consumer =
      purpose === 'serve'
        ? recordLog
        : new GuardedConsumer(recordLog, limits.disk, purpose === 'import' ? 'refused' : 'unavailable');
    const intake = new ExportIntake(
      { maxBodyBytes: configuration['max-body-bytes'], maxInFlightBytes },
      { ...decoding, consumer, guards, clock, logger },
    );
    const access = new Access(configuration['otlp-auth'], { tokens: opened.state.tokens, clock, logger });
    const fromHosted = { ...deps, store: this.pulls, openConsumer: () => consumer, registry: this.registry, guards };
    const hosted = opened.hostedRuns && new opened.hostedRuns.HostedRuns(configuration, fromHosted);
    const hook = hosted?.openHook(health) ?? platformHookOff(missingForHooks(configuration));
    const jobs = createJobs(configuration, {
      ...deps,
      state: opened.state,
      registry: this.registry,
      credentials: () => access.credentialsFor(configuration.http.host),
    });
    const platform = createPlatformApi(configuration, {
      state: opened.state,
      reader: parts.anyReader,
      factsOf: jobs.factsOf,
      outputOf: (stepId) => jobs.outputOf(stepId),
      clock,
    });
    const artifacts = createArtifacts(configuration, {
      catalog: opened.state.catalog,
      openStore: () => storage.open(),
      guard: limits.disk,
      telemetry: cluster?.telemetry,
      logger,
    });
    const queries = createQueries(configuration, {
      state: opened.state,
      shared: cluster?.telemetry,
      clock,
      stopping: this.stopping.signal,
    });
    const features: readonly Feature[] = [this.webhooks, platform, jobs, artifacts, queries];
    const metrics = createMetrics({
      ...{ health, intake, memory: limits.memory, disk: limits.disk, runs: this.tracker, notes: parts.notes },
      ...{ exports: opened.exports, clock, logger, version: deps.version, startedUnixMs: clock.nowUnixMs() },
      connections: () => this.ports.connectionCounts,
      added: features.flatMap((feature) => feature.metrics ?? []),
    });
    const api = new LateApi(configuration, {
      ...{ state: opened.state, reader: parts.anyReader, tracker: parts.anyRuns, registry: this.registry },
      ...{ access, clock, logger, version: deps.version, stopping: this.stopping.signal, features },
      artifacts,
      metrics,
      notes: parts.notes,
      otlpUrl: () => this.ports.otlpUrl,
    });
    this.ports = new Ports(configuration, {
      ...{ intake, access, api, hook, health, clock, logger, version: deps.version, ownHosts: deps.ownHosts },
      exportsTo: otlpDestinations(configuration).flatMap(originsOf),
    });
    health.register(parts.notes.name, () => parts.notes.health());
    if (configuration['database-url'] !== 'off') {
      addDatabaseHealth(health, { state: opened.state, lease, membership: cluster?.membership });
    }
    const exports = opened.exports === undefined ? [] : [opened.exports];
    for (const one of exports) {
      one.connect({
        lengthBytes: (traceId) => parts.lengthBytes(traceId),
        findRun: (traceId) => this.tracker.find(traceId),
        cursors: opened.state.cursors,
        foreign,
      });
      for (const [name] of one.destinations) {
        health.register(`export to ${name}`, () => exportHealth(one.statuses().find((status) => status.name === name)));
      }
    }
    parts.listen({ appended: opened.exports, foreign: opened.exports, runs: opened.exports });
    this.spool = new Spool(dataFolder, null, {
      consumer: this.consumer,
      registry: this.registry,
      artifacts: this.artifacts,
      otlp: () => ({ codec: decoding.codecs.json, bodies: decoding.bodies.json }),
      clock,
      logger,
      pid: deps.pid,
    });
    const share = (name: string, components: readonly Component[]) => {
      const holder = () => opened.cluster?.fence.processId ?? '';
      return new Leased(name, components, { leases: opened.state.leases, holder, clock, logger });
    };
    const destinations = this.destinations.map(([name]) => name);
    const nowUnixMs = () => clock.nowUnixMs();
    const retention = createRetention(configuration, purpose, {
      ...{ state: opened.state, recordLog, foreign, tracker: this.tracker, destinations, clock, logger },
      openArtifacts: () => storage.open(),
      sharedPlace: cluster?.place,
      rows: [retainedDeliveries(configuration, { state: opened.state, nowUnixMs })],
    });
    const delivering = purpose === 'import' ? [] : this.webhooks.components;
    const rows = new RunRowBackup(dataFolder, { store: opened.state.rows, clock, logger });
    // Several processes have their rows in a database that all of them need anyway.
    const retaining =
      opened.cluster === undefined ? [retention.shared, rows] : [share(RETENTION_LEASE, [retention.shared])];
    const outward = [
      ...(cluster?.first ?? []),
      storage,
      ...retaining,
      retention.own,
      ...exports,
      ...delivering,
      parts.parquetThread,
      parts.notes,
      ...(output === undefined ? [] : [output]),
    ];
    const hostedParts =
      opened.cluster === undefined || hosted === undefined
        ? (hosted?.components ?? [])
        : [share('hosted runs', hosted.components)];
    const inward = {
      serve: [
        this.tracker,
        this.registry,
        ...(cluster === undefined ? [] : [cluster.held]),
        recordLog,
        ...limits.guards,
        ...hostedParts,
        this.ports.receivers,
        this.ports.web,
        this.spool,
        ...jobs.components,
      ],
      follow: [this.tracker, this.registry, recordLog, limits.disk, this.spool],
      import: [recordLog, limits.disk],
    };
    this.lifecycle = new Lifecycle([...outward, ...inward[purpose]]);
  }

  /** Each destination: its name and where it is. */
  get destinations(): readonly (readonly [string, string])[] {
    return this.opened.exports?.destinations ?? [];
  }

  /** @throws ListenError */
  async start(): Promise<void> {
    try {
      await this.lifecycle.start();
    } catch (error) {
      await close(this.opened);
      throw error;
    }
    if (this.purpose === 'serve') this.opened.lock.announce(this.ports.otlpUrl);
  }

  /**
   * Makes a token for everything where there has never been one.
   * @returns the file that it is in; `null` where there has been one.
   * @throws StoreError; an Error of the file system.
   */
  async makeFirstToken(): Promise<string | null> {
    const { makeFirstToken } = await import('./api/first-token.js');
    return makeFirstToken(this.opened.state.tokens, this.dataFolder, this.clock);
  }

  /**
   * Ends an import: computes the verdicts of its runs, writes their Parquet and exports them, as far as destinations accept
   * them before `deadline`; the next `serve` exports the rest.
   * @returns whether everything was exported.
   */
  async finishImport(traceIds: Iterable<TraceId>, stop: AbortSignal, deadlineMs: number): Promise<boolean> {
    for (const traceId of traceIds) this.imported.add(traceId);
    await this.tracker.start();
    for (const traceId of this.imported) {
      while (!stop.aborted && !(await this.tracker.isSettled(traceId))) await pause(this.clock, SETTLE_POLL_MS, stop);
    }
    const deadline = AbortSignal.any([stop, AbortSignal.timeout(deadlineMs)]);
    const isDrained = (await this.opened.exports?.flush(deadline)) ?? true;
    await this.tracker.shutdown(deadline);
    return isDrained;
  }

  /**
   * Ends a command whose records were passed to `consumer`: waits for its runs' verdicts and files, for the import of
   * earlier leftovers, and for destinations to accept everything, until `deadline`; the next start continues the rest.
   * @returns whether everything was exported.
   */
  async finishCommand(traceIds: Iterable<TraceId>, deadline: AbortSignal): Promise<boolean> {
    await this.settled(traceIds, deadline);
    await this.takeInLeftovers(deadline);
    await this.webhooks.flush(AbortSignal.any([deadline, AbortSignal.timeout(WEBHOOK_FLUSH_MS)]));
    return (await this.opened.exports?.flush(deadline)) ?? true;
  }

  /** Waits until leftovers of commands are imported and their runs have verdicts and files. */
  async takeInLeftovers(deadline: AbortSignal): Promise<void> {
    await this.spool.looked(deadline);
    await this.settled(this.spool.traceIds, deadline);
  }

  /** Imports the folder of one command from another place. @returns the number of its records. @throws DataFolderInUseError */
  async takeInCommand(folder: string): Promise<number> {
    const count = await this.spool.takeIn(folder);
    for (const traceId of this.spool.traceIds) this.imported.add(traceId);
    return count;
  }

  private async settled(traceIds: Iterable<TraceId>, deadline: AbortSignal): Promise<void> {
    for (const traceId of traceIds) {
      while (!deadline.aborted && !(await this.tracker.isSettled(traceId))) {
        await pause(this.clock, SETTLE_POLL_MS, deadline);
      }
    }
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    this.stopping.abort();
    try {
      await this.lifecycle.shutdown(deadline);
    } finally {
      await close(this.opened);
    }
  }
}

async function close({ lease, state, lock }: OpenParts): Promise<void> {
  await lease?.release();
  await state.close();
  lock.release();
}

/** How long the end of a command waits for webhooks, in milliseconds: the next start sends the rest. */
const WEBHOOK_FLUSH_MS = 10_000;
/** How often a run without a verdict is checked, in milliseconds. */
const SETTLE_POLL_MS = 20;
