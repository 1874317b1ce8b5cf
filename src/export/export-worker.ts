import type { Clock, Timer } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Component } from '../core/lifecycle.js';
import type { Appended, AppendListener } from '../log/appended.js';
import type { PassthroughListener } from '../log/passthrough-segments.js';
import type { PassthroughBatch, Signal } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { RunEvent } from '../run/run-event.js';
import type { ExportCursor } from '../storage/cursor-store.js';
import { BacklogKeeper } from './backlog-keeper.js';
import type { DestinationStatus, ExportWorkerDeps, ExportWorkerOptions } from './destination.js';
import { CursorSaver, ExportRun } from './export-run.js';
import { PassthroughForwarder } from './passthrough-forwarder.js';
import { RunReader } from './run-reader.js';
import { RunSchedule } from './run-schedule.js';
import { SignalBreaker } from './signal-breaker.js';
import { type RunBatch, SignalQueue } from './signal-queue.js';
import { SignalSender } from './signal-sender.js';

/**
 * Sends every run to one destination, from the record logs and behind a cursor: each item at least once, twice only what
 * was under way when the process died. There is no queue of its own: what the worker has in memory is bounded and can
 * be read again, so a destination that is down costs disk that is used anyway.
 *
 * It is a chain: `RunReader` reads and maps the log of the run whose turn it is (`RunSchedule`), `SignalQueue` collects items
 * into requests, `SignalSender` sends them and tries again, `CursorSaver` saves how far that got.
 *
 * An error that none of them handled ends the worker: `onFailed` is notified, and another one goes on at its cursors.
 */
export class ExportWorker implements Component, AppendListener, PassthroughListener {
  readonly name: string;
  /** Runs that are open, or not sent to their end. */
  private readonly runs = new Map<TraceId, ExportRun>();
  private readonly schedule: RunSchedule;
  private readonly reader: RunReader;
  private readonly senders: Readonly<Record<Signal, SignalSender>>;
  private readonly bothSenders: readonly SignalSender[];
  private readonly saver: CursorSaver;
  private readonly backlog: BacklogKeeper;
  private readonly passthrough: PassthroughForwarder | undefined;
  /** Runs that got records and wait a moment for more, so that records that come close together share a request. */
  private readonly lingering = new Set<ExportRun>();
  private lingerTimer: Timer | undefined;
  /** The loop that reads; `undefined` before the start. */
  private reading: Promise<void> | undefined;
  private inTurn: ExportRun | undefined;
  /** Monotonic time at which requests that were not full were sent for the last time. */
  private sentAllMs = 0;
  private isFlushing = false;
  private readonly stop = new AbortController();
  private readonly rest = new RestSignal();
  /** Lets the loop look again whether there is something to do. */
  private resume: () => void = () => {};

  private readonly deps: ExportWorkerDeps;

  constructor(
    private readonly options: ExportWorkerOptions,
    private readonly given: ExportWorkerDeps,
  ) {
    const onFailed = (error: unknown) => this.fail(error);
    const deps = { ...given, clock: new GuardedClock(given.clock, onFailed), onFailed };
    const { destination } = deps;
    this.deps = deps;
    this.name = `export to ${destination.name}`;
    this.senders = { traces: this.createSender('traces'), logs: this.createSender('logs') };
    this.bothSenders = Object.values(this.senders);
    this.schedule = new RunSchedule(options);
    this.reader = new RunReader(options.eventHoldMs, deps);
    this.saver = new CursorSaver(destination.name, deps, this.stop.signal);
    this.backlog = new BacklogKeeper(options.maxBacklogAgeMs, deps, this.runs, {
      release: (run) => this.release(run),
      resume: (run) => this.forget(run),
    });
    if (deps.passthrough === undefined || destination.forward === undefined) return;
    const breakers = { traces: this.senders.traces.breaker, logs: this.senders.logs.breaker };
    this.passthrough = new PassthroughForwarder(
      { ...deps, reader: deps.passthrough, breakers, onRest: () => this.rest.notify() },
      this.stop.signal,
    );
  }

