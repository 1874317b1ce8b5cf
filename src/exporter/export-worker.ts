import type { Component } from '../component/component.js';
import type { TraceId } from '../record/ids.js';
import type { ForeignBatch } from '../record/record-batch.js';
import type { RunEvent, RunListener } from '../run/run-event.js';
import type { Appended, AppendListener } from '../sink/appended.js';
import type { ForeignListener } from '../sink/foreign-log.js';
import type { ExportCursor } from '../store/cursor-store.js';
import { AnsweredRuns } from './answered-runs.js';
import { BacklogKeeper } from './backlog-keeper.js';
import { CursorSaver } from './cursor-saver.js';
import type { DestinationStatus } from './destination.js';
import { ExportRun } from './export-run.js';
import { ExportTurn, type TurnEnd } from './export-turn.js';
import type { ExportWorkerDeps, ExportWorkerOptions } from './export-worker-options.js';
import { ForeignForwarder } from './foreign-forwarder.js';
import { FinishedReplays } from './run-replay.js';
import { ExportLinger, ExportQueue, ExportSchedule } from './run-schedule.js';
import type { ExportStretch } from './signal-queue.js';
import { createLaneSenders, type LaneSenders } from './signal-senders.js';

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
  private readonly finished: FinishedReplays;
  private readonly backlog: BacklogKeeper;
  private readonly foreign: ForeignForwarder | undefined;
  private readonly schedule: ExportSchedule;
  private readonly lingering: ExportLinger;
  private isStarted = false;
  private isFlushing = false;
  private readonly stop = new AbortController();
  private readonly rest = new RestSignal();

  constructor(
    options: ExportWorkerOptions,
    private readonly deps: ExportWorkerDeps,
  ) {
    const { destination, clock } = deps;
    this.name = `export to ${destination.name}`;
    this.finished = new FinishedReplays(clock);
    this.lingering = new ExportLinger(options.batchDelayMs, clock, (run) => this.schedule.wake(run));
    this.senders = createLaneSenders(options, deps, this.stop.signal, {
      onAnswered: (stretches) => this.answered.take(stretches),
      onGivenBack: (stretches) => this.onGivenBack(stretches),
      onProgress: () => this.schedule.pump(),
      onReady: () => {
        this.schedule.resumeParked();
        this.foreign?.wake();
      },
    });
    this.answered = new AnsweredRuns(
      this.runs,
      {
        ...{ senders: this.senders, finished: this.finished, clock },
        saver: new CursorSaver(destination.name, deps, this.stop.signal),
      },
      {
        close: (run) => this.close(run),
        enqueue: (run) => this.schedule.enqueue(run),
        ended: (run) => {
          this.forget(run);
          this.schedule.pump();
        },
      },
    );
    this.queue = new ExportQueue(
      { maxOpen: options.maxOpenRuns, maxOpenBytes: options.maxOpenBytes, sliceMs: options.openSliceMs },
      { makeWay: (run) => this.makeWay(run), isStuck: (run) => this.senders.isStuck(run.progress) },
    );
    this.turn = new ExportTurn(options, deps, this.senders, this.finished, {
      opened: (run) => this.queue.opened(run),
      close: (run) => this.close(run),
      wakeAfter: (run, delayMs) => clock.after(delayMs, () => this.schedule.wake(run)),
      isFlushing: () => this.isFlushing,
    });
    this.schedule = new ExportSchedule(
      { ...deps, queue: this.queue, senders: this.senders },
      options.batchDelayMs,
      {
        takeTurn: (run) => this.takeTurn(run),
        close: (run) => this.close(run),
        forget: (run) => this.forget(run),
        rested: () => this.rest.notify(),
      },
      this.stop.signal,
    );
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
    this.schedule.open();
    for (const run of this.runs.values()) this.schedule.wake(run);
    this.foreign?.wake();
    this.backlog.watch(this.stop.signal);
  }

  onAppended({ traceId, lengthBytes }: Pick<Appended, 'traceId' | 'lengthBytes'>): void {
    if (this.stop.signal.aborted) return;
    const run = this.runFor(traceId);
    const nowMs = this.deps.clock.monotonicMs();
    run.knownBytes = Math.max(run.knownBytes, lengthBytes);
    run.lastAppendMs = nowMs;
    run.times.note(lengthBytes, nowMs);
    if (this.isFlushing) this.schedule.wake(run);
    else this.lingering.add(run);
  }

  /** A record log is looked after elsewhere: what is under way is still sent, and nothing else. */
  drop(traceId: TraceId): void {
    this.finished.drop(traceId);
    const run = this.runs.get(traceId);
    if (run === undefined) return;
    run.isDropped = true;
    this.close(run);
    this.senders.abandon(run.progress);
    this.lingering.delete(run);
    this.schedule.drop(run);
    this.runs.delete(traceId);
    this.schedule.pump();
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
    this.schedule.wake(run);
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
    await this.rest.until(() => !this.schedule.isInTurn && !this.senders.areSending);
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

  private async takeTurn(run: ExportRun): Promise<TurnEnd> {
    const end = await this.turn.take(run);
    await this.answered.endIfClosed(run);
    return end;
  }

  /** Items were passed over, or wait again: their run is taken up when the lane is ready. */
  private onGivenBack(stretches: readonly ExportStretch[]): void {
    for (const { progress } of stretches) {
      const run = this.runs.get(progress.traceId);
      if (run?.hasMissed === true) this.schedule.enqueue(run);
    }
  }

  private close(run: ExportRun): void {
    run.close();
    this.senders.drop(run.progress);
    this.queue.closed(run);
  }

  /** Closes a run for the sake of others. What it was about to do, it does when it is its turn again. */
  private makeWay(run: ExportRun): void {
    const hasMore = run.isBehind || (run.replay?.heldCount ?? 0) > 0;
    this.senders.passOver(run.progress);
    this.close(run);
    run.isBehind = hasMore;
    if (hasMore || run.hasMissed) this.schedule.enqueue(run);
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
      this.schedule.enqueue(run);
      return;
    }
    this.lingering.delete(run);
    this.schedule.drop(run);
    this.runs.delete(run.traceId);
  }

  private async flushUntil(isDone: () => boolean, deadline: AbortSignal): Promise<boolean> {
    if (!this.isStarted) return false;
    this.isFlushing = true;
    this.lingering.release();
    for (const run of this.queue.openRuns) this.schedule.wake(run);
    this.foreign?.wake();
    await this.rest.until(isDone, deadline);
    this.isFlushing = false;
    return this.isDrained();
  }

  private isResting(): boolean {
    const isForeignResting = this.foreign === undefined || this.foreign.isResting;
    return this.schedule.isResting && this.senders.areResting && this.lingering.isEmpty && isForeignResting;
  }

  private isDrained(): boolean {
    const isForeignDrained = this.foreign === undefined || this.foreign.isDrained;
    return this.isResting() && this.schedule.isDrained && this.senders.areDrained && isForeignDrained;
  }
}

/** Wakes whoever waits for work to come to rest; each looks for itself whether it has. */
export class RestSignal {
  private waiters: (() => void)[] = [];

  /** Something came to rest, or somebody waits no longer. */
  notify(): void {
    const { waiters } = this;
    this.waiters = [];
    for (const resolve of waiters) resolve();
  }

  /** Resolves as soon as something holds, or `deadline` aborts. */
  async until(holds: () => boolean, deadline?: AbortSignal): Promise<void> {
    const onAbort = () => this.notify();
    deadline?.addEventListener('abort', onAbort);
    while (!holds() && deadline?.aborted !== true) {
      await new Promise<void>((resolve) => this.waiters.push(resolve));
    }
    deadline?.removeEventListener('abort', onAbort);
  }
}
