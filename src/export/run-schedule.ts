import { setLatest } from '../core/lists.js';
import type { Appended } from '../log/appended.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { RunEvent } from '../run/run-event.js';
import type { ExportRun } from './export-run.js';

/** Maximum number of runs with a mapper. */
export interface RunScheduleLimits {
  readonly maxOpenRuns: number;
  /** Memory of all open runs together, as `ExportRun` estimates it; a single one may take more. */
  readonly maxOpenBytes: number;
  readonly openSliceMs: number;
}

/** Open runs beyond this much memory, in bytes, are closed once they had nothing to do for a while … */
const MAX_IDLE_BYTES = 64 * 1024 * 1024;
/** … of so many milliseconds: those that get records every now and then do not read their log again for each. */
const IDLE_MS = 5_000;

/**
 * Schedules runs, and decides which of them have a mapper. Open runs take turns; closed ones wait, first come first served, until a
 * mapper is free: fewer are open than may be, an open one has nothing to do or cannot go on, or one has had its slice of
 * time. A run that is evicted comes to the end of the line, if there is more to do for it.
 */
export class RunSchedule {
  /** Runs with a mapper, and the bytes that each took at the last check. */
  private readonly open = new Map<ExportRun, number>();
  private openBytes = 0;
  private readonly turns = new Set<ExportRun>();
  private readonly backlog = new Set<ExportRun>();

  constructor(private readonly limits: RunScheduleLimits) {}

  get isEmpty(): boolean {
    return this.turns.size === 0 && this.backlog.size === 0;
  }

  /** Returns whether another run may have a mapper at once, without waiting for its turn or keeping others from theirs. */
  get mayOpen(): boolean {
    return this.backlog.size === 0 && !this.isFull;
  }

  /** A run waits for a turn; once, however often this is called. */
  add(run: ExportRun): void {
    if (this.isWaiting(run)) return;
    (run.replay === undefined ? this.backlog : this.turns).add(run);
  }

  /** Removes and returns the next run to work on; a closed one is opened by that. */
  next(nowMs: number): ExportRun | undefined {
    const line = this.backlog.size > 0 && this.makeRoom(nowMs) ? this.backlog : this.turns;
    const [run] = line;
    if (run !== undefined) line.delete(run);
    return run;
  }

  /** A run has worked: its memory has changed. If it is too much, others are closed. */
  hadTurn(run: ExportRun, nowMs: number): void {
    run.lastTurnMs = nowMs;
    if (run.replay === undefined) this.closed(run);
    else this.measure(run);
    this.closeIdle(run, nowMs);
    while (this.openBytes > this.limits.maxOpenBytes) {
      const victim = this.victim(run) ?? this.longestPending(run);
      if (victim === undefined) return;
      this.evict(victim);
    }
  }

  /** A run has no mapper any more. */
  closed(run: ExportRun): void {
    this.openBytes -= this.open.get(run) ?? 0;
    this.open.delete(run);
  }

  /** A run waits for no turn any more. */
  remove(run: ExportRun): void {
    this.closed(run);
    this.turns.delete(run);
    this.backlog.delete(run);
  }

  private isWaiting(run: ExportRun): boolean {
    return this.turns.has(run) || this.backlog.has(run);
  }

  private measure(run: ExportRun): void {
    const bytes = run.memoryBytes;
    this.openBytes += bytes - (this.open.get(run) ?? 0);
    this.open.set(run, bytes);
  }

  private get isFull(): boolean {
    if (this.open.size === 0) return false;
    return this.open.size >= this.limits.maxOpenRuns || this.openBytes >= this.limits.maxOpenBytes;
  }

  private makeRoom(nowMs: number): boolean {
    if (!this.isFull) return true;
    const victim = this.victim();
    if (victim !== undefined) {
      this.evict(victim);
      return true;
    }
    // The slice begins with the first batch that was taken, or a run whose replay takes longer would never get anywhere.
    const [next] = this.turns;
    if (next?.progressMs === undefined || nowMs - next.progressMs < this.limits.openSliceMs) return false;
    this.turns.delete(next);
    next.isBehind = true;
    this.evict(next);
    return true;
  }

  /** Closes a run for the sake of others. What it was about to do, it does when it is its turn again. */
  private evict(run: ExportRun): void {
    run.isBehind ||= (run.replay?.bufferedCount ?? 0) > 0;
    run.evict();
    this.closed(run);
    if (run.isBehind || run.isEvicted) this.add(run);
  }

  private closeIdle(except: ExportRun, nowMs: number): void {
    while (this.openBytes > MAX_IDLE_BYTES) {
      const idle = this.longestIdle(except);
      if (idle === undefined || nowMs - idle.lastTurnMs < IDLE_MS) return;
      this.evict(idle);
    }
  }

  /** Finds an open run that can be closed at no loss of work: one with nothing to do, else one that cannot go on. */
  private victim(except?: ExportRun): ExportRun | undefined {
    const idle = this.longestIdle(except);
    if (idle !== undefined) return idle;
    for (const run of this.open.keys())
      if (run !== except && !this.isWaiting(run) && !run.isInTurn && run.isStuck) return run;
    return undefined;
  }

  /** Finds the open run that has had nothing to do for the longest time. */
  private longestIdle(except?: ExportRun): ExportRun | undefined {
    return this.longest((run) => run !== except && !run.isStuck && run.replay?.bufferedCount === 0);
  }

  /** Finds an open run that only waits for its buffered spans' time: it reads its log again then. */
  private longestPending(except: ExportRun): ExportRun | undefined {
    return this.longest((run) => run !== except);
  }

  private longest(mayGo: (run: ExportRun) => boolean): ExportRun | undefined {
    let found: ExportRun | undefined;
    for (const run of this.open.keys()) {
      // One that was sent to its end is closed as soon as its cursor is saved.
      if (this.isWaiting(run) || run.isInTurn || run.isBehind || run.isOutstanding) continue;
      if (run.closingAtBytes !== undefined) continue;
      if (!mayGo(run)) continue;
      if (run.lastTurnMs < (found?.lastTurnMs ?? Infinity)) found = run;
    }
    return found;
  }
}

/** Runs that are remembered; a worker is notified of one that was forgotten when the state knows it, or its next records come. */
const MAX_RUNS = 100_000;

/** Remembers runs that are not finished: a worker that begins later is notified of them. What is finished, the state knows. */
export class OpenRuns {
  private readonly lengths = new Map<TraceId, number>();

  appended({ traceId, lengthBytes }: Pick<Appended, 'traceId' | 'lengthBytes'>): void {
    setLatest(this.lengths, traceId, lengthBytes, MAX_RUNS);
  }

  runEvent(event: RunEvent): void {
    if (event.type === 'finished') this.lengths.delete(event.run.traceId);
  }

  /** Forgets a run whose record log is looked after elsewhere. */
  drop(traceId: TraceId): void {
    this.lengths.delete(traceId);
  }

  /** Notifies a worker of all of them. */
  notify(worker: { onAppended(appended: Pick<Appended, 'traceId' | 'lengthBytes'>): void }): void {
    for (const [traceId, lengthBytes] of this.lengths) worker.onAppended({ traceId, lengthBytes });
  }
}