  /** Registers the destination, and takes up what it has not got. */
  async start(): Promise<void> {
    const { destination, cursors, clock } = this.deps;
    const nowUnixMs = clock.nowUnixMs();
    const sinceUnixMs = await cursors.register(destination.name, nowUnixMs);
    await this.passthrough?.start(sinceUnixMs === nowUnixMs);
    for (const pending of await cursors.listPending(destination.name)) {
      this.backlog.takeUp(this.runFor(pending.traceId), pending, nowUnixMs);
    }
    for (const run of this.runs.values()) this.wake(run);
    this.passthrough?.wake();
    this.backlog.watch(this.stop.signal);
    this.reading = this.readUntilStopped().catch((error: unknown) => this.fail(error));
  }

  /** @param appended what was appended, or only how long the log is */
  onAppended(appended: Appended | Pick<Appended, 'traceId' | 'lengthBytes'>): void {
    const { traceId, lengthBytes } = appended;
    // A run whose log records all wait for their spans has nothing in its log yet: with its first line it begins.
    if (this.stop.signal.aborted || lengthBytes === 0) return;
    const { batchDelayMs } = this.options;
    const isNew = !this.runs.has(traceId);
    const run = this.runFor(traceId);
    const nowMs = this.deps.clock.monotonicMs();
    run.knownBytes = Math.max(run.knownBytes, lengthBytes);
    if ('pieces' in appended) this.takeLive(run, appended, isNew);
    run.lastAppendMs = nowMs;
    run.times.note(lengthBytes, nowMs);
    if (this.isFlushing || batchDelayMs === 0) {
      this.wake(run);
      return;
    }
    this.lingering.add(run);
    this.lingerTimer ??= this.deps.clock.after(batchDelayMs, () => this.endLinger());
  }

  /** Takes what was appended while it is at hand, where the run has kept up and there is room for what that gives. */
  private takeLive(run: ExportRun, appended: Appended, isNew: boolean): void {
    if (this.reading === undefined || run.isGone || this.isOff || !this.hasRoom) return;
    try {
      const items = this.reader.takeLive(run, appended, isNew && this.schedule.mayOpen);
      if (items === undefined) return;
      run.enqueue(items);
      this.schedule.hadTurn(run, this.deps.clock.monotonicMs());
      // So much was due at once that it stopped on the way: it catches up before more comes.
      if (run.isUnread) this.wake(run);
      for (const sender of this.bothSenders) sender.send(false);
    } catch (error) {
      this.fault(run, error);
    }
  }

  /** A record log is looked after elsewhere: what is under way is still sent, and nothing else. */
  drop(traceId: TraceId): void {
    this.reader.drop(traceId);
    const run = this.runs.get(traceId);
    if (run === undefined) return;
    run.abandon();
    this.remove(run);
    this.resume();
  }

  /** Sends a run again from its first record, whatever the destination has got of it. What is under way of it is not waited for. */
  async resend(traceId: TraceId): Promise<void> {
    const before = this.runs.get(traceId);
    this.drop(traceId);
    const run = this.runFor(traceId);
    run.knownBytes = before?.knownBytes ?? 0;
    run.finished = before?.finished;
    const { name: destination } = this.deps.destination;
    const resentUnixMs = this.deps.clock.nowUnixMs();
    run.cursor = { destination, traceId, tracesOffset: 0, logsOffset: 0, finishedAtBytes: null, resentUnixMs };
    run.times.note(run.knownBytes, this.deps.clock.monotonicMs());
    await this.saver.save([run.cursor]);
    this.wake(run);
  }

  onPassthrough(_batches: readonly PassthroughBatch[]): void {
    if (this.reading !== undefined && !this.stop.signal.aborted) this.passthrough?.wake();
  }

  onRunEvent(event: RunEvent): void {
    if (this.stop.signal.aborted || event.type === 'invocationEnded') return;
    const run = this.runFor(event.run.traceId);
    run.knownBytes = Math.max(run.knownBytes, event.run.logBytes);
    this.backlog.noteSeen(run, event.run, this.deps.clock.nowUnixMs());
    if (event.type === 'finished') run.finished = event.run;
    this.wake(run);
  }

  /**
   * Sends what there is, buffered spans included, and tries again what fails, until everything is sent or `deadline` aborts.
   * Whether everything is sent.
   */
  async flush(deadline: AbortSignal): Promise<boolean> {
    return this.flushUntil(() => this.isDrained, deadline);
  }

