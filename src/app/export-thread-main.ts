import { join } from 'node:path';
import { workerData } from 'node:worker_threads';
import { type DiagLogger, DiagLogLevel, diag } from '@opentelemetry/api';
import { ConfigurationError } from '../config/configuration-error.js';
import { type Clock, systemClock, type Timer } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import { openPartBytes, systemMachine } from '../core/guard.js';
import { lazy } from '../core/lazy.js';
import type { Logger } from '../core/logger.js';
import { type Channel, connectToStarter } from '../core/thread.js';
import {
  type ExportStarterCalls,
  type ExportThreadCalls,
  type ExportWorker,
  loadExports,
  type OpenedExport,
  type ThreadSetup,
} from '../export/feature.js';
import { createKafkaProducer } from '../kafka/feature.js';
import {
  type ForeignEntry,
  type ForeignLogReader,
  type ForeignPosition,
  ForeignSegments,
} from '../log/foreign-segments.js';
import { RecordLogFiles } from '../log/record-log-files.js';
import { type Resource, resourceKey } from '../record/attributes.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { Fence } from '../storage/fence.js';
import type { State } from '../storage/state.js';
import { openState } from './open-state.js';

/** Everything that runs in the export thread: a worker for each destination, and messages to and from them. */
class ThreadExports {
  private opened: readonly OpenedExport[] = [];
  private workers: readonly ExportWorker[] = [];
  private state: State | undefined;
  private readonly foreign: BoundedForeignReader;
  private readonly report: StatusReport;
  private readonly logger: Logger;
  /** What came before the workers were made. */
  private early: (() => void)[] | undefined = [];
  /** Messages that were taken in and not yet acknowledged. */
  private takenCount = 0;

  constructor(
    private readonly setup: ThreadSetup,
    private readonly starter: Channel<ExportStarterCalls>,
  ) {
    const { 'data-dir': dataFolder } = setup.configuration;
    this.logger = loggerTo(starter);
    const segments = new ForeignSegments(join(dataFolder, 'foreign'), { isSynced: false, listeners: [] });
    this.foreign = new BoundedForeignReader(segments);
    this.report = new StatusReport(systemClock, () => {
      const statuses = this.workers.map((worker) => worker.status());
      starter.tell('status', statuses);
      // Spans that are held back go by themselves, without another message.
      return statuses.some(({ state, lagBytes }) => state !== 'idle' || lagBytes > 0);
    });
  }

  /** What this thread offers. */
  readonly calls: ExportThreadCalls = {
    open: () => this.open(),
    start: () => this.reporting(this.start()),
    flush: (_, deadline) => this.reporting(this.flush(deadline)),
    test: (destination, deadline) => this.test(destination, deadline),
    resend: (of) => this.reporting(this.resend(of)),
    shutdown: (_, deadline) => this.reporting(this.shutdown(deadline)),
    appended: (log) => {
      this.acknowledge();
      this.whenReady((worker) => worker.onAppended(log));
    },
    runEvent: (event) => {
      this.acknowledge();
      this.whenReady((worker) => void worker.onRunEvent(event));
    },
    drop: (traceId) => this.whenReady((worker) => worker.drop(traceId)),
    foreign: (end) => {
      this.foreign.moveEnd(end);
      this.whenReady((worker) => worker.onForeign([]));
    },
    collectGarbage: () => systemMachine.collectGarbage(),
  };

