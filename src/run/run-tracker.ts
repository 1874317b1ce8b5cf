import { type Timer, whenAborted } from '../core/clock.js';
import type { Component } from '../core/lifecycle.js';
import type { Appended, AppendListener } from '../log/appended.js';
import type { TraceId } from '../record/telemetry-record.js';
import { type EvictedRun, EvictedRuns, OpenRun } from './open-run.js';
import type { StepListener } from './run-event.js';
import type { RunTrackerConfig, RunTrackerDeps } from './run-tracker-config.js';
import type { RunSummary } from './verdict.js';

/**
 * Follows every run from its first record to its verdicts, and beyond when late records arrive. Its state is a
 * projection of the record logs: after a restart unfinished runs are read again.
 * Intervals are measured on the monotonic clock, so a jump of the wall clock ends nothing; after a restart a
 * quiet period starts again, since nothing was received before.
 */
export class RunTracker implements Component, AppendListener, StepListener {
  readonly name = 'run tracker';
  private readonly runs = new Map<TraceId, OpenRun>();
  /** Those among them whose records may be summed up in memory. */
  private active = new Set<OpenRun>();
  private evictAtCount: number;
  /** Bytes appended since the last check of memory. */
  private appendedBytes = 0;
  private readonly evicted: EvictedRuns;
  private isStopped = false;
  private replaying: Promise<void> = Promise.resolve();
  /** Runs that are being read again because their steps changed. */
  private readonly noting = new Map<TraceId, Promise<void>>();
  /** Runs that are being removed. */
  private readonly released = new Set<TraceId>();
  private sweepTimer: Timer | null = null;

  constructor(
    private readonly config: RunTrackerConfig,
    private readonly deps: RunTrackerDeps,
  ) {
    this.evictAtCount = config.maxOpenRuns;
    this.evicted = new EvictedRuns(deps.clock, (traceId, run) => this.resume(traceId, run));
  }

  /** Runs that are not over: those in memory, and those of which only the time of the last record is remembered. */
  get openCount(): number {
    let count = this.evicted.count;
    for (const run of this.runs.values()) if (!run.isSettled) count += 1;
    return count;
  }

  /** Finds the runs that were not finished; they are read and judged one after the other in the background. */
  async start(): Promise<void> {
    const unfinished = await this.deps.store.listUnfinished();
    this.replaying = this.replayAll(unfinished.map((row) => row.traceId));
    this.sweepLater();
  }

  onAppended(appended: Appended): void {
    if (this.isStopped || appended.isEmpty) return;
    const known = this.runs.get(appended.traceId);
    if (known !== undefined) {
      known.take(appended);
      this.noteActive(known);
      this.noteAppended(appended);
      return;
    }
    this.evicted.delete(appended.traceId);
    const run = new OpenRun(appended.traceId, this.config, this.deps, appended.offset === 0);
    this.runs.set(appended.traceId, run);
    run.take(appended);
    this.noteActive(run);
    this.noteAppended(appended);
  }

  onStepChanged(traceIds: readonly TraceId[]): void {
    if (this.isStopped) return;
    for (const traceId of traceIds) {
      const known = this.runs.get(traceId);
      if (known !== undefined) known.noteSteps();
      else this.noting.set(traceId, this.noteSteps(traceId, this.noting.get(traceId)));
    }
  }

  /** Finds the current state of the run; `undefined` for an unknown trace. */
  async find(traceId: TraceId): Promise<RunSummary | undefined> {
    const live = this.runs.get(traceId)?.summary();
    if (live !== undefined) return live;
    const row = await this.deps.store.find(traceId);
    return row === undefined ? undefined : (await storedRuns()).parseRun(row.summary);
  }

  /** Runs, newest first. */
  async list(limit: number): Promise<readonly RunSummary[]> {
    const rows = await this.deps.store.list(limit);
    const { parseRun } = await storedRuns();
    return rows.flatMap((row) => this.runs.get(row.traceId)?.summary() ?? parseRun(row.summary) ?? []);
  }

  /** Returns whether every invocation of the run has its verdict and all events were processed. */
  async isSettled(traceId: TraceId): Promise<boolean> {
    const run = this.runs.get(traceId);
    if (run !== undefined) return run.isSettled;
    if (this.noting.has(traceId)) return false;
    return (await this.deps.store.find(traceId))?.state === 'finished';
  }

