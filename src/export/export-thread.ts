import { ConfigurationError } from '../config/configuration-error.js';
import { type Clock, pause, type RetryPolicy, type Timer, whenAborted } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import { startThread, type Thread } from '../core/thread.js';
import type { Appended, AppendListener } from '../log/appended.js';
import type { ForeignListener, ForeignLogReader } from '../log/foreign-segments.js';
import type { ForeignBatch } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { RunEvent, RunListener } from '../run/run-event.js';
import type { RunSummary } from '../run/verdict.js';
import type { CursorStore } from '../storage/cursor-store.js';
import type { DestinationStatus } from './destination.js';
import type { DestinationTest } from './destination-test.js';
import type { ExportedRunEvent, ExportStarterCalls, ExportThreadCalls, ThreadSetup } from './thread-messages.js';

/** All exports: hears what became durable and what happens to runs, and sends it to each destination. */
export interface Exports extends Component, AppendListener, ForeignListener, RunListener {
  /** Each destination: its name and where it is, without secrets. */
  readonly destinations: readonly (readonly [name: string, where: string])[];
  /** How each destination is, as it was a moment ago. */
  statuses(): readonly DestinationStatus[];
  /**
   * Sends a test to a destination, past all queues and cursors. @returns `undefined` where there is none of that name
   * @throws Error if exports are not running
   */
  test(destination: string, deadline: AbortSignal): Promise<DestinationTest | undefined>;
  /** Sends runs again from their first record. @param destination `null` for all of them */
  resend(traceIds: readonly TraceId[], destination: string | null, deadline: AbortSignal): Promise<void>;
  /** A record log is looked after elsewhere: nothing of it is sent any more, but what is under way. */
  drop(traceId: TraceId): void;
  /** Frees what nothing refers to any more, soon; does nothing in the main thread. */
  collectGarbage(): void;
  /** Sends what there is and tries again what fails, until everything is sent or `deadline` aborts. Whether everything is. */
  flush(deadline: AbortSignal): Promise<boolean>;
}

/** What the thread's owner works with. */
export interface ExportThreadDeps {
  /** The thread's program, compiled. */
  readonly entry: URL;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long to wait before a thread that died is started anew. */
  readonly retryPolicy: RetryPolicy;
}

/** What exports need of the rest of the program. */
export interface ExportThreadSources {
  readonly cursors: Pick<CursorStore, 'register' | 'saveForeign'>;
  /** Length of the durable part of a record log. */
  lengthBytes(traceId: TraceId): Promise<number>;
  /** A run as it is known. */
  findRun(traceId: TraceId): Promise<RunSummary | undefined>;
  readonly foreign: Pick<ForeignLogReader, 'end'>;
}

/** The part of the program's memory that the thread's heap may take, at most. */
const HEAP_PART = 0.5;
const MIN_HEAP_MIB = 128;
/** A thread that lived so long has not failed from the start, in milliseconds. */
const HEALTHY_MS = 60_000;
/** A thread that does not end by the deadline is ended so much later, in milliseconds; what was answered is saved. */
const GRACE_MS = 1_000;

/**
 * Exports in a thread of their own: mapping, redaction, encoding and sending take none of the time in which requests are
 * answered. Everything in the thread can be read again from the record logs, so one that dies is restarted.
 *
 * Where its destinations are known without it, a start does not wait for the thread either: loading its code takes longer
 * than all the rest. Until it is there, the latest of each run is kept for it.
 */
export class ExportThread implements Exports {
  readonly name = 'exports';
  /** The one that has opened the destinations. */
  private thread: Thread<ExportThreadCalls> | undefined;
  /** The one that is opening them. */
  private beginning: Thread<ExportThreadCalls> | undefined;
  /** Whether its workers were started. */
  private isWorking = false;
  private sources: ExportThreadSources | undefined;
  private latest: readonly DestinationStatus[] = [];
  private readonly mailbox: ThreadMailbox;
  private startedMs = 0;
  private failures = 0;
  private restartTimer: Timer | undefined;
  private restarting: Promise<void> = Promise.resolve();
  private isStarted = false;
  private hasWorked = false;
  private isStopping = false;

