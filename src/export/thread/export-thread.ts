import type { Worker } from 'node:worker_threads';
import { ConfigurationError } from '../../config/configuration-error.js';
import { startBoundedThread } from '../../core/bounded-thread.js';
import type { Clock, Timer } from '../../core/clock.js';
import type { Component } from '../../core/component.js';
import type { Logger } from '../../core/logger.js';
import { pause } from '../../core/pause.js';
import { reasonOf } from '../../core/reason-of.js';
import type { RetryPolicy } from '../../core/retry-policy.js';
import { whenAborted } from '../../core/when-aborted.js';
import type { Appended, AppendListener } from '../../log/appended.js';
import type { ForeignListener, ForeignLogReader } from '../../log/foreign-segments.js';
import type { TraceId } from '../../record/ids.js';
import type { ForeignBatch } from '../../record/record-batch.js';
import type { RunEvent, RunListener } from '../../run/run-event.js';
import type { RunSummary } from '../../run/run-summary.js';
import type { DestinationStatus } from '../destination.js';
import type { FromThread, TaskMessage, ThreadSetup, ToThread } from './messages.js';
import { ThreadMailbox } from './thread-mailbox.js';

/** All exports: hears what became durable and what happens to runs, and sends it to each destination. */
export interface Exports extends Component, AppendListener, ForeignListener, RunListener {
  /** Each destination: its name and where it is, without secrets. */
  readonly destinations: readonly (readonly [name: string, where: string])[];
  /** How each destination is, as it was a moment ago. */
  statuses(): readonly DestinationStatus[];
  /** A record log is looked after elsewhere: nothing of it is sent any more, but what is under way. */
  drop(traceId: TraceId): void;
  /** Frees what nothing refers to any more, soon; whoever runs as part of the main thread has nothing to do. */
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

/** What the thread asks of the rest of the program. */
export interface ExportThreadSources {
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
 * answered. Whatever the thread holds can be read again from the record logs, so one that dies is started anew.
 */
export class ExportThread implements Exports {
  readonly name = 'exports';
  destinations: Exports['destinations'] = [];
  private link: ThreadLink | undefined;
  private sources: ExportThreadSources | undefined;
  private latest: readonly DestinationStatus[] = [];
  private readonly mailbox: ThreadMailbox;
  private startedMs = 0;
  private failures = 0;
  private restartTimer: Timer | undefined;
  private isStarted = false;
  private isStopping = false;

  /**
   * Starts the thread, which opens every destination of the configuration.
   * @throws ConfigurationError when one cannot be used.
   */
  static async open(setup: ThreadSetup, deps: ExportThreadDeps): Promise<ExportThread> {
    const thread = new ExportThread(setup, deps);
    await thread.begin();
    return thread;
  }

  private constructor(
    private setup: ThreadSetup,
    private readonly deps: ExportThreadDeps,
  ) {
    this.mailbox = new ThreadMailbox((message) => this.link?.post(message));
  }

  /** Says where the thread finds what it asks for; called once, before `start`. */
  connect(sources: ExportThreadSources): void {
    this.sources = sources;
  }

  async start(): Promise<void> {
    try {
      await this.startWorkers();
    } catch (error) {
      await this.close();
      throw error;
    }
    this.isStarted = true;
  }

  /** Ends the thread at once, where it never came to work. */
  async close(): Promise<void> {
    this.isStopping = true;
    await this.link?.terminate();
  }

  onAppended(appended: Appended): void {
    if (!this.isStopping) this.mailbox.appended(appended);
  }

  onForeign(_batches: readonly ForeignBatch[]): void {
    void this.postForeignEnd();
  }

  async onRunEvent(event: RunEvent): Promise<void> {
    if (!this.isStopping) this.mailbox.runEvent(event);
  }

  drop(traceId: TraceId): void {
    if (!this.isStopping) this.mailbox.drop(traceId);
  }

  collectGarbage(): void {
    this.link?.post({ type: 'collectGarbage' });
  }

  /** Where several processes share the database: this one goes on under another id. */
  rename(processId: string): void {
    const { cluster } = this.setup;
    if (cluster === null) return;
    this.setup = { ...this.setup, cluster: { ...cluster, fence: { ...cluster.fence, processId } } };
    this.link?.post({ type: 'process', processId });
  }

  statuses(): readonly DestinationStatus[] {
    return this.latest;
  }

  async flush(deadline: AbortSignal): Promise<boolean> {
    while (!deadline.aborted) {
      try {
        if (this.link !== undefined) return await this.link.request('flush', deadline);
      } catch {
        // It died, which was logged; a new one goes on.
      }
      await pause(this.deps.clock, 50, deadline);
    }
    return false;
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    this.isStopping = true;
    this.restartTimer?.cancel();
    const { link } = this;
    if (link === undefined) return;
    const over = new AbortController();
    const isOver = async () => {
      await Promise.race([whenAborted(deadline), whenAborted(over.signal)]);
      await pause(this.deps.clock, GRACE_MS, over.signal);
    };
    try {
      await Promise.race([link.request('shutdown', deadline), isOver()]);
    } catch (error) {
      this.deps.logger.warn({ error: reasonOf(error) }, 'exports did not end cleanly; the next start continues them');
    } finally {
      over.abort();
      await link.terminate();
    }
  }

