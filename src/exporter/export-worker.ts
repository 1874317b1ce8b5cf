import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Component } from '../component/component.js';
import type { TraceId } from '../record/ids.js';
import type { ForeignBatch } from '../record/record-batch.js';
import type { RunEvent, RunListener } from '../run/run-event.js';
import type { Appended, AppendListener } from '../sink/appended.js';
import type { ForeignListener } from '../sink/foreign-log.js';
import type { ExportCursor } from '../store/cursor-store.js';
import { AnsweredRuns } from './answered-runs.js';
import type { AppendedRun } from './appended-run.js';
import { BacklogKeeper } from './backlog-keeper.js';
import { createLaneSenders } from './create-lane-senders.js';
import { CursorSaver } from './cursor-saver.js';
import type { DestinationStatus } from './destination-status.js';
import { ExportLinger } from './export-linger.js';
import { ExportQueue } from './export-queue.js';
import { ExportRun } from './export-run.js';
import { ExportTurn } from './export-turn.js';
import type { ExportWorkerDeps } from './export-worker-deps.js';
import type { ExportWorkerOptions } from './export-worker-options.js';
import { ForeignForwarder } from './foreign-forwarder.js';
import type { LaneSenders } from './lane-senders.js';
import { RestSignal } from './rest-signal.js';
import type { ExportStretch } from './signal-progress.js';

/**
 * Sends every run to one destination, from the record logs and behind a cursor: each item at least once, twice only what
 * was under way when the process died. There is no queue of its own: whatever the worker holds in memory is bounded and can
 * be read again, so a destination that is down costs disk that is used anyway.
 */
export class ExportWorker implements Component, AppendListener, RunListener, ForeignListener {
  readonly name: string;
  /** Runs that are open, or not sent to their end. */
  private readonly runs = new Map<TraceId, ExportRun>();
  private readonly queue: ExportQueue;
  private readonly senders: LaneSenders;
  private readonly turn: ExportTurn;
  private readonly answered: AnsweredRuns;
  private readonly backlog: BacklogKeeper;
  private readonly foreign: ForeignForwarder | undefined;
  /** Runs that wait for a lane. */
  private readonly parked = new Set<ExportRun>();
  /** Runs whose turn failed, waiting for another try. */
  private readonly faulted = new Set<ExportRun>();
  private readonly lingering: ExportLinger;
  private lookAheadBytes = 0;
  private isInTurn = false;
  /** Monotonic time at which requests that were not full were sent for the last time. */
  private sentAllMs = 0;
  private isStarted = false;
  private isFlushing = false;
  private readonly stop = new AbortController();
  private readonly rest = new RestSignal();

  constructor(
    private readonly options: ExportWorkerOptions,
    private readonly deps: ExportWorkerDeps,
  ) {
    const { destination, clock } = deps;
    this.name = `export to ${destination.name}`;
    this.lingering = new ExportLinger(options.batchDelayMs, clock, (run) => this.wake(run));
    this.senders = createLaneSenders(options, deps, this.stop.signal, {
      onAnswered: (stretches) => this.answered.take(stretches),
      onGivenBack: (stretches) => this.onGivenBack(stretches),
      onProgress: () => this.pump(),
      onReady: () => this.onLaneReady(),
    });
    this.answered = new AnsweredRuns(
      this.runs,
      { senders: this.senders, saver: new CursorSaver(destination.name, deps, this.stop.signal), clock },
      {
        close: (run) => this.close(run),
        enqueue: (run) => this.enqueue(run),
        ended: (run) => {
          this.forget(run);
          this.pump();
        },
      },
    );
    this.queue = new ExportQueue(
      { maxOpen: options.maxOpenRuns, maxOpenBytes: options.maxOpenBytes, sliceMs: options.openSliceMs },
      { makeWay: (run) => this.makeWay(run), isStuck: (run) => this.senders.isStuck(run.progress) },
    );
    this.turn = new ExportTurn(options, deps, this.senders, {
      opened: (run) => this.queue.opened(run),
      close: (run) => this.close(run),
      tookLookAhead: (bytes) => {
        this.lookAheadBytes -= bytes;
      },
      wakeAfter: (run, delayMs) => clock.after(delayMs, () => this.wake(run)),
      isFlushing: () => this.isFlushing,
    });
    this.backlog = new BacklogKeeper(options.maxBacklogAgeMs, deps, this.runs, {
      release: (run) => this.release(run),
      resume: (run) => this.forget(run),
    });
    const { traces, logs } = this.senders;
    this.foreign =
      deps.foreign === undefined || destination.forward === undefined
        ? undefined
        : new ForeignForwarder(
            {
              ...deps,
              reader: deps.foreign,
              lanes: { traces: traces.lane, logs: logs.lane },
              onRest: () => this.rest.notify(),
            },
            this.stop.signal,
          );
  }