  /** @param destinations each one's name and address; empty if only the thread knows them: then `open` it before the start */
  constructor(
    private readonly setup: ThreadSetup,
    private readonly deps: ExportThreadDeps,
    public destinations: Exports['destinations'] = [],
  ) {
    this.mailbox = new ThreadMailbox({
      appended: (length) => this.thread?.channel.tell('appended', length),
      runEvent: (event) => this.thread?.channel.tell('runEvent', event),
      drop: (traceId) => this.thread?.channel.tell('drop', traceId),
    });
  }

  /** Starts the thread, which opens every destination of the configuration. @throws ConfigurationError when one cannot be used. */
  async open(): Promise<void> {
    await this.begin();
  }

  /** Gives exports what they need; called once, before `start`. */
  connect(sources: ExportThreadSources): void {
    this.sources = sources;
  }

  async start(): Promise<void> {
    // From now on each gets what comes.
    for (const [name] of this.destinations) await this.register(name);
    if (this.thread === undefined) {
      this.isStarted = true;
      this.restarting = this.restart();
      return;
    }
    try {
      await this.startWorkers();
    } catch (error) {
      await this.close();
      throw error;
    }
    this.isStarted = true;
  }

  /** Ends at once a thread that never started to work. */
  async close(): Promise<void> {
    this.isStopping = true;
    this.restartTimer?.cancel();
    await (this.thread ?? this.beginning)?.terminate();
  }

  onAppended(appended: Appended): void {
    if (!this.isStopping) this.mailbox.appended(appended);
  }

  onForeign(_batches: readonly ForeignBatch[]): void {
    void this.tellForeignEnd();
  }

  async onRunEvent(event: RunEvent): Promise<void> {
    if (!this.isStopping) this.mailbox.runEvent(event);
  }

  drop(traceId: TraceId): void {
    if (!this.isStopping) this.mailbox.drop(traceId);
  }

  collectGarbage(): void {
    this.thread?.channel.tell('collectGarbage', undefined);
  }

  statuses(): readonly DestinationStatus[] {
    return this.latest;
  }

  async test(destination: string, deadline: AbortSignal): Promise<DestinationTest | undefined> {
    if (this.thread === undefined) throw new Error('exports are just starting; try again in a moment');
    const { clock } = this.deps;
    const over = new AbortController();
    const late = whenAborted(deadline).then(async () => {
      await pause(clock, GRACE_MS, over.signal);
      throw new Error('the export thread did not answer');
    });
    try {
      return await Promise.race([this.thread.channel.ask('test', destination, deadline), late]);
    } finally {
      over.abort();
    }
  }

  async resend(traceIds: readonly TraceId[], destination: string | null, deadline: AbortSignal): Promise<void> {
    while (!this.isWorking || this.thread === undefined) {
      if (deadline.aborted) throw new Error('exports are just starting; try again in a moment');
      await pause(this.deps.clock, 50, deadline);
    }
    await this.thread.channel.ask('resend', { traceIds, destination });
  }

  async flush(deadline: AbortSignal): Promise<boolean> {
    while (!deadline.aborted) {
      try {
        if (this.isWorking && this.thread !== undefined) {
          return await this.thread.channel.ask('flush', undefined, deadline);
        }
      } catch {
        // It died, which was logged; a new one goes on.
      }
      await pause(this.deps.clock, 50, deadline);
    }
    return false;
  }

