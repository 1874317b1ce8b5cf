import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Component } from '../component/component.js';
import type { TraceId } from '../record/ids.js';
import type { ForeignBatch, Signal } from '../record/record-batch.js';
import type { RunEvent, RunListener } from '../run/run-event.js';
import type { ForeignListener } from '../sink/foreign-log.js';
import type { Appended, AppendListener } from '../sink/appended.js';
import type { DestinationStatus } from './destination-status.js';
import { ExportLane } from './export-lane.js';
import { ExportLinger } from './export-linger.js';
import { ExportQueue } from './export-queue.js';
import { ExportRun } from './export-run.js';
import { ExportTurn } from './export-turn.js';
import type { ExportWorkerDeps } from './export-worker-deps.js';
import type { ExportWorkerOptions } from './export-worker-options.js';
import { ForeignForwarder } from './foreign-forwarder.js';

/**
 * Sends every run to one destination, from the record logs and behind a cursor: in order for each signal, each item at
 * least once, twice only what was under way when the process died. There is no queue of its own: whatever the worker holds
 * in memory is bounded and can be read again, so a destination that is down costs disk that is used anyway.
 */
export class ExportWorker implements Component, AppendListener, RunListener, ForeignListener {
  readonly name: string;
  /** Runs that are open, or not sent to their end. */
  private readonly runs = new Map<TraceId, ExportRun>();
  private readonly queue: ExportQueue;
  private readonly lanes: Readonly<Record<Signal, ExportLane>>;
  private readonly turn: ExportTurn;
  private readonly foreign: ForeignForwarder | undefined;
  /** Runs that wait for a lane. */
  private readonly parked = new Set<ExportRun>();
  /** Runs whose turn failed, waiting for another try. */
  private readonly faulted = new Set<ExportRun>();
  private readonly lingering: ExportLinger;
  private lookAheadBytes = 0;
  private activeTurns = 0;
  private isStarted = false;
  private isFlushing = false;
  private readonly stop = new AbortController();
  private restWaiters: (() => void)[] = [];

  constructor(
    private readonly options: ExportWorkerOptions,
    private readonly deps: ExportWorkerDeps,
  ) {
    const { destination, clock, logger, retryPolicy: policy } = deps;
    this.name = `export to ${destination.name}`;
    this.lingering = new ExportLinger(options.batchDelayMs, clock, (run) => this.wake(run));
    const lane = (signal: Signal) =>
      new ExportLane(signal, destination.signals.includes(signal), destination.name, { clock, logger, policy }, () =>
        this.onLaneReady(),
      );
    this.lanes = { traces: lane('traces'), logs: lane('logs') };
    this.queue = new ExportQueue({ maxOpen: options.maxOpenRuns, sliceMs: options.openSliceMs }, (run) => {
      run.passOverQueued();
      this.close(run);
    });
    this.turn = new ExportTurn(options, deps, this.lanes, this.stop.signal, {
      opened: (run) => this.queue.opened(run),
      close: (run) => this.close(run),
      tookLookAhead: (bytes) => {
        this.lookAheadBytes -= bytes;
      },
      wakeAfter: (run, delayMs) => clock.after(delayMs, () => this.wake(run)),
      isFlushing: () => this.isFlushing,
    });
    this.foreign =
      deps.foreign === undefined || destination.forward === undefined
        ? undefined
        : new ForeignForwarder(
            { ...deps, reader: deps.foreign, lanes: this.lanes, onRest: () => this.onRest() },
            this.stop.signal,
          );
  }

  /** Registers the destination, and takes up what it has not got. */
  async start(): Promise<void> {
    const { destination, cursors, clock } = this.deps;
    const nowUnixMs = clock.nowUnixMs();
    const sinceUnixMs = await cursors.register(destination.name, nowUnixMs);
    await this.foreign?.start(sinceUnixMs === nowUnixMs);
    for (const traceId of await cursors.listPending(destination.name)) this.runFor(traceId);
    this.isStarted = true;
    for (const run of this.runs.values()) this.wake(run);
    this.foreign?.wake();
  }

  onAppended(appended: Appended): void {
    if (this.stop.signal.aborted) return;
    const run = this.runFor(appended.traceId);
    run.knownBytes = Math.max(run.knownBytes, appended.lengthBytes);
    run.lastAppendMs = this.deps.clock.monotonicMs();
    this.lookAheadBytes += run.keep(appended.records, this.options.maxLookAheadBytes - this.lookAheadBytes);
    if (this.isFlushing) this.wake(run);
    else this.lingering.add(run);
  }

  onForeign(_batches: readonly ForeignBatch[]): void {
    if (this.isStarted && !this.stop.signal.aborted) this.foreign?.wake();
  }

  async onRunEvent(event: RunEvent): Promise<void> {
    if (this.stop.signal.aborted || event.type === 'invocationEnded') return;
    const run = this.runFor(event.run.traceId);
    run.knownBytes = Math.max(run.knownBytes, event.run.logBytes);
    if (event.type === 'finished') run.finished = event.run;
    this.wake(run);
  }

  /**
   * Sends what there is, held spans included, and tries again what fails, until everything is sent or `deadline` aborts.
   * Whether everything is sent.
   */
  async flush(deadline: AbortSignal): Promise<boolean> {
    return this.flushUntil(() => this.isDrained(), deadline);
  }