  /** Sends what can be sent at once; what the destination does not take now stays on disk for the next start. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    await this.flushUntil(() => this.isResting, deadline);
    await this.halt();
    await this.deps.destination.close();
  }

  /** Breaks off what is under way, and ends without a word to the destination. */
  async halt(): Promise<void> {
    this.stop.abort();
    this.lingerTimer?.cancel();
    this.resume();
    await this.reading;
    await this.rest.until(() => !this.bothSenders.some((sender) => sender.isSending));
    await this.passthrough?.rest();
    for (const run of this.runs.values()) run.quietTimer?.cancel();
  }

  status(): DestinationStatus {
    const { traces, logs } = this.senders;
    return {
      name: this.deps.destination.name,
      state: this.state,
      pendingRuns: this.runs.size,
      ...this.backlog.status(),
      signals: { traces: traces.breaker.status, logs: logs.breaker.status },
      lastError: traces.breaker.lastError ?? logs.breaker.lastError,
    };
  }

  private get state(): DestinationStatus['state'] {
    if (this.stop.signal.aborted) return 'stopped';
    if (this.bothSenders.some((sender) => sender.isWaiting) || this.passthrough?.isWaiting === true) return 'waiting';
    return this.isDrained ? 'idle' : 'sending';
  }

  /** Returns whether no signal is sent any more before the next start. */
  private get isOff(): boolean {
    return this.bothSenders.every(({ breaker }) => breaker.state === 'off');
  }

  /** Returns whether there is room for more items: some signal is taken now, and none that is has its queue full. */
  private get hasRoom(): boolean {
    if (this.isOff) return true;
    let isTaken = false;
    for (const { breaker, queue } of this.bothSenders) {
      if (breaker.state !== 'ready') continue;
      if (queue.count >= queue.maxItems) return false;
      isTaken = true;
    }
    return isTaken;
  }

  /** Returns whether nothing can be done before a pause is over, or something comes. */
  private get isResting(): boolean {
    return (
      this.inTurn === undefined &&
      (this.schedule.isEmpty || !this.hasRoom) &&
      this.lingering.size === 0 &&
      this.bothSenders.every((sender) => sender.isResting) &&
      this.passthrough?.isResting !== false
    );
  }

  /** Returns whether everything was sent that was there. */
  private get isDrained(): boolean {
    if (!this.isResting || !this.schedule.isEmpty || this.passthrough?.isDrained === false) return false;
    if (!this.bothSenders.every((sender) => sender.isDrained)) return false;
    for (const run of this.runs.values()) if (run.isEvicted || run.failedTurns > 0) return false;
    return true;
  }

  private createSender(signal: Signal): SignalSender {
    const { destination, clock, logger, retryPolicy: policy, requestRetryPolicy: retryPolicy, onFailed } = this.deps;
    const { maxBatchItems, maxInFlight, maxWaitingItems } = this.options;
    const isAsked = destination.signals.includes(signal);
    const onReady = () => this.onReady();
    const breaker = new SignalBreaker(signal, isAsked, destination.name, { clock, logger, policy }, onReady);
    return new SignalSender(new SignalQueue(breaker, maxWaitingItems), {
      destination,
      clock,
      retryPolicy,
      maxBatchItems,
      maxInFlight: Math.min(maxInFlight, destination.maxInFlight ?? maxInFlight),
      onAnswered: (batches) => this.onAnswered(batches).catch(onFailed),
      onFailed,
      onSettled: () => {
        this.send();
        this.resume();
        this.rest.notify();
      },
      stop: this.stop.signal,
    });
  }

  private runFor(traceId: TraceId): ExportRun {
    let run = this.runs.get(traceId);
    if (run === undefined) {
      const queues = { traces: this.senders.traces.queue, logs: this.senders.logs.queue };
      run = new ExportRun(traceId, queues, this.deps.clock.monotonicMs());
      this.runs.set(traceId, run);
    }
    return run;
  }

  /** There is something to do for a run. */
  private wake(run: ExportRun): void {
    run.isBehind = true;
    this.enqueue(run);
  }

  /** A run that is in its turn comes to the end of the line when that is over. */
  private enqueue(run: ExportRun): void {
    if (run.isGone || run.isInTurn) return;
    this.schedule.add(run);
    this.resume();
  }