  /** A thread that is just being started is waited for: it sends what there is, as at any other end. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    this.isStopping = true;
    this.restartTimer?.cancel();
    await Promise.race([this.restarting, whenAborted(deadline)]);
    const over = new AbortController();
    const isOver = async () => {
      await Promise.race([whenAborted(deadline), whenAborted(over.signal)]);
      await pause(this.deps.clock, GRACE_MS, over.signal);
    };
    try {
      await Promise.race([this.thread?.channel.ask('shutdown', undefined, deadline), isOver()]);
    } catch (error) {
      this.deps.logger.warn({ error: reasonOf(error) }, 'exports did not end cleanly; the next start continues them');
    } finally {
      over.abort();
      await this.close();
    }
  }

  private async register(name: string): Promise<void> {
    if (this.sources === undefined) return;
    const { cursors, foreign } = this.sources;
    const nowUnixMs = this.deps.clock.nowUnixMs();
    if ((await cursors.register(name, nowUnixMs)) !== nowUnixMs) return;
    // What other services sent before is not for a destination that is new.
    const end = await foreign.end();
    if (end !== undefined) await cursors.saveForeign(name, end);
  }

  /** Starts a thread and waits until it has opened the destinations. */
  private async begin(): Promise<void> {
    const { entry, clock, logger } = this.deps;
    const maxMemoryBytes = this.setup.configuration['max-memory'];
    const maxHeapMib = Math.max(MIN_HEAP_MIB, Math.floor((maxMemoryBytes * HEAP_PART) / 2 ** 20));
    const endMessage = (exitCode: number) => `it ended by itself with code ${exitCode}`;
    const thread = startThread<ExportThreadCalls, ExportStarterCalls>(
      { entry, workerData: this.setup, maxHeapMib, endMessage, clock },
      {
        // What fails is tried again by the thread: a run that counted as unknown would never be sent to its end.
        lengthBytes: async (traceId) => (await this.sources?.lengthBytes(traceId)) ?? 0,
        findRun: async (traceId) => await this.sources?.findRun(traceId),
        acknowledged: (messages) => {
          if (thread === this.thread) this.mailbox.acknowledged(messages);
        },
        status: (statuses) => {
          this.latest = statuses;
        },
        log: ({ level, fields, message }) => logger[level](fields, message),
      },
    );
    this.startedMs = clock.monotonicMs();
    this.beginning = thread;
    try {
      const opened = await thread.channel.ask('open', undefined);
      if ('problems' in opened) throw new ConfigurationError(opened.problems);
      this.destinations = opened.destinations;
      this.thread = thread;
    } catch (error) {
      await thread.terminate();
      throw error;
    } finally {
      this.beginning = undefined;
    }
    void thread.ended.then((reason) => this.lost(reason));
  }

  private async startWorkers(): Promise<void> {
    await this.tellForeignEnd();
    // From here on the thread hears of everything; what came before it finds in the state, or hears now.
    this.mailbox.connect();
    await this.thread?.channel.ask('start', undefined);
    this.isWorking = true;
    this.hasWorked = true;
  }

  private async tellForeignEnd(): Promise<void> {
    const end = await this.sources?.foreign.end();
    if (end !== undefined) this.thread?.channel.tell('foreign', end);
  }

  /** There is no thread any more: a new one reads from the logs what it had in memory. */
  private lost(reason: unknown): void {
    this.thread = undefined;
    this.isWorking = false;
    this.mailbox.disconnect();
    if (this.isStopping || !this.isStarted) return;
    const { clock, logger, retryPolicy } = this.deps;
    if (clock.monotonicMs() - this.startedMs >= HEALTHY_MS) this.failures = 0;
    this.failures += 1;
    const delayMs = retryPolicy.delayMs(this.failures, null);
    const error = reasonOf(reason);
    logger.error(
      { error, delayMs },
      this.hasWorked
        ? 'the export thread ended unexpectedly; restarting it where it stopped, no data is lost'
        : 'failed to start the export thread; retrying, no data is lost',
    );
    this.latest = this.latest.map((status) => ({ ...status, state: 'waiting', lastError: error }));
    this.restartTimer = clock.after(delayMs, () => {
      this.restarting = this.restart();
    });
  }

