import { type Clock, pause, type RetryPolicy, type Timer, whenAborted } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import { setLatest } from '../core/lists.js';
import type { Logger } from '../core/logger.js';
import type { Appended } from '../log/appended.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { RunEvent } from '../run/run-event.js';
import type { Destination, DestinationStatus } from './destination.js';
import type { ExportWorker } from './export-worker.js';

/** Runs that are remembered; of the one longest ago a worker hears when the state knows it, or its next records come. */
const MAX_RUNS = 100_000;

/** Runs that were heard of and are not finished: what a worker has to hear of that was not there then. What is finished, the state knows. */
export class OpenRuns {
  private readonly lengths = new Map<TraceId, number>();

  appended({ traceId, lengthBytes }: Pick<Appended, 'traceId' | 'lengthBytes'>): void {
    setLatest(this.lengths, traceId, lengthBytes, MAX_RUNS);
  }

  runEvent(event: RunEvent): void {
    if (event.type === 'finished') this.lengths.delete(event.run.traceId);
  }

  /** A record log is looked after elsewhere. */
  drop(traceId: TraceId): void {
    this.lengths.delete(traceId);
  }

  /** Tells a worker of all of them. */
  tell(worker: Pick<ExportWorker, 'onAppended'>): void {
    for (const [traceId, lengthBytes] of this.lengths) worker.onAppended({ traceId, lengthBytes });
  }
}

/** What a supervised worker is made with. */
export interface SupervisedWorkerDeps {
  readonly destination: Pick<Destination, 'name' | 'close'>;
  /** Makes a worker that is not started. @param onFailed is called with the error that ends it */
  readonly create: (onFailed: (error: unknown) => void) => ExportWorker;
  readonly openRuns: OpenRuns;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long to wait before another worker takes the place of one that failed. */
  readonly retryPolicy: RetryPolicy;
}

/** A worker that lived so long has not failed from the start, in milliseconds. */
const HEALTHY_MS = 60_000;
/** How often somebody who needs a worker looks whether there is one again, in milliseconds. */
const LOOK_MS = 50;

/**
 * Keeps a worker going for one destination. Everything that it has in memory can be read again from the record logs, so one that ends by an error
 * that nothing handled is replaced by another, which goes on at its cursors. Others are not affected by it.
 */
export class SupervisedWorker {
  /** The one that is at work. */
  private worker: ExportWorker | undefined;
  /** How it was when the last one ended. */
  private lastStatus: DestinationStatus | undefined;
  private startedMs = 0;
  private failures = 0;
  private hasWorked = false;
  private restartTimer: Timer | undefined;
  private restarting: Promise<void> = Promise.resolve();
  private isStopping = false;

  constructor(private readonly deps: SupervisedWorkerDeps) {}

  get name(): string {
    return this.deps.destination.name;
  }

  /** Starts the first worker. One that cannot start is tried again like one that failed. */
  start(): Promise<void> {
    this.restarting = this.run();
    return this.restarting;
  }

  /** Tells the worker of something. Whoever is not there finds it in the state, or among open runs. */
  tell(news: (worker: ExportWorker) => void): void {
    const { worker } = this;
    if (worker === undefined) return;
    try {
      news(worker);
    } catch (error) {
      this.lost(worker, error);
    }
  }

  status(): DestinationStatus | undefined {
    return this.worker?.status() ?? this.lastStatus;
  }

  /** @returns whether everything was sent before the deadline */
  async flush(deadline: AbortSignal): Promise<boolean> {
    for (;;) {
      const worker = await this.whenThere(deadline);
      const isDrained = (await worker?.flush(deadline)) ?? false;
      // One that failed meanwhile leaves it to the next.
      if (isDrained || deadline.aborted || worker === this.worker) return isDrained;
    }
  }

  /** Sends a run again from its first record. @throws Error where there is no worker before the deadline */
  async resend(traceId: TraceId, deadline: AbortSignal): Promise<void> {
    const worker = await this.whenThere(deadline);
    if (worker === undefined) throw new Error(`exports to ${this.name} are just starting; try again in a moment`);
    await worker.resend(traceId);
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    this.isStopping = true;
    this.restartTimer?.cancel();
    await Promise.race([this.restarting, whenAborted(deadline)]);
    // A worker closes its destination itself.
    await (this.worker?.shutdown(deadline) ?? this.deps.destination.close());
  }

  private async whenThere(deadline: AbortSignal): Promise<ExportWorker | undefined> {
    while (this.worker === undefined && !deadline.aborted) await pause(this.deps.clock, LOOK_MS, deadline);
    return this.worker;
  }

  private lost(worker: ExportWorker, reason: unknown): void {
    if (worker !== this.worker) return;
    this.lastStatus = { ...worker.status(), state: 'waiting', lastError: reasonOf(reason) };
    this.worker = undefined;
    if (this.isStopping) return;
    const { clock, logger, retryPolicy } = this.deps;
    if (clock.monotonicMs() - this.startedMs >= HEALTHY_MS) this.failures = 0;
    this.failures += 1;
    const delayMs = retryPolicy.delayMs(this.failures, null);
    logger.error(
      { destination: this.name, error: reasonOf(reason), delayMs },
      this.hasWorked
        ? 'exports to a destination ended unexpectedly; restarting them where they stopped, no data is lost'
        : 'failed to start exports to a destination; retrying, no data is lost',
    );
    this.restartTimer = clock.after(delayMs, () => {
      this.restarting = this.takeOver(worker);
    });
  }

  /** Another worker takes over, once nothing is under way that the last one began. */
  private async takeOver(last: ExportWorker): Promise<void> {
    await last.halt().catch(() => undefined);
    if (!this.isStopping) await this.run();
  }

  /** Starts a worker, which hears of everything from now on. */
  private async run(): Promise<void> {
    const { create, openRuns, clock, logger } = this.deps;
    const worker: ExportWorker = create((error) => this.lost(worker, error));
    this.worker = worker;
    this.startedMs = clock.monotonicMs();
    try {
      openRuns.tell(worker);
      await worker.start();
    } catch (error) {
      this.lost(worker, error);
      return;
    }
    if (this.failures > 0 && worker === this.worker) {
      logger.info({ destination: this.name }, 'exports to a destination are running again');
    }
    this.hasWorked = true;
  }
}