  private endLinger(): void {
    this.lingerTimer?.cancel();
    this.lingerTimer = undefined;
    const runs = [...this.lingering];
    this.lingering.clear();
    // What they gave has waited long enough, too.
    this.sentAllMs = Number.NEGATIVE_INFINITY;
    for (const run of runs) this.wake(run);
  }

  /** The loop of the destination: gives one run after the other its turn, as long as there is room for what that gives. */
  private async readUntilStopped(): Promise<void> {
    while (!this.stop.signal.aborted) {
      this.inTurn = this.nextRun();
      this.send();
      if (this.inTurn === undefined) {
        this.rest.notify();
        await new Promise<void>((resolve) => {
          this.resume = resolve;
        });
      } else {
        await this.takeTurn(this.inTurn);
        // Exporting is not all that the process does: answers come first.
        await this.deps.turns.next();
      }
    }
    this.inTurn = undefined;
  }

  /** Returns the next run that is worth a turn; where no signal is taken any more there is nothing to do until the next start. */
  private nextRun(): ExportRun | undefined {
    const nowMs = this.deps.clock.monotonicMs();
    while (this.hasRoom) {
      const run = this.schedule.next(nowMs);
      if (run === undefined) return undefined;
      if (this.isOff) this.forget(run);
      // What was evicted and cannot be sent waits for `onReady`.
      else if (run.isBehind || run.canCatchUp) return run;
    }
    return undefined;
  }

  /** Sends what may be sent. While runs are read, and while they get records, requests fill up; but nothing waits for that longer than for more records. */
  private send(): void {
    const nowMs = this.deps.clock.monotonicMs();
    const isQuiet = this.inTurn === undefined && this.lingering.size === 0;
    const isAll = isQuiet || nowMs - this.sentAllMs >= this.options.batchDelayMs;
    if (isAll) this.sentAllMs = nowMs;
    for (const sender of this.bothSenders) sender.send(isAll);
  }

  /** One turn of a run: a piece of its log is read, and what that gives waits for requests. */
  private async takeTurn(run: ExportRun): Promise<void> {
    run.isInTurn = true;
    run.isBehind = false;
    // What it got until now waits no longer.
    this.lingering.delete(run);
    try {
      const reading = await this.reader.read(run, this.isFlushing);
      if (run.isGone) run.abandon();
      else if (reading === undefined) this.forget(run);
      else {
        run.enqueue(reading.items, reading.closingAtBytes);
        run.isBehind ||= reading.hasMore;
        if (reading.quietInMs !== undefined) {
          run.quietTimer?.cancel();
          run.quietTimer = this.deps.clock.after(reading.quietInMs, () => this.wake(run));
        }
        await this.endIfAnswered(run);
      }
      run.failedTurns = 0;
    } catch (error) {
      this.fault(run, error);
    }
    run.isInTurn = false;
    if (run.isGone) return;
    if (run.failedTurns === 0 && (run.isBehind || run.isEvicted)) this.schedule.add(run);
    this.schedule.hadTurn(run, this.deps.clock.monotonicMs());
  }

  private fault(run: ExportRun, error: unknown): void {
    run.failedTurns += 1;
    this.close(run);
    const { destination, logger, clock, retryPolicy } = this.deps;
    if (run.failedTurns === 1 && !run.isGone) {
      logger.error(
        { destination: destination.name, traceId: run.traceId, error: reasonOf(error) },
        'failed to export a run; retrying',
      );
    }
    clock.after(retryPolicy.delayMs(run.failedTurns, null), () => this.wake(run));
  }

  /**
   * The last link: moves cursors after what was answered. Resolves when that is saved: until then no further request
   * replaces the one that was answered.
   */
  private async onAnswered(batches: readonly RunBatch[]): Promise<void> {
    for (const batch of batches) batch.progress.answered(batch);
    // A signal that was turned off leaves runs that wait for nothing more.
    const isCleared = this.bothSenders.map(({ breaker, queue }) => breaker.state === 'off' && queue.clear());
    const answered = batches.flatMap(({ progress }) => this.runs.get(progress.traceId) ?? []);
    const runs = new Set(isCleared.includes(true) ? this.runs.values() : answered);
    for (const run of runs) run.progressMs ??= this.deps.clock.monotonicMs();
    await this.saver.save([...runs].flatMap((run) => run.advance() ?? []));
    for (const run of runs) await this.endIfAnswered(run);
  }