  /** Starts a thread and waits until it has opened the destinations. */
  private async begin(): Promise<void> {
    const maxMemoryBytes = this.setup.configuration['max-memory'];
    const maxHeapMib = Math.max(MIN_HEAP_MIB, Math.floor((maxMemoryBytes * HEAP_PART) / 2 ** 20));
    const worker = startBoundedThread(this.deps.entry, { workerData: this.setup, maxHeapMib }, this.deps.clock);
    this.startedMs = this.deps.clock.monotonicMs();
    await new Promise<void>((resolve, reject) => {
      const link = new ThreadLink(worker, {
        onMessage: (message) => {
          if (message.type === 'opened') {
            this.link = link;
            this.destinations = message.destinations;
            resolve();
          } else if (message.type === 'refused') {
            reject(new ConfigurationError(message.problems));
            void link.terminate();
          } else {
            this.take(message, link);
          }
        },
        onEnd: (reason) => {
          reject(reason);
          if (this.link === link) this.lost(reason);
        },
      });
    });
  }

  private async startWorkers(): Promise<void> {
    await this.postForeignEnd();
    await this.link?.request('start');
  }

  private take(message: FromThread, link: ThreadLink): void {
    switch (message.type) {
      case 'acknowledged':
        if (link === this.link) this.mailbox.acknowledged(message.messages);
        return;
      case 'ask':
        void this.answer(message, link);
        return;
      case 'status':
        this.latest = message.statuses;
        return;
      case 'log':
        this.deps.logger[message.level](message.fields, message.message);
        return;
      case 'opened':
      case 'refused':
      case 'done':
        return;
    }
  }

  private async answer({ id, what, traceId }: Extract<FromThread, { type: 'ask' }>, link: ThreadLink): Promise<void> {
    const { sources } = this;
    let value: RunSummary | number | undefined;
    try {
      value = what === 'run' ? await sources?.findRun(traceId) : await sources?.lengthBytes(traceId);
    } catch (error) {
      // As if nothing were known of it; the run is asked for again when more of it comes.
      this.deps.logger.warn({ traceId, error: reasonOf(error) }, 'failed to notify an export of its run');
    }
    link.post({ type: 'answer', id, value });
  }

  private async postForeignEnd(): Promise<void> {
    const end = await this.sources?.foreign.end();
    if (end !== undefined) this.link?.post({ type: 'foreign', end });
  }

  /** The thread died: a new one reads from the logs what it had in memory. */
  private lost(reason: Error): void {
    this.link = undefined;
    if (this.isStopping) return;
    const { clock, logger, retryPolicy } = this.deps;
    if (clock.monotonicMs() - this.startedMs >= HEALTHY_MS) this.failures = 0;
    this.failures += 1;
    const delayMs = retryPolicy.delayMs(this.failures, null);
    const error = reasonOf(reason);
    logger.error(
      { error, delayMs },
      'the export thread ended unexpectedly; restarting it where it stopped, no data is lost',
    );
    this.latest = this.latest.map((status) => ({ ...status, state: 'waiting', lastError: error }));
    this.restartTimer = clock.after(delayMs, () => void this.restart());
  }

  private async restart(): Promise<void> {
    this.restartTimer = undefined;
    try {
      await this.begin();
      // From here on the new thread hears of everything; what came before it finds in the state, or hears now.
      this.mailbox.renew();
      if (this.isStarted) await this.startWorkers();
      this.deps.logger.info({}, 'the export thread is running again');
    } catch (error) {
      // One that is still there could not begin its work; its end is what starts the next one.
      if (this.link !== undefined) await this.link.terminate();
      else if (this.restartTimer === undefined) this.lost(toError(error));
    }
  }
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** What comes of a thread. */
interface ThreadLinkHost {
  onMessage(message: Exclude<FromThread, { readonly type: 'done' }>): void;
  /** The thread has ended, asked to or not. Called once. */
  onEnd(reason: Error): void;
}

interface Task {
  resolve(isDrained: boolean): void;
  reject(reason: Error): void;
}

/** One life of the export thread: messages to it and from it. */
class ThreadLink {
  private readonly tasks = new Map<number, Task>();
  private nextId = 1;
  private hasEnded = false;

  constructor(
    private readonly worker: Worker,
    private readonly host: ThreadLinkHost,
  ) {
    worker.on('message', (message: FromThread) => this.take(message));
    worker.on('messageerror', (error) => this.end(error));
    worker.on('error', (error) => this.end(error instanceof Error ? error : new Error(String(error))));
    worker.on('exit', (code) => this.end(new Error(`it ended by itself with code ${code}`)));
  }

  post(message: ToThread): void {
    if (!this.hasEnded) this.worker.postMessage(message);
  }

  /**
   * Asks the thread to do something. When `deadline` aborts, the thread comes to an end with it as soon as it can.
   * @returns whether everything was exported.
   * @throws Error when the thread says that it failed, or ends.
   */
  request(type: TaskMessage['type'], deadline?: AbortSignal): Promise<boolean> {
    const id = this.nextId;
    this.nextId += 1;
    return new Promise((resolve, reject) => {
      if (this.hasEnded) {
        reject(new Error('the export thread has ended'));
        return;
      }
      const onAbort = () => this.post({ type: 'deadline', id });
      const settle = () => {
        this.tasks.delete(id);
        deadline?.removeEventListener('abort', onAbort);
      };
      this.tasks.set(id, {
        resolve: (isDrained) => {
          settle();
          resolve(isDrained);
        },
        reject: (reason) => {
          settle();
          reject(reason);
        },
      });
      this.post({ type, id });
      if (deadline?.aborted === true) onAbort();
      else deadline?.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** Ends the thread at once. */
  async terminate(): Promise<void> {
    await this.worker.terminate();
  }

  private take(message: FromThread): void {
    if (this.hasEnded) return;
    if (message.type !== 'done') {
      this.host.onMessage(message);
      return;
    }
    const task = this.tasks.get(message.id);
    if (message.error === null) task?.resolve(message.isDrained);
    else task?.reject(new Error(message.error));
  }

  private end(reason: Error): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    for (const task of [...this.tasks.values()]) task.reject(reason);
    this.host.onEnd(reason);
  }
}
