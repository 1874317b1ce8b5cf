import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { createWorker, type OpenedExport, openExports } from '../../app/exports.js';
import { openState } from '../../app/open-state.js';
import { ConfigurationError } from '../../config/configuration-error.js';
import { type Clock, systemClock, type Timer } from '../../core/clock.js';
import { lazy } from '../../core/lazy.js';
import type { Logger } from '../../core/logger.js';
import { systemMachine } from '../../core/machine.js';
import { reasonOf } from '../../core/reason-of.js';
import {
  type ForeignEntry,
  type ForeignLogReader,
  type ForeignPlace,
  ForeignSegments,
} from '../../log/foreign-segments.js';
import { RecordLogFiles } from '../../log/record-log-files.js';
import type { TraceId } from '../../record/ids.js';
import { type Resource, resourceKey } from '../../record/resource.js';
import type { RunSummary } from '../../run/run-summary.js';
import type { Fence } from '../../storage/fence.js';
import type { State } from '../../storage/state.js';
import type { ExportWorker } from '../export-worker.js';
import { RecordLogLines } from '../record-log-lines.js';
import type { FromThread, TaskMessage, ThreadSetup, ToThread } from './messages.js';

/** The part of the program's memory that open runs may take, over all destinations; more than the bytes below is not of use. */
const OPEN_RUNS_PART = 1 / 8;
const MAX_OPEN_RUNS_BYTES = 128 * 1024 * 1024;

/** Everything that runs in the export thread: a worker for each destination, and messages to and from them. */
class ThreadExports {
  private opened: readonly OpenedExport[] = [];
  private workers: readonly ExportWorker[] = [];
  private state: State | undefined;
  private readonly foreign: BoundedForeignReader;
  private readonly questions: MainQuestions;
  private readonly report: StatusReport;
  private readonly logger: Logger;
  private readonly deadlines = new Map<number, AbortController>();
  /** What came before the workers were made. */
  private early: (() => void)[] | undefined = [];
  /** Messages that were taken in and not yet acknowledged. */
  private takenCount = 0;

  /** Where several processes share the database: this one's id. */
  private processId: string;

  constructor(
    private readonly setup: ThreadSetup,
    private readonly post: (message: FromThread) => void,
  ) {
    this.processId = setup.cluster?.fence.processId ?? '';
    const { 'data-dir': dataFolder } = setup.configuration;
    this.logger = loggerTo(post);
    this.questions = new MainQuestions(post);
    const segments = new ForeignSegments(join(dataFolder, 'foreign'), { isSynced: false, listeners: [] });
    this.foreign = new BoundedForeignReader(segments);
    this.report = new StatusReport(systemClock, () => {
      const statuses = this.workers.map((worker) => worker.status());
      post({ type: 'status', statuses });
      // Spans that are held back go by themselves, without another message.
      return statuses.some(({ state, lagBytes }) => state !== 'idle' || lagBytes > 0);
    });
  }

  /** Opens the destinations and says how it went. */
  async open(): Promise<void> {
    const { configuration, ownHosts, version } = this.setup;
    const deps = { codecs: codecs.get, clock: systemClock, userAgent: `run-bridge/${version}` };
    try {
      this.opened = await openExports(configuration, ownHosts, deps);
      const destinations = this.opened.map(({ destination, where }) => [destination.name, where] as const);
      this.post({ type: 'opened', destinations });
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      this.post({ type: 'refused', problems: error.problems });
    }
  }

  take(message: ToThread): void {
    switch (message.type) {
      case 'appended':
        this.acknowledge();
        this.whenReady(() => {
          for (const worker of this.workers) worker.onAppended(message);
        });
        break;
      case 'run':
        this.acknowledge();
        this.whenReady(() => {
          for (const worker of this.workers) void worker.onRunEvent(message.event);
        });
        break;
      case 'foreign':
        this.foreign.moveEnd(message.end);
        this.whenReady(() => {
          for (const worker of this.workers) worker.onForeign([]);
        });
        break;
      case 'drop':
        this.whenReady(() => {
          for (const worker of this.workers) worker.drop(message.traceId);
        });
        break;
      case 'collectGarbage':
        systemMachine.collectGarbage();
        break;
      case 'process':
        this.processId = message.processId;
        break;
      case 'answer':
        this.questions.answered(message.id, message.value);
        break;
      case 'deadline':
        this.deadlines.get(message.id)?.abort();
        break;
      case 'start':
      case 'flush':
      case 'shutdown':
        void this.perform(message);
        break;
    }
    this.report.later();
  }

  private whenReady(action: () => void): void {
    if (this.early === undefined) action();
    else this.early.push(action);
  }

  private damaged(traceId: string, offset: number, reason: string): void {
    this.logger.warn({ traceId, offset, reason }, 'skipped a damaged line');
  }