  /** Takes down that a run is sent to its end, once its last items were answered. */
  private async endIfAnswered(run: ExportRun): Promise<void> {
    const { cursor, closingAtBytes: logBytes, replay, memoryBytes } = run;
    if (logBytes === undefined || cursor === undefined || run.isOutstanding) return;
    this.close(run);
    if (run.isEvicted) {
      run.isBehind ||= run.knownBytes > logBytes;
      this.enqueue(run);
      return;
    }
    run.cursor = { ...cursor, tracesOffset: logBytes, logsOffset: logBytes, finishedAtBytes: logBytes };
    run.settledBytes = logBytes;
    if (replay?.readOffset === logBytes) this.reader.keep(run.traceId, replay, memoryBytes);
    await this.saver.save([run.cursor]);
    this.forget(run);
  }

  /** A signal waits for nothing any more: what was evicted meanwhile is read again. */
  private onReady(): void {
    for (const run of this.runs.values()) if (run.canCatchUp) this.enqueue(run);
    this.passthrough?.wake();
    this.resume();
  }

  private close(run: ExportRun): void {
    run.close();
    this.schedule.closed(run);
  }

  /** Lets go of everything of a run that is in memory or under way, before its cursor is moved by hand. */
  private async release(run: ExportRun): Promise<ExportCursor | undefined> {
    const cursor = run.cursor ?? (await this.reader.load(run));
    run.abandon();
    this.schedule.closed(run);
    if (cursor === undefined) this.forget(run);
    return cursor;
  }

  /** The run was sent to its end, or is not to be sent; where there is more to it, it goes on. */
  private forget(run: ExportRun): void {
    if (run.isGone) return;
    this.close(run);
    if (run.cursor !== undefined && run.cursor.finishedAtBytes !== run.knownBytes && !this.isOff) this.wake(run);
    else this.remove(run);
  }

  private remove(run: ExportRun): void {
    run.isGone = true;
    this.lingering.delete(run);
    this.schedule.remove(run);
    this.runs.delete(run.traceId);
  }

  /** Something threw that nothing handled. */
  private fail(error: unknown): void {
    if (this.stop.signal.aborted) return;
    this.stop.abort();
    this.rest.notify();
    this.given.onFailed(error);
  }

  private async flushUntil(isDone: () => boolean, deadline: AbortSignal): Promise<boolean> {
    if (this.reading === undefined) return false;
    this.isFlushing = true;
    this.endLinger();
    for (const run of this.runs.values()) if (run.replay !== undefined || run.isInTurn) this.wake(run);
    this.passthrough?.wake();
    await this.rest.until(() => isDone() || this.stop.signal.aborted, deadline);
    this.isFlushing = false;
    return this.isDrained;
  }
}

/** Wakes those who wait for work to come to rest; each looks for itself whether it has. */
class RestSignal {
  private waiters: (() => void)[] = [];

  notify(): void {
    const { waiters } = this;
    this.waiters = [];
    for (const resolve of waiters) resolve();
  }

  /** Resolves as soon as a condition is true, or `deadline` aborts. */
  async until(holds: () => boolean, deadline?: AbortSignal): Promise<void> {
    const onAbort = () => this.notify();
    deadline?.addEventListener('abort', onAbort);
    while (!holds() && deadline?.aborted !== true) {
      await new Promise<void>((resolve) => this.waiters.push(resolve));
    }
    deadline?.removeEventListener('abort', onAbort);
  }
}

/** A clock whose callbacks end nobody by what they throw. */
class GuardedClock implements Clock {
  constructor(
    private readonly clock: Clock,
    private readonly onError: (error: unknown) => void,
  ) {}

  nowUnixMs(): number {
    return this.clock.nowUnixMs();
  }

  monotonicMs(): number {
    return this.clock.monotonicMs();
  }

  after(delayMs: number, callback: () => void): Timer {
    return this.clock.after(delayMs, () => {
      try {
        callback();
      } catch (error) {
        this.onError(error);
      }
    });
  }
}