  private async open(): ReturnType<ExportThreadCalls['open']> {
    const { configuration, ownHosts, version } = this.setup;
    const deps = {
      ...{ codecs: codecs.get, clock: systemClock, userAgent: `run-bridge/${version}` },
      environment: process.env,
      createKafkaProducer,
    };
    diag.setLogger(reportTo(this.logger), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
    try {
      const { openExports } = await loadExports();
      this.opened = await openExports(configuration, ownHosts, deps);
      return { destinations: this.opened.map(({ destination, where }) => [destination.name, where]) };
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      return { problems: error.problems };
    }
  }

  private whenReady(action: (worker: ExportWorker) => void): void {
    const each = () => this.workers.forEach(action);
    if (this.early === undefined) each();
    else this.early.push(each);
    this.report.later();
  }

  /** Says how things are before the result. */
  private async reporting<Value>(task: Promise<Value>): Promise<Value> {
    try {
      return await task;
    } finally {
      this.report.now();
    }
  }

  private damaged(traceId: string, offset: number, reason: string): void {
    this.logger.warn({ traceId, offset, reason }, 'skipped a damaged line');
  }

  private async start(): Promise<void> {
    const { createWorker, RecordLogLines } = await loadExports();
    const { 'max-memory': maxMemoryBytes } = this.setup.configuration;
    const dataFolder = this.setup.cluster?.folder ?? this.setup.configuration['data-dir'];
    this.state = await openState(this.setup.configuration, systemClock, undefined, this.fence());
    const maxOpenBytes = openPartBytes(maxMemoryBytes);
    const files = new RecordLogFiles(dataFolder, (traceId, at, reason) => this.damaged(traceId, at, reason));
    const resources = new InternedResources();
    const deps = {
      cursors: this.state.cursors,
      // What is durable of a log, only the thread that writes it knows.
      reader: {
        read: files.read.bind(files),
        lengthBytes: (traceId: TraceId) => this.starter.ask('lengthBytes', traceId),
      },
      lines: new RecordLogLines(dataFolder, (resource) => resources.intern(resource)),
      foreign: this.foreign,
      engineNames: this.setup.configuration['engine-names'],
      runs: { find: (traceId: TraceId) => this.starter.ask('findRun', traceId) },
      origins: this.state.traces,
      clock: systemClock,
      logger: this.logger,
      maxOpenBytes: Math.floor(maxOpenBytes / Math.max(1, this.opened.length)),
      random: Math.random,
    };
    this.workers = this.opened.map((one) => createWorker(one, deps));
    const early = this.early ?? [];
    this.early = undefined;
    for (const action of early) action();
    for (const worker of this.workers) await worker.start();
  }

  private fence(): Fence | undefined {
    return this.setup.cluster?.fence;
  }

  private async flush(deadline: AbortSignal): Promise<boolean> {
    const drained = await Promise.all(this.workers.map((worker) => worker.flush(deadline)));
    return drained.every((isDrained) => isDrained);
  }

  private async test(name: string, deadline: AbortSignal): ReturnType<ExportThreadCalls['test']> {
    const one = this.opened.find(({ destination }) => destination.name === name);
    const { testDestination } = await loadExports();
    return one && testDestination(one.destination, { clock: systemClock, version: this.setup.version }, deadline);
  }

  private async resend({ traceIds, destination }: Parameters<ExportThreadCalls['resend']>[0]): Promise<void> {
    for (const [index, worker] of this.workers.entries()) {
      if (destination !== null && this.opened[index]?.destination.name !== destination) continue;
      for (const traceId of traceIds) await worker.resend(traceId);
    }
  }

  private async shutdown(deadline: AbortSignal): Promise<void> {
    // An exporter of somebody else's may fail to shut down, which must not cut the others short.
    const ended = await Promise.allSettled(this.workers.map((worker) => worker.shutdown(deadline)));
    await this.state?.close();
    for (const one of ended) if (one.status === 'rejected') throw one.reason;
  }

  /** Acknowledges what was taken in, once for all messages that wait. */
  private acknowledge(): void {
    if (this.takenCount === 0) {
      setImmediate(() => {
        this.starter.tell('acknowledged', this.takenCount);
        this.takenCount = 0;
      });
    }
    this.takenCount += 1;
  }
}

/** Loaded where they are needed: most exports are of the engine's telemetry alone. */
const codecs = lazy(async () => {
  const { JsonCodec } = await import('../otlp/json-codec.js');
  const { ProtobufCodec } = await import('../otlp/protobuf-codec.js');
  return { json: new JsonCodec(), protobuf: new ProtobufCodec() };
});

function loggerTo(starter: Channel<ExportStarterCalls>): Logger {
  const at =
    (level: keyof Logger): Logger['info'] =>
    (fields, message) =>
      starter.tell('log', { level, fields, message });
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** The longest report of an exporter that is logged, in characters. */
const MAX_REPORT_LENGTH = 1_000;

/** What OpenTelemetry's exporters report beside their results, partial successes for example. */
function reportTo(logger: Logger): DiagLogger {
  const textOf = (parts: readonly unknown[]) => parts.map(reasonOf).join(' ').slice(0, MAX_REPORT_LENGTH);
  const ignore = () => {};
  return {
    error: (...parts) => logger.error({ report: textOf(parts) }, 'an OpenTelemetry exporter reported an error'),
    warn: (...parts) => logger.warn({ report: textOf(parts) }, 'an OpenTelemetry exporter reported a problem'),
    ...{ info: ignore, debug: ignore, verbose: ignore },
  };
}

/** Reads the telemetry of other services up to where it is known to be durable, which only who writes it can say. */
class BoundedForeignReader implements ForeignLogReader {
  private known: ForeignPosition | undefined;

  constructor(private readonly reader: Pick<ForeignLogReader, 'read'>) {}

  /** Everything before this place is durable. */
  moveEnd(end: ForeignPosition): void {
    if (this.known === undefined || !isBefore(end, this.known)) this.known = end;
  }

  async *read(from?: ForeignPosition): AsyncIterable<ForeignEntry> {
    for await (const entry of this.reader.read(from)) {
      if (this.known === undefined || isBefore(this.known, entry.next)) return;
      yield entry;
    }
  }

  async end(): Promise<ForeignPosition | undefined> {
    return this.known;
  }
}

function isBefore(a: ForeignPosition, b: ForeignPosition): boolean {
  return a.segment === b.segment ? a.offset < b.offset : a.segment < b.segment;
}

/** Different resources that are remembered; the one used longest ago goes first. */
const MAX_RESOURCES = 1_000;

/** One object for each resource, however often it comes in a message: what is made of a resource is made once. */
class InternedResources {
  private readonly byKey = new Map<string, Resource>();

  intern(resource: Resource): Resource {
    const key = resourceKey(resource);
    const known = this.byKey.get(key) ?? resource;
    this.byKey.delete(key);
    this.byKey.set(key, known);
    if (this.byKey.size > MAX_RESOURCES) {
      const [oldest] = this.byKey.keys();
      if (oldest !== undefined) this.byKey.delete(oldest);
    }
    return known;
  }
}

/** How long after a message the report is made, in milliseconds. */
const DELAY_MS = 200;
/** How often it is made while something is under way, is held back, or waits for a destination. */
const REPEAT_MS = 1_000;

/** Reports how things are, soon after something happened and as long as something is under way; when all is quiet, never. */
class StatusReport {
  private timer: Timer | undefined;

  /** @param report makes the report. @returns whether something is under way. */
  constructor(
    private readonly clock: Clock,
    private readonly report: () => boolean,
  ) {}

  /** Something happened. */
  later(delayMs = DELAY_MS): void {
    this.timer ??= this.clock.after(delayMs, () => this.now());
  }

  now(): void {
    this.timer?.cancel();
    this.timer = undefined;
    if (this.report()) this.later(REPEAT_MS);
  }
}

// This file is the program of the export thread, which `ExportThread` starts.
const starter = connectToStarter<ExportStarterCalls>();
const setup: ThreadSetup = workerData;
starter.serve(new ThreadExports(setup, starter).calls);