  /** Registers the destination, and takes up what it has not got. */
  async start(): Promise<void> {
    const { destination, cursors, clock } = this.deps;
    const nowUnixMs = clock.nowUnixMs();
    const sinceUnixMs = await cursors.register(destination.name, nowUnixMs);
    await this.foreign?.start(sinceUnixMs === nowUnixMs);
    for (const pending of await cursors.listPending(destination.name)) {
      this.backlog.takeUp(this.runFor(pending.traceId), pending, nowUnixMs);
    }
    this.isStarted = true;
    for (const run of this.runs.values()) this.wake(run);
    this.foreign?.wake();
    this.backlog.watch(this.stop.signal);
  }

  onAppended({ traceId, offset, lengthBytes, records }: Appended): void {
    // Asked for now: what they are made of is lent.
    this.take({ traceId, offset, lengthBytes, content: { records } });
  }

  /** Takes what became durable. */
  take(appended: AppendedRun): void {
    if (this.stop.signal.aborted) return;
    const run = this.runFor(appended.traceId);
    const nowMs = this.deps.clock.monotonicMs();
    run.knownBytes = Math.max(run.knownBytes, appended.lengthBytes);
    run.lastAppendMs = nowMs;
    run.times.note(appended.offset, appended.lengthBytes, nowMs);
    this.lookAheadBytes += run.keep(appended, this.options.maxLookAheadBytes - this.lookAheadBytes);
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
    this.backlog.noteSeen(run, event.run, this.deps.clock.nowUnixMs());
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
    await this.rest.until(() => !this.isInTurn && !this.senders.areSending);
    await this.foreign?.rest();
    for (const run of this.queue.openRuns) run.quietTimer?.cancel();
    await this.deps.destination.close();
  }

  status(): DestinationStatus {
    const { traces, logs } = this.senders;
    return {
      name: this.deps.destination.name,
      state: this.state,
      pendingRuns: this.runs.size,
      ...this.backlog.status(),
      signals: { traces: traces.lane.status, logs: logs.lane.status },
      lastError: this.senders.lastError,
    };
  }

  private get state(): DestinationStatus['state'] {
    if (this.stop.signal.aborted) return 'stopped';
    if (this.senders.areWaiting || this.foreign?.isWaiting === true) return 'waiting';
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
    const nowMs = this.deps.clock.monotonicMs();
    while (!this.stop.signal.aborted && !this.isInTurn && this.senders.haveRoom) {
      const run = this.queue.take(nowMs);
      if (run === undefined) break;
      if (this.isWorthATurn(run)) void this.takeTurn(run);
    }
    // While runs are read, requests fill up; but nothing waits for that longer than for more records.
    const isAll = !this.isInTurn || nowMs - this.sentAllMs >= this.options.batchDelayMs;
    if (isAll) this.sentAllMs = nowMs;
    this.senders.send(isAll);
    if (!this.isInTurn) this.rest.notify();
  }

  /** A run that needs only lanes that wait is parked; where no lane is left there is nothing to do until the next start. */
  private isWorthATurn(run: ExportRun): boolean {
    if (this.senders.areOff) {
      this.forget(run);
      return false;
    }
    if (run.isBehind || this.senders.canCatchUp(run.progress)) return true;
    if (run.hasMissed) this.parked.add(run);
    return false;
  }