  /** Sends what can be sent at once; what the destination does not take now stays on disk for the next start. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    await this.flushUntil(() => this.isResting(), deadline);
    this.stop.abort();
    this.lingering.stop();
    while (this.activeTurns > 0) await this.nextRest();
    await this.foreign?.rest();
    for (const run of this.queue.openRuns) run.quietTimer?.cancel();
    await this.deps.destination.close();
  }

  status(): DestinationStatus {
    const { traces, logs } = this.lanes;
    let lagBytes = 0;
    for (const run of this.runs.values()) lagBytes += run.lagBytes;
    return {
      name: this.deps.destination.name,
      state: this.state,
      pendingRuns: this.runs.size,
      lagBytes,
      signals: { traces: traces.status, logs: logs.status },
      lastError: traces.lastError ?? logs.lastError,
    };
  }

  private get state(): DestinationStatus['state'] {
    if (this.stop.signal.aborted) return 'stopped';
    if (this.lanes.traces.state === 'waiting' || this.lanes.logs.state === 'waiting') return 'waiting';
    return this.isDrained() ? 'idle' : 'sending';
  }

  private runFor(traceId: TraceId): ExportRun {
    let run = this.runs.get(traceId);
    if (run === undefined) {
      run = new ExportRun(traceId, this.deps.clock.monotonicMs());
      this.runs.set(traceId, run);
    }
    return run;
  }

  /** Gives a run a turn. */
  private wake(run: ExportRun): void {
    run.isBehind = true;
    this.enqueue(run);
    this.pump();
  }

  private enqueue(run: ExportRun): void {
    this.parked.delete(run);
    this.faulted.delete(run);
    if (run.isInTurn) run.isWokenAgain = true;
    else this.queue.add(run);
  }

  private onLaneReady(): void {
    for (const run of [...this.parked]) this.enqueue(run);
    this.pump();
    this.foreign?.wake();
  }

  private pump(): void {
    if (!this.isStarted) return;
    while (!this.stop.signal.aborted && this.activeTurns < this.options.maxConcurrentRuns) {
      const run = this.queue.take(this.deps.clock.monotonicMs());
      if (run === undefined) break;
      if (!this.isWorthATurn(run)) continue;
      this.activeTurns += 1;
      run.isInTurn = true;
      void this.takeTurn(run);
    }
    if (this.activeTurns === 0) this.onRest();
  }

  /** A run that needs only lanes that wait is parked; where no lane is left there is nothing to do until the next start. */
  private isWorthATurn(run: ExportRun): boolean {
    const lanes = Object.values(this.lanes).filter((lane) => lane.state !== 'off');
    if (lanes.length === 0) {
      this.forget(run);
      return false;
    }
    const isNeeded = ({ signal }: ExportLane) =>
      run.isBehind || run.missed.has(signal) || run.queues[signal].length > 0;
    if (lanes.some((lane) => lane.state === 'ready' && isNeeded(lane))) return true;
    if (lanes.some(isNeeded)) this.parked.add(run);
    return false;
  }

  private async takeTurn(run: ExportRun): Promise<void> {
    try {
      const next = await this.turn.take(run);
      run.failedTurns = 0;
      run.isInTurn = false;
      const isWokenAgain = run.isWokenAgain;
      run.isWokenAgain = false;
      if (isWokenAgain) run.isBehind = true;
      if (next === 'done') this.forget(run);
      // A lane may have become ready during the turn: whether a blocked run is parked is seen when it is taken up.
      else if (next !== 'idle' || isWokenAgain) this.queue.add(run);
    } catch (error) {
      run.isInTurn = false;
      run.isWokenAgain = false;
      this.fault(run, error);
    }
    // Sending is not all that the process does: others get a turn of the event loop, too.
    await nextTurn();
    this.activeTurns -= 1;
    this.pump();
  }

  private fault(run: ExportRun, error: unknown): void {
    run.failedTurns += 1;
    run.isBehind = true;
    this.close(run);
    this.faulted.add(run);
    if (run.failedTurns === 1) {
      this.deps.logger.error(
        {
          destination: this.deps.destination.name,
          traceId: run.traceId,
          error: error instanceof Error ? error.message : String(error),
        },
        'a run could not be exported; it is tried again',
      );
    }
    this.deps.clock.after(this.deps.retryPolicy.delayMs(run.failedTurns, null), () => this.wake(run));
  }

  private close(run: ExportRun): void {
    this.lookAheadBytes -= run.close();
    this.queue.closed(run);
  }

  /** The run was sent to its end, or is not to be sent. */
  private forget(run: ExportRun): void {
    this.close(run);
    const finishedAt = run.cursor?.finishedAtBytes ?? null;
    if (finishedAt !== null && run.knownBytes > finishedAt) {
      // More came while the last items were sent.
      run.isBehind = true;
      this.queue.add(run);
      return;
    }
    this.lingering.delete(run);
    this.runs.delete(run.traceId);
  }

  private async flushUntil(isDone: () => boolean, deadline: AbortSignal): Promise<boolean> {
    if (!this.isStarted) return false;
    this.isFlushing = true;
    this.lingering.release();
    for (const run of this.queue.openRuns) this.wake(run);
    this.foreign?.wake();
    const onAbort = () => this.onRest();
    deadline.addEventListener('abort', onAbort);
    while (!isDone() && !deadline.aborted) await this.nextRest();
    deadline.removeEventListener('abort', onAbort);
    this.isFlushing = false;
    return this.isDrained();
  }

  private isResting(): boolean {
    return (
      this.activeTurns === 0 &&
      this.queue.isEmpty &&
      this.lingering.isEmpty &&
      (this.foreign === undefined || this.foreign.isResting)
    );
  }

  private isDrained(): boolean {
    return (
      this.isResting() &&
      this.parked.size === 0 &&
      this.faulted.size === 0 &&
      (this.foreign === undefined || this.foreign.isDrained)
    );
  }

  private nextRest(): Promise<void> {
    return new Promise((resolve) => this.restWaiters.push(resolve));
  }

  private onRest(): void {
    const waiters = this.restWaiters;
    this.restWaiters = [];
    for (const resolve of waiters) resolve();
  }
}
