import type { Configuration } from '../config/configuration.js';
import { type Clock, DEFAULT_RETRY_POLICY, pause, RetryPolicy, whenAborted } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import { openPartBytes } from '../core/guard.js';
import { lazy } from '../core/lazy.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import { ExportTurns } from '../core/turns.js';
import type { Appended, AppendListener } from '../log/appended.js';
import type { PassthroughListener, PassthroughLogReader } from '../log/passthrough-segments.js';
import { RecordLogFiles } from '../log/record-log-files.js';
import type { PassthroughBatch } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { RunEvent, RunListener } from '../run/run-event.js';
import type { RunSummary } from '../run/verdict.js';
import type { CursorStore } from '../storage/cursor-store.js';
import type { ManifestReader } from '../storage/manifest.js';
import type { TraceCatalog } from '../storage/trace-catalog.js';
import type { DestinationStatus } from './destination.js';
import type { ExporterThreads } from './exporter-thread.js';
import type { DestinationTest, OpenDestinationsDeps, OpenedExport } from './open-destinations.js';
import { RunManifests } from './run-manifests.js';
import { OpenRuns } from './run-schedule.js';
import type { SupervisedWorker } from './supervised-worker.js';

/** What is exported, and where to. */
export interface ExportsConfig {
  readonly configuration: Configuration;
  /** Addresses and names of this machine, to notice a destination that is the program itself; `null` where it listens nowhere. */
  readonly ownHosts: readonly string[] | null;
  /** The program's version. */
  readonly version: string;
  /** The record logs are in its `runs/`. */
  readonly logFolder: string;
}

/** What exports are made with. */
export interface ExportsDeps extends Pick<OpenDestinationsDeps, 'createKafkaProducer'> {
  /** The program of threads of exporters of others, compiled. */
  readonly exporterEntry: URL;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** What exports need of the rest of the program. */
export interface ExportSources {
  readonly cursors: CursorStore;
  /** Finds the runs that a trace's commands belong to. */
  readonly origins: Pick<TraceCatalog, 'originsOf'>;
  /** Reads the manifests that runs left. */
  readonly manifests: Pick<ManifestReader, 'ofRun' | 'ofEarlier'>;
  /** Returns the length of the durable part of a record log. */
  lengthBytes(traceId: TraceId): Promise<number>;
  /** Finds a run as it is known. */
  findRun(traceId: TraceId): Promise<RunSummary | undefined>;
  readonly passthrough: PassthroughLogReader;
}

/** What does not end by the deadline is left to the next start so much later, in milliseconds; what was answered is saved. */
const GRACE_MS = 1_000;

/**
 * All exports: hears what became durable and what happens to runs, and sends it to each destination. A worker for each does that in the thread that
 * accepts requests, in bounded turns behind all that comes in; exporters of others have threads of their own.
 *
 * Where its destinations are known without opening them, a start does not wait for that: it loads code that takes longer than much of the rest.
 * Until it is done, open runs are kept for the workers.
 */
export class Exports implements Component, AppendListener, PassthroughListener, RunListener {
  readonly name = 'exports';
  private opened: readonly OpenedExport[] | undefined;
  private threads: ExporterThreads | undefined;
  private sources: ExportSources | undefined;
  private workers: readonly SupervisedWorker[] = [];
  private readonly openRuns = new OpenRuns();
  private readonly turns = new ExportTurns();
  private readonly retryPolicy: RetryPolicy;
  /** The first start of the workers; `undefined` before. */
  private beginning: Promise<void> | undefined;
  private readonly stop = new AbortController();
  private isClosed = false;

  /** @param destinations each one's name and where it is, without secrets; empty if only opening them shows it: then `open` them before the start */
  constructor(
    private readonly config: ExportsConfig,
    private readonly deps: ExportsDeps,
    public destinations: readonly (readonly [name: string, where: string])[] = [],
  ) {
    this.retryPolicy = new RetryPolicy(DEFAULT_RETRY_POLICY, deps.random);
  }