  private async takeTurn(run: ExportRun): Promise<void> {
    this.isInTurn = true;
    run.isInTurn = true;
    try {
      const next = await this.turn.take(run);
      run.failedTurns = 0;
      run.isInTurn = false;
      if (run.isWokenAgain) run.isBehind = true;
      if (next === 'done') this.forget(run);
      else if (next === 'again' || run.isWokenAgain || run.hasMissed) this.queue.add(run);
      this.queue.hadTurn(run);
      await this.answered.endIfClosed(run);
    } catch (error) {
      run.isInTurn = false;
      this.fault(run, error);
    }
    run.isWokenAgain = false;
    // Exporting is not all that the process does: others get a turn of the event loop, too.
    await nextTurn();
    this.isInTurn = false;
    this.pump();
  }

  /** Items were passed over, or wait again: their run is taken up when the lane is ready. */
  private onGivenBack(stretches: readonly ExportStretch[]): void {
    for (const { progress } of stretches) {
      const run = this.runs.get(progress.traceId);
      if (run?.hasMissed === true) this.enqueue(run);
    }
  }

  private fault(run: ExportRun, error: unknown): void {
    run.failedTurns += 1;
    this.close(run);
    run.isBehind = true;
    this.faulted.add(run);
    const { destination, logger, clock, retryPolicy } = this.deps;
    if (run.failedTurns === 1) {
      const reason = error instanceof Error ? error.message : String(error);
      logger.error(
        { destination: destination.name, traceId: run.traceId, error: reason },
        'a run could not be exported; it is tried again',
      );
    }
    clock.after(retryPolicy.delayMs(run.failedTurns, null), () => this.wake(run));
  }

  private close(run: ExportRun): void {
    this.lookAheadBytes -= run.close();
    this.senders.drop(run.progress);
    this.queue.closed(run);
  }

  /** Closes a run for the sake of others. What it was about to do, it does when it is its turn again. */
  private makeWay(run: ExportRun): void {
    const hasMore = run.isBehind || (run.replay?.heldCount ?? 0) > 0;
    this.senders.passOver(run.progress);
    this.close(run);
    run.isBehind = hasMore;
    if (hasMore || run.hasMissed) this.enqueue(run);
  }

  /** Lets go of everything of a run that is in memory or under way, before its cursor is moved by hand. */
  private async release(run: ExportRun): Promise<ExportCursor | undefined> {
    const cursor = run.cursor ?? (await this.turn.load(run));
    this.close(run);
    this.senders.abandon(run.progress);
    if (cursor === undefined) this.forget(run);
    return cursor;
  }

  /** The run was sent to its end, or is not to be sent; where there is more to it, it goes on. */
  private forget(run: ExportRun): void {
    this.close(run);
    const { cursor } = run;
    if (cursor !== undefined && cursor.finishedAtBytes !== run.knownBytes && !this.senders.areOff) {
      run.isBehind = true;
      this.enqueue(run);
      return;
    }
    this.lingering.delete(run);
    this.parked.delete(run);
    this.runs.delete(run.traceId);
  }

  private async flushUntil(isDone: () => boolean, deadline: AbortSignal): Promise<boolean> {
    if (!this.isStarted) return false;
    this.isFlushing = true;
    this.lingering.release();
    for (const run of this.queue.openRuns) this.wake(run);
    this.foreign?.wake();
    await this.rest.until(isDone, deadline);
    this.isFlushing = false;
    return this.isDrained();
  }

  private isResting(): boolean {
    const isIdle = this.queue.isEmpty || !this.senders.haveRoom;
    return (
      !this.isInTurn &&
      isIdle &&
      this.senders.areResting &&
      this.lingering.isEmpty &&
      (this.foreign === undefined || this.foreign.isResting)
    );
  }

  private isDrained(): boolean {
    return (
      this.isResting() &&
      this.queue.isEmpty &&
      this.senders.areDrained &&
      this.parked.size === 0 &&
      this.faulted.size === 0 &&
      (this.foreign === undefined || this.foreign.isDrained)
    );
  }
}