  /** A complete record log was copied here: its run is restored and followed from now on. */
  async adopt(traceId: TraceId): Promise<void> {
    await this.replay(traceId);
  }

  /** Another process follows the trace: when this resolves, nothing is done or reported of it any more. */
  async drop(traceId: TraceId): Promise<void> {
    const run = this.runs.get(traceId);
    this.runs.delete(traceId);
    this.evicted.delete(traceId);
    if (run === undefined) return;
    this.active.delete(run);
    await run.abandon();
  }

  /** Resolves when no run is active: everything due was reported. */
  async idle(): Promise<void> {
    await Promise.all([this.replaying, ...this.noting.values()]);
    for (let busy = this.busyRuns(); busy.length > 0; busy = this.busyRuns()) {
      await Promise.all(busy.map((run) => run.work()));
    }
  }

  /**
   * Runs an action that removes the files of runs: until it has ended nobody follows them, also nobody who has just found them on the disk.
   * Call it while nothing can be appended to them.
   * @returns false if one of them is active, and nothing was done
   */
  async whileReleased(traceIds: readonly TraceId[], action: () => Promise<boolean>): Promise<boolean> {
    for (const traceId of traceIds) {
      if (this.noting.has(traceId) || this.runs.get(traceId)?.isSettled === false) return false;
    }
    for (const traceId of traceIds) {
      this.released.add(traceId);
      const run = this.runs.get(traceId);
      if (run === undefined) continue;
      run.drop();
      this.runs.delete(traceId);
      this.active.delete(run);
    }
    try {
      return await action();
    } finally {
      for (const traceId of traceIds) this.released.delete(traceId);
    }
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    this.isStopped = true;
    this.sweepTimer?.cancel();
    this.evicted.stop();
    const stopping = Promise.all([
      this.replaying,
      ...this.noting.values(),
      ...[...this.runs.values()].map((run) => this.stop(run)),
    ]);
    await Promise.race([stopping, whenAborted(deadline)]);
  }

  private async replayAll(unfinished: readonly TraceId[]): Promise<void> {
    try {
      for (const traceId of unfinished) await this.replay(traceId);
      for (const traceId of (await this.deps.listTraces?.()) ?? []) {
        if (!this.isStopped && !this.runs.has(traceId) && (await this.isBehind(traceId))) await this.replay(traceId);
      }
    } catch (error) {
      this.deps.logger.error({ error: String(error) }, 'failed to search the record logs for unfinished runs');
    }
  }

  private async replay(traceId: TraceId, made?: OpenRun): Promise<void> {
    if (this.isStopped || this.released.has(traceId)) return;
    const run = this.runs.get(traceId) ?? made ?? new OpenRun(traceId, this.config, this.deps, false);
    this.runs.set(traceId, run);
    try {
      run.noteLength(await this.deps.reader.lengthBytes(traceId));
      await run.work();
    } catch (error) {
      this.deps.logger.error(
        { traceId, error: String(error) },
        'failed to restore a run from its record log after the restart',
      );
    }
    this.noteActive(run);
  }

  /** A run that is not in memory is read again: how a command ended may change its verdict. */
  private async noteSteps(traceId: TraceId, before: Promise<void> | undefined): Promise<void> {
    await before;
    const hasRecords = await this.hasRecords(traceId);
    const run = this.runs.get(traceId);
    if (run !== undefined) {
      run.noteSteps();
    } else if (hasRecords) {
      this.evicted.delete(traceId);
      await this.replay(traceId);
    }
    this.noting.delete(traceId);
  }

  private async hasRecords(traceId: TraceId): Promise<boolean> {
    try {
      return (await this.deps.reader.lengthBytes(traceId)) > 0;
    } catch (error) {
      this.deps.logger.error({ traceId, error: String(error) }, 'failed to restore a run from its record log');
      return false;
    }
  }

  private evict(run: OpenRun): void {
    const { remainder, traceId } = run;
    run.evict();
    if (remainder === undefined) return;
    run.drop();
    this.runs.delete(traceId);
    this.evicted.add(traceId, remainder);
  }