  /** Opens every destination of the configuration. @throws ConfigurationError when one cannot be used. */
  async open(): Promise<void> {
    const [{ openDestinations }, { ExporterThreads: Threads }] = await Promise.all([
      import('./open-destinations.js'),
      import('./exporter-thread.js'),
    ]);
    if (this.isClosed) throw new Error('exports have ended');
    const { clock, logger, createKafkaProducer, exporterEntry: entry } = this.deps;
    const { configuration, ownHosts, version } = this.config;
    const threads = new Threads({ entry, clock, logger, maxMemoryBytes: configuration['max-memory'] });
    this.threads = threads;
    const deps = { codecs: codecs.get, clock, userAgent: `run-bridge/${version}`, createKafkaProducer, threads };
    try {
      this.opened = await openDestinations(configuration, ownHosts, deps);
    } catch (error) {
      await threads.terminate();
      throw error;
    }
    this.destinations = this.opened.map(({ destination, where }) => [destination.name, where]);
  }

  /** Gives exports what they need; called once, before `start`. */
  connect(sources: ExportSources): void {
    this.sources = sources;
  }

  async start(): Promise<void> {
    // From now on each gets what comes.
    for (const [name] of this.destinations) await this.register(name);
    if (this.opened !== undefined) await this.startWorkers(this.opened);
  }

  /** Starts the workers where the start did not wait for them; called once all of the program has started. */
  begin(): void {
    if (this.workers.length === 0) this.beginning ??= this.beginUntilItWorks();
  }

  /** Ends at once what never started to work. */
  async close(): Promise<void> {
    this.isClosed = true;
    this.stop.abort();
    await this.threads?.terminate();
  }

  onAppended(appended: Appended): void {
    if (this.stop.signal.aborted) return;
    this.openRuns.appended(appended);
    for (const worker of this.workers) worker.notify((one) => one.onAppended(appended));
  }

  onPassthrough(batches: readonly PassthroughBatch[]): void {
    for (const worker of this.workers) worker.notify((one) => one.onPassthrough(batches));
  }

  async onRunEvent(event: RunEvent): Promise<void> {
    if (this.stop.signal.aborted) return;
    this.openRuns.runEvent(event);
    for (const worker of this.workers) worker.notify((one) => one.onRunEvent(event));
  }

  /** A record log is looked after elsewhere: nothing of it is sent any more, but what is under way. */
  drop(traceId: TraceId): void {
    this.openRuns.drop(traceId);
    for (const worker of this.workers) worker.notify((one) => one.drop(traceId));
  }

  /** Has exporters in threads of their own free what nothing refers to any more, soon. */
  collectGarbage(): void {
    this.threads?.collectGarbage();
  }

  /** Returns how each destination is; nothing while it is being opened. */
  statuses(): readonly DestinationStatus[] {
    return this.workers.flatMap((worker) => worker.status() ?? []);
  }

  /**
   * Sends a test to a destination, past all queues and cursors. @returns `undefined` where there is none of that name
   * @throws Error if exports are not running
   */
  async test(name: string, deadline: AbortSignal): Promise<DestinationTest | undefined> {
    if (this.opened === undefined) throw new Error(STARTING);
    const one = this.opened.find(({ destination }) => destination.name === name);
    const { testDestination } = await import('./open-destinations.js');
    const { clock } = this.deps;
    return one && (await testDestination(one.destination, { clock, version: this.config.version }, deadline));
  }

  /** Sends runs again from their first record. @param destination `null` for all of them */
  async resend(traceIds: readonly TraceId[], destination: string | null, deadline: AbortSignal): Promise<void> {
    if (!(await this.haveBegun(deadline))) throw new Error(STARTING);
    for (const worker of this.workers) {
      if (destination !== null && worker.name !== destination) continue;
      for (const traceId of traceIds) await worker.resend(traceId, deadline);
    }
  }

  /** Sends what there is and tries again what fails, until everything is sent or `deadline` aborts. Whether everything is. */
  async flush(deadline: AbortSignal): Promise<boolean> {
    if (!(await this.haveBegun(deadline))) return false;
    const drained = await Promise.all(this.workers.map((worker) => worker.flush(deadline)));
    return drained.every((isDrained) => isDrained);
  }