  private async perform({ type, id }: TaskMessage): Promise<void> {
    const deadline = new AbortController();
    this.deadlines.set(id, deadline);
    let isDrained = true;
    let failure: string | null = null;
    try {
      if (type === 'start') await this.start();
      else if (type === 'flush') isDrained = await this.flush(deadline.signal);
      else await this.shutdown(deadline.signal);
    } catch (error) {
      failure = reasonOf(error);
    }
    this.deadlines.delete(id);
    this.report.now();
    this.post({ type: 'done', id, isDrained, error: failure });
  }

  private async start(): Promise<void> {
    const { 'max-memory': maxMemoryBytes } = this.setup.configuration;
    const dataFolder = this.setup.cluster?.folder ?? this.setup.configuration['data-dir'];
    this.state = await openState(this.setup.configuration, systemClock, undefined, this.fence());
    const maxOpenBytes = Math.min(MAX_OPEN_RUNS_BYTES, maxMemoryBytes * OPEN_RUNS_PART);
    const files = new RecordLogFiles(dataFolder, (traceId, at, reason) => this.damaged(traceId, at, reason));
    const resources = new InternedResources();
    const deps = {
      cursors: this.state.cursors,
      // What is durable of a log, only the thread that writes it knows.
      reader: { read: files.read.bind(files), lengthBytes: this.questions.lengthBytes.bind(this.questions) },
      lines: new RecordLogLines(dataFolder, (resource) => resources.intern(resource)),
      foreign: this.foreign,
      runs: this.questions,
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
    const { cluster } = this.setup;
    if (cluster === null) return undefined;
    const processId = () => this.processId;
    return {
      folderId: cluster.fence.folderId,
      get processId() {
        return processId();
      },
    };
  }

  private async flush(deadline: AbortSignal): Promise<boolean> {
    const drained = await Promise.all(this.workers.map((worker) => worker.flush(deadline)));
    return drained.every((isDrained) => isDrained);
  }

  private async shutdown(deadline: AbortSignal): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.shutdown(deadline)));
    await this.state?.close();
  }

  /** Acknowledges what was taken in, once for all messages that wait. */
  private acknowledge(): void {
    if (this.takenCount === 0) {
      setImmediate(() => {
        this.post({ type: 'acknowledged', messages: this.takenCount });
        this.takenCount = 0;
      });
    }
    this.takenCount += 1;
  }
}

/** Loaded where they are needed: most exports are of the engine's telemetry alone. */
const codecs = lazy(async () => {
  const { JsonCodec } = await import('../../otlp/json-codec.js');
  const { ProtobufCodec } = await import('../../otlp/protobuf-codec.js');
  return { json: new JsonCodec(), protobuf: new ProtobufCodec() };
});

function loggerTo(post: (message: FromThread) => void): Logger {
  const at =
    (level: keyof Logger): Logger['info'] =>
    (fields, message) =>
      post({ type: 'log', level, fields, message });
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** Reads the telemetry of other services up to where it is known to be durable, which only who writes it can say. */
class BoundedForeignReader implements ForeignLogReader {
  private known: ForeignPlace | undefined;

  constructor(private readonly reader: Pick<ForeignLogReader, 'read'>) {}

  /** Everything before this place is durable. */
  moveEnd(end: ForeignPlace): void {
    if (this.known === undefined || !isBefore(end, this.known)) this.known = end;
  }

  async *read(from?: ForeignPlace): AsyncIterable<ForeignEntry> {
    for await (const entry of this.reader.read(from)) {
      if (this.known === undefined || isBefore(this.known, entry.next)) return;
      yield entry;
    }
  }

  async end(): Promise<ForeignPlace | undefined> {
    return this.known;
  }
}

function isBefore(a: ForeignPlace, b: ForeignPlace): boolean {
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

type Answer = RunSummary | number | undefined;

/** What the export thread asks the main one. */
class MainQuestions {
  private readonly waiting = new Map<number, (answer: Answer) => void>();
  private nextId = 1;

  constructor(private readonly post: (message: FromThread) => void) {}

  /** Length of the durable part of a record log; 0 where it is not known. */
  async lengthBytes(traceId: TraceId): Promise<number> {
    const answer = await this.ask('length', traceId);
    return typeof answer === 'number' ? answer : 0;
  }

  /** A run as it is known. */
  async find(traceId: TraceId): Promise<RunSummary | undefined> {
    const answer = await this.ask('run', traceId);
    return typeof answer === 'number' ? undefined : answer;
  }

  answered(id: number, answer: Answer): void {
    const resolve = this.waiting.get(id);
    this.waiting.delete(id);
    resolve?.(answer);
  }

  private ask(what: 'run' | 'length', traceId: TraceId): Promise<Answer> {
    const id = this.nextId;
    this.nextId += 1;
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      this.post({ type: 'ask', id, what, traceId });
    });
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
if (parentPort === null)
  throw new Error('this file is the program of a worker thread; start run-bridge with dist/main.js');
const port = parentPort;
const exports = new ThreadExports(workerData as ThreadSetup, (message: FromThread) => port.postMessage(message));
port.on('message', (message: ToThread) => exports.take(message));
await exports.open();