  private resume(traceId: TraceId, evicted: EvictedRun): void {
    if (this.isStopped || this.runs.has(traceId)) return;
    const run = new OpenRun(traceId, this.config, this.deps, false);
    run.resume(evicted);
    void this.replay(traceId, run);
  }

  private async isBehind(traceId: TraceId): Promise<boolean> {
    const row = await this.deps.store.find(traceId);
    // Without a row and without a log it was removed meanwhile. A log that is not synced may lose its end in a power cut.
    return (row?.logBytes ?? 0) !== (await this.deps.reader.lengthBytes(traceId));
  }

  private busyRuns(): OpenRun[] {
    return [...this.runs.values()].filter((run) => run.isWorking);
  }

  private async stop(run: OpenRun): Promise<void> {
    try {
      await run.stop();
    } catch (error) {
      this.deps.logger.error(
        { traceId: run.traceId, error: String(error) },
        'failed to save a run; the next start restores it from its record log',
      );
    }
  }

  /** Evicts finished runs that have been quiet for a while. */
  private sweep(): void {
    const beforeMs = this.deps.clock.monotonicMs() - this.config.evictAfterMs;
    for (const run of this.runs.values()) {
      if (run.isSettled && run.idleSinceMs <= beforeMs) this.runs.delete(run.traceId);
    }
    this.active = new Set(this.runs.values());
    this.evictIdlest();
    this.sweepLater();
  }

  private sweepLater(): void {
    if (this.isStopped) return;
    this.sweepTimer = this.deps.clock.after(this.config.evictAfterMs, () => this.sweep());
  }

  /** A run's records are, or will be, summed up in memory. */
  private noteActive(run: OpenRun): void {
    this.active.add(run);
    if (this.active.size > this.evictAtCount) this.evictIdlest();
  }

  /** Checks memory occasionally: the size of runs grows with their records, and never faster. */
  private noteAppended({ offset, lengthBytes }: Appended): void {
    this.appendedBytes += lengthBytes - offset;
    if (this.appendedBytes >= Math.min(this.config.maxMemoryBytes / 4, MAX_UNCHECKED_BYTES)) this.evictIdlest();
  }

  /** Keeps runs in memory within their bounds: settled ones go first, then those idle longest. */
  private evictIdlest(): void {
    this.appendedBytes = 0;
    const loaded = [...this.active].filter((run) => run.isLoaded || run.isWorking);
    this.active = new Set(loaded);
    const idle = loaded.filter((run) => !run.isWorking);
    idle.sort((a, b) => Number(b.isSettled) - Number(a.isSettled) || a.idleSinceMs - b.idleSinceMs);
    let count = loaded.length;
    let memoryBytes = 0;
    let settledBytes = 0;
    for (const run of loaded) {
      memoryBytes += run.memoryBytes;
      if (run.isSettled) settledBytes += run.memoryBytes;
    }
    const idleSinceMs = this.deps.clock.monotonicMs() - MIN_IDLE_MS;
    for (const run of idle) {
      const { isSettled } = run;
      const hasRoom =
        memoryBytes <= this.config.maxMemoryBytes && !(isSettled && settledBytes > this.config.maxSettledBytes);
      if (count <= this.config.maxOpenRuns && (hasRoom || run.idleSinceMs > idleSinceMs)) break;
      memoryBytes -= run.memoryBytes;
      count -= 1;
      this.active.delete(run);
      if (isSettled) {
        settledBytes -= run.memoryBytes;
        this.runs.delete(run.traceId);
      } else this.evict(run);
    }
    // Active runs cannot be evicted; checking all of them for each new run would become slow.
    this.evictAtCount = Math.max(this.config.maxOpenRuns, Math.ceil(this.active.size * EVICTION_GROWTH));
  }
}

/**
 * A run that was active this recently is not evicted to save memory: its next records would make it read its whole log again.
 * In milliseconds.
 */
const MIN_IDLE_MS = 1_000;
/** Memory is checked when at least so much was appended, in bytes: two large runs. */
const MAX_UNCHECKED_BYTES = 16 * 1024 * 1024;
/** Eviction is tried again when there are this many times the runs that had to stay. */
const EVICTION_GROWTH = 1.25;

/** Loaded when the first run is read back: checking rows takes a schema library, which no start has to wait for. */
function storedRuns() {
  return import('./parse-run.js');
}
