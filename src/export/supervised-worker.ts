import {
  type Clock,
  DEFAULT_RETRY_POLICY,
  pause,
  REQUEST_RETRY_POLICY,
  RetryPolicy,
  type Timer,
  whenAborted,
} from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import { lazy } from '../core/lazy.js';
import type { Logger } from '../core/logger.js';
import type { PassthroughLogReader } from '../log/passthrough-segments.js';
import type { TraceId } from '../record/telemetry-record.js';
import {
  DEFAULT_EXPORT_WORKER_OPTIONS,
  type Destination,
  type DestinationStatus,
  type ExportDeps,
  type ExportWorkerDeps,
} from './destination.js';
import { ExportWorker } from './export-worker.js';
import type { OpenedExport } from './open-destinations.js';
import { RedactedPassthrough } from './passthrough-forwarder.js';
import { JsonlRunMapper } from './run-mapper.js';
import type { OpenRuns } from './run-schedule.js';

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

  /** Notifies the worker of something. One that is not there finds it in the state, or among open runs. */
  notify(event: (worker: ExportWorker) => void): void {
    const { worker } = this;
    if (worker === undefined) return;
    try {
      event(worker);
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
      openRuns.notify(worker);
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

/** The parts of the program that workers are made with. */
export interface CreateWorkerDeps extends ExportDeps {
  readonly passthrough: PassthroughLogReader;
  /** What the engine is called beside its known names. */
  readonly engineNames: readonly string[];
  /** Memory that the mappers of a destination's open runs may take, as estimated. */
  readonly maxOpenBytes: number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** How long after the worker was made its mapper is loaded, in milliseconds. */
const LOAD_MAPPER_MS = 100;

/** Makes the worker of a destination. @param onFailed receives an error that ends it */
export function createWorker(
  opened: OpenedExport,
  deps: CreateWorkerDeps,
  onFailed: ExportWorkerDeps['onFailed'],
): ExportWorker {
  const { destination, mapping, isMapped = true, maxBacklogAgeMs } = opened;
  const mappers = lazy(async () => {
    const { mapperFactory } = await import('./mapping/otel-run-mapper.js');
    return mapperFactory(mapping);
  });
  // A start does not wait for it, and the first runs do not either: what they lag by at full load they catch up with late. Where it fails, the first run says why.
  if (isMapped) deps.clock.after(LOAD_MAPPER_MS, () => void mappers.get().catch(() => undefined));
  return new ExportWorker(
    {
      ...DEFAULT_EXPORT_WORKER_OPTIONS,
      eventHoldMs: mapping.eventHoldMs,
      maxBacklogAgeMs,
      maxOpenBytes: deps.maxOpenBytes,
    },
    {
      ...deps,
      destination,
      onFailed,
      passthrough: new RedactedPassthrough(deps.passthrough, mapping.redaction, deps),
      createMapper: async () => (isMapped ? (await mappers.get())() : new JsonlRunMapper()),
      createMapperNow: () => (isMapped ? mappers.value?.() : new JsonlRunMapper()),
      retryPolicy: new RetryPolicy(DEFAULT_RETRY_POLICY, deps.random),
      requestRetryPolicy: new RetryPolicy(REQUEST_RETRY_POLICY, deps.random),
    },
  );
}