  private async restart(): Promise<void> {
    const { hasWorked } = this;
    try {
      await this.begin();
      await this.startWorkers();
      if (hasWorked) this.deps.logger.info({}, 'the export thread is running again');
    } catch (error) {
      // One that is still there could not begin its work; its end is what starts the next one.
      if (this.thread !== undefined) await this.thread.terminate();
      else this.lost(error);
    }
  }
}

/** Messages that the thread has not acknowledged; beyond it, only the latest of each run is kept. */
const MAX_MESSAGES = 1_000;
/** Runs whose latest state is kept; of the one longest ago the thread hears when it is started the next time. */
const MAX_RUNS = 100_000;

/** What is known last of a run. */
interface LatestOfRun {
  readonly lengthBytes: number;
  readonly event: ExportedRunEvent | undefined;
}

/**
 * Posts to the export thread how long the logs of runs are, which it reads itself, and their events. A thread that is behind,
 * or not there, never makes the others wait, nor the memory grow: it gets no single messages any more, but the latest of each
 * run.
 */
export class ThreadMailbox {
  private isConnected = false;
  private messageCount = 0;
  private readonly postponed = new Map<TraceId, LatestOfRun>();
  /** Runs that were heard of and are not finished: what a new thread has to hear of. */
  private readonly open = new Map<TraceId, number>();

  /** @param thread the messages to the thread */
  constructor(private readonly thread: Pick<ExportThreadCalls, 'appended' | 'runEvent' | 'drop'>) {}

  appended({ traceId, lengthBytes }: Pick<Appended, 'traceId' | 'lengthBytes'>): void {
    note(this.open, traceId, lengthBytes);
    if (this.isFull) note(this.postponed, traceId, { lengthBytes, event: this.postponed.get(traceId)?.event });
    else this.postLength(traceId, lengthBytes);
  }

  runEvent(event: RunEvent): void {
    if (event.type === 'invocationEnded') return;
    const { traceId, logBytes } = event.run;
    if (event.type === 'finished') this.open.delete(traceId);
    if (this.isFull) note(this.postponed, traceId, { lengthBytes: logBytes, event });
    else this.postEvent(event);
  }

  /** Nothing of a run is posted any more. */
  drop(traceId: TraceId): void {
    this.open.delete(traceId);
    this.postponed.delete(traceId);
    this.thread.drop(traceId);
  }

  /** The thread has taken in so many messages. */
  acknowledged(messages: number): void {
    this.messageCount -= messages;
    if (this.messageCount > MAX_MESSAGES / 2) return;
    for (const [traceId, { lengthBytes, event }] of this.postponed) {
      if (this.messageCount >= MAX_MESSAGES) return;
      this.postponed.delete(traceId);
      this.postLength(traceId, lengthBytes);
      if (event !== undefined) this.postEvent(event);
    }
  }

  /** A new thread takes over: it knows of runs only what the state knows, and hears of the others. */
  connect(): void {
    this.isConnected = true;
    this.messageCount = 0;
    for (const [traceId, lengthBytes] of this.open) {
      if (!this.postponed.has(traceId)) this.postponed.set(traceId, { lengthBytes, event: undefined });
    }
    this.acknowledged(0);
  }

  /** There is no thread: what comes waits for the next one. */
  disconnect(): void {
    this.isConnected = false;
  }

  private get isFull(): boolean {
    return !this.isConnected || this.messageCount >= MAX_MESSAGES || this.postponed.size > 0;
  }

  private postLength(traceId: TraceId, lengthBytes: number): void {
    this.messageCount += 1;
    this.thread.appended({ traceId, lengthBytes });
  }

  private postEvent(event: ExportedRunEvent): void {
    this.messageCount += 1;
    this.thread.runEvent(event);
  }
}

function note<T>(map: Map<TraceId, T>, traceId: TraceId, value: T): void {
  map.delete(traceId);
  map.set(traceId, value);
  if (map.size <= MAX_RUNS) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