  /** Workers that are just being started are waited for: they send what there is, as at any other end. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    this.stop.abort();
    if (this.beginning !== undefined) await Promise.race([this.beginning, whenAborted(deadline)]);
    const over = new AbortController();
    const isOver = async () => {
      await Promise.race([whenAborted(deadline), whenAborted(over.signal)]);
      await pause(this.deps.clock, GRACE_MS, over.signal);
    };
    // An exporter of somebody else's may fail to shut down, which must not cut the others short.
    const ending = this.workers.map((worker) => worker.shutdown(deadline).catch((error: unknown) => this.warn(error)));
    await Promise.race([Promise.all(ending), isOver()]);
    over.abort();
    await this.close();
  }

  private warn(error: unknown): void {
    this.deps.logger.warn({ error: reasonOf(error) }, 'exports did not end cleanly; the next start continues them');
  }

  private async haveBegun(deadline: AbortSignal): Promise<boolean> {
    this.begin();
    await Promise.race([this.beginning, whenAborted(deadline)]);
    return this.workers.length > 0;
  }

  private async register(name: string): Promise<void> {
    if (this.sources === undefined) return;
    const { cursors, passthrough } = this.sources;
    const nowUnixMs = this.deps.clock.nowUnixMs();
    if ((await cursors.register(name, nowUnixMs)) !== nowUnixMs) return;
    // What other services sent before is not for a destination that is new.
    const end = await passthrough.end();
    if (end !== undefined) await cursors.savePassthrough(name, end);
  }

  private async beginUntilItWorks(): Promise<void> {
    const { clock, logger } = this.deps;
    for (let failures = 1; !this.stop.signal.aborted; failures++) {
      try {
        if (this.opened === undefined) await this.open();
        await this.startWorkers(this.opened ?? []);
        return;
      } catch (error) {
        const delayMs = this.retryPolicy.delayMs(failures, null);
        logger.error({ error: reasonOf(error), delayMs }, 'failed to start exports; retrying, no data is lost');
        await pause(clock, delayMs, this.stop.signal);
      }
    }
  }

  /** Starts a worker for each destination, which hears of everything from now on; what came before, it finds in the state, or hears of now. */
  private async startWorkers(opened: readonly OpenedExport[]): Promise<void> {
    const { sources, deps, turns, openRuns, retryPolicy } = this;
    if (sources === undefined) throw new Error('exports are not connected');
    const { SupervisedWorker: Supervised, createWorker } = await import('./supervised-worker.js');
    const { RecordLogLines } = await import('./record-log-lines.js');
    const { configuration, logFolder } = this.config;
    const { clock, logger, random } = deps;
    const files = new RecordLogFiles(logFolder, (traceId, offset, reason) =>
      logger.warn({ traceId, offset, reason }, 'skipped a damaged line'),
    );
    const workerDeps = {
      cursors: sources.cursors,
      // What is durable of a log, only who writes it knows.
      reader: { read: files.read.bind(files), lengthBytes: (traceId: TraceId) => sources.lengthBytes(traceId) },
      lines: new RecordLogLines(logFolder),
      passthrough: sources.passthrough,
      engineNames: configuration['engine-names'],
      runs: { find: (traceId: TraceId) => sources.findRun(traceId) },
      origins: sources.origins,
      manifests: new RunManifests({ reader: sources.manifests, clock, logger }),
      clock,
      logger,
      turns,
      maxOpenBytes: Math.floor(openPartBytes(configuration['max-memory']) / Math.max(1, opened.length)),
      random,
    };
    this.workers = opened.map(
      (one) =>
        new Supervised({
          destination: one.destination,
          create: (onFailed) => createWorker(one, workerDeps, onFailed),
          openRuns,
          clock,
          logger,
          retryPolicy,
        }),
    );
    for (const worker of this.workers) await worker.start();
  }
}

const STARTING = 'exports are just starting; try again in a moment';

/** Loaded where they are needed: most exports are of the engine's telemetry alone. */
const codecs = lazy(async () => {
  const { JsonCodec } = await import('../otlp/json-codec.js');
  const { ProtobufCodec } = await import('../otlp/protobuf-codec.js');
  return { json: new JsonCodec(), protobuf: new ProtobufCodec() };
});
