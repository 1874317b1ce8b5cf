import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock, Timer } from '../component/clock.js';
import { reasonOf } from '../component/reason-of.js';
import type { ExportRun } from './export-run.js';
import type { TurnEnd } from './export-turn.js';
import type { ExportWorkerDeps } from './export-worker-options.js';
import type { LaneSenders } from './signal-senders.js';

/** What the schedule asks of the worker. */
export interface ExportScheduleHost {
  /** Reads on in a run, and hands what comes of it to the lanes. */
  takeTurn(run: ExportRun): Promise<TurnEnd>;
  close(run: ExportRun): void;
  /** The run was sent to its end, or is not to be sent. */
  forget(run: ExportRun): void;
  /** Something came to rest. */
  rested(): void;
}

/** Gives runs their turns, one at a time, as long as lanes have room; and lets lanes send what that gave. */
export class ExportSchedule {
  /** Runs that wait for a lane. */
  private readonly parked = new Set<ExportRun>();
  /** Runs whose turn failed, waiting for another try. */
  private readonly faulted = new Set<ExportRun>();
  /** Whether a run has its turn now. */
  isInTurn = false;
  private isOpen = false;
  /** Monotonic time at which requests that were not full were sent for the last time. */
  private sentAllMs = 0;

  constructor(
    private readonly deps: Pick<ExportWorkerDeps, 'destination' | 'clock' | 'logger' | 'retryPolicy'> & {
      readonly queue: ExportQueue;
      readonly senders: LaneSenders;
    },
    private readonly batchDelayMs: number,
    private readonly host: ExportScheduleHost,
    private readonly stop: AbortSignal,
  ) {}

  /** Whether no turn can be taken now. */
  get isResting(): boolean {
    return !this.isInTurn && (this.deps.queue.isEmpty || !this.deps.senders.haveRoom);
  }

  /** Whether no run waits for anything but records. */
  get isDrained(): boolean {
    return !this.isInTurn && this.deps.queue.isEmpty && this.parked.size === 0 && this.faulted.size === 0;
  }

  /** From now on turns are taken. */
  open(): void {
    this.isOpen = true;
  }

  /** Gives a run a turn. */
  wake(run: ExportRun): void {
    run.isBehind = true;
    this.enqueue(run);
    this.pump();
  }

  enqueue(run: ExportRun): void {
    this.drop(run);
    if (run.isDropped) return;
    // One that only waits for a lane is not read anew for that: its turn's end sees that it has missed something.
    if (run.isInTurn) run.isWokenAgain ||= run.isBehind;
    else this.deps.queue.add(run);
  }

  /** A lane's wait is over. */
  resumeParked(): void {
    for (const run of [...this.parked]) this.enqueue(run);
    this.pump();
  }

  /** A run waits for nothing any more. */
  drop(run: ExportRun): void {
    this.parked.delete(run);
    this.faulted.delete(run);
  }

  pump(): void {
    if (!this.isOpen) return;
    const { queue, senders, clock } = this.deps;
    const nowMs = clock.monotonicMs();
    while (!this.stop.aborted && !this.isInTurn && senders.haveRoom) {
      const run = queue.take(nowMs);
      if (run === undefined) break;
      if (this.isWorthATurn(run)) void this.takeTurn(run);
    }
    // While runs are read, requests fill up; but nothing waits for that longer than for more records.
    const isAll = !this.isInTurn || nowMs - this.sentAllMs >= this.batchDelayMs;
    if (isAll) this.sentAllMs = nowMs;
    senders.send(isAll);
    if (!this.isInTurn) this.host.rested();
  }

  /** A run that needs only lanes that wait is parked; where no lane is left there is nothing to do until the next start. */
  private isWorthATurn(run: ExportRun): boolean {
    if (run.isDropped) return false;
    const { senders } = this.deps;
    if (senders.areOff) {
      this.host.forget(run);
      return false;
    }
    if (run.isBehind || senders.canCatchUp(run.progress)) return true;
    if (run.hasMissed) this.parked.add(run);
    return false;
  }

  private async takeTurn(run: ExportRun): Promise<void> {
    this.isInTurn = true;
    run.isInTurn = true;
    try {
      const next = await this.host.takeTurn(run);
      run.failedTurns = 0;
      run.isInTurn = false;
      if (run.isWokenAgain) run.isBehind = true;
      if (run.isDropped) this.host.close(run);
      else if (next === 'done') this.host.forget(run);
      else if (next === 'again' || run.isWokenAgain || run.hasMissed) this.deps.queue.add(run);
      this.deps.queue.hadTurn(run, this.deps.clock.monotonicMs());
    } catch (error) {
      run.isInTurn = false;
      if (run.isDropped) this.host.close(run);
      else this.fault(run, error);
    }
    run.isWokenAgain = false;
    // Exporting is not all that the process does: others get a turn of the event loop, too.
    await nextTurn();
    this.isInTurn = false;
    this.pump();
  }

  private fault(run: ExportRun, error: unknown): void {
    run.failedTurns += 1;
    this.host.close(run);
    run.isBehind = true;
    this.faulted.add(run);
    const { destination, logger, clock, retryPolicy } = this.deps;
    if (run.failedTurns === 1) {
      const reason = reasonOf(error);
      logger.error(
        { destination: destination.name, traceId: run.traceId, error: reason },
        'a run could not be exported; it is tried again',
      );
    }
    clock.after(retryPolicy.delayMs(run.failedTurns, null), () => this.wake(run));
  }
}

/** How many runs may hold a mapper. */
export interface ExportQueueLimits {
  readonly maxOpen: number;
  /** Memory of all open runs together, as `ExportRun` estimates it; a single one may take more. */
  readonly maxOpenBytes: number;
  readonly sliceMs: number;
}

/** Open runs beyond this much memory, in bytes, are closed once they had nothing to do for a while … */
const MAX_IDLE_BYTES = 64 * 1024 * 1024;
/** … of so many milliseconds: those that get records every now and then do not read their log again for each. */
const IDLE_MS = 5_000;

/** What the queue asks of the worker. */
export interface ExportQueueHost {
  /** Closes a run that has to make room; what it still has to do comes to the queue again. */
  makeWay(run: ExportRun): void;
  /** Whether something of the run waits for a lane that takes nothing now. */
  isStuck(run: ExportRun): boolean;
}

/**
 * Whose turn it is, and who may hold a mapper. Open runs take turns; closed ones wait, first come first served, until a
 * mapper is free: fewer are open than may be, an open one has nothing to do or cannot go on, or one has had its slice of
 * time.
 */
export class ExportQueue {
  private readonly open = new Set<ExportRun>();
  private readonly turns: ExportRun[] = [];
  private readonly backlog: ExportRun[] = [];
  /** Bytes of the open runs when each was last looked at. */
  private readonly openBytesOf = new Map<ExportRun, number>();
  private openBytes = 0;

  constructor(
    private readonly limits: ExportQueueLimits,
    private readonly host: ExportQueueHost,
  ) {}

  get isEmpty(): boolean {
    return this.turns.length === 0 && this.backlog.length === 0;
  }

  get openRuns(): Iterable<ExportRun> {
    return this.open;
  }

  add(run: ExportRun): void {
    if (run.isQueued) return;
    run.isQueued = true;
    (run.replay === undefined ? this.backlog : this.turns).push(run);
  }

  /** The next run that may take a turn; a closed one among them has a place among the open ones. */
  take(nowMs: number): ExportRun | undefined {
    const run = this.backlog.length > 0 && this.makeRoom(nowMs) ? this.backlog.shift() : this.turns.shift();
    if (run !== undefined) run.isQueued = false;
    return run;
  }

  opened(run: ExportRun): void {
    this.open.add(run);
    this.measure(run);
  }

  closed(run: ExportRun): void {
    this.open.delete(run);
    this.openBytes -= this.openBytesOf.get(run) ?? 0;
    this.openBytesOf.delete(run);
  }

  /** A run had its turn: what it holds has changed. Where it is too much, others make room. */
  hadTurn(run: ExportRun, nowMs: number): void {
    if (this.open.has(run)) this.measure(run);
    this.closeIdle(run, nowMs);
    while (this.openBytes > this.limits.maxOpenBytes) {
      const victim = this.victim(run) ?? this.longestHeld(run);
      if (victim === undefined) return;
      this.host.makeWay(victim);
    }
  }

  private closeIdle(except: ExportRun, nowMs: number): void {
    while (this.openBytes > MAX_IDLE_BYTES) {
      const idle = this.longestIdle(except);
      if (idle === undefined || nowMs - idle.lastTurnMs < IDLE_MS) return;
      this.host.makeWay(idle);
    }
  }

  private get isFull(): boolean {
    if (this.open.size === 0) return false;
    return this.open.size >= this.limits.maxOpen || this.openBytes >= this.limits.maxOpenBytes;
  }

  private measure(run: ExportRun): void {
    const bytes = run.memoryBytes;
    this.openBytes += bytes - (this.openBytesOf.get(run) ?? 0);
    this.openBytesOf.set(run, bytes);
  }

  private makeRoom(nowMs: number): boolean {
    if (!this.isFull) return true;
    const victim = this.victim();
    if (victim !== undefined) {
      this.host.makeWay(victim);
      return true;
    }
    const overdue = this.takeOverdueTurn(nowMs);
    if (overdue === undefined) return false;
    overdue.isBehind = true;
    this.host.makeWay(overdue);
    this.add(overdue);
    return true;
  }

  /** An open run that can be closed at no loss of work: one with nothing to do, else one that cannot go on. */
  private victim(except?: ExportRun): ExportRun | undefined {
    const idle = this.longestIdle(except);
    if (idle !== undefined) return idle;
    for (const run of this.open) {
      if (run !== except && !run.isInTurn && !run.isQueued && this.host.isStuck(run)) return run;
    }
    return undefined;
  }

  /** The open run that has had nothing to do for the longest time. */
  private longestIdle(except?: ExportRun): ExportRun | undefined {
    let found: ExportRun | undefined;
    for (const run of this.open) {
      if (run === except || run.isInTurn || run.isQueued || isBusy(run) || this.host.isStuck(run)) continue;
      if (run.replay?.heldCount === 0 && run.lastTurnMs < (found?.lastTurnMs ?? Infinity)) found = run;
    }
    return found;
  }

  /** An open run that only waits for its held spans' time: it reads its log again then. */
  private longestHeld(except: ExportRun): ExportRun | undefined {
    let found: ExportRun | undefined;
    for (const run of this.open) {
      if (run === except || run.isInTurn || run.isQueued || isBusy(run)) continue;
      if (run.lastTurnMs < (found?.lastTurnMs ?? Infinity)) found = run;
    }
    return found;
  }

  /**
   * The next in turn, if it has had its slice: it goes to the end of the line of closed runs. The slice begins with the
   * first batch that was taken, or a run whose replay takes longer than that would never get anywhere.
   */
  private takeOverdueTurn(nowMs: number): ExportRun | undefined {
    const next = this.turns[0];
    if (next?.progressMs === undefined || nowMs - next.progressMs < this.limits.sliceMs) return undefined;
    this.turns.shift();
    next.isQueued = false;
    return next;
  }
}

function isBusy(run: ExportRun): boolean {
  return run.isBehind || run.isOutstanding;
}

/** Runs that got records and wait a moment for more, so that records that come close together share a request. */
export class ExportLinger {
  private readonly runs = new Set<ExportRun>();
  private timer: Timer | undefined;

  /** @param onDue called for each run when its wait is over. */
  constructor(
    private readonly delayMs: number,
    private readonly clock: Clock,
    private readonly onDue: (run: ExportRun) => void,
  ) {}

  get isEmpty(): boolean {
    return this.runs.size === 0;
  }

  add(run: ExportRun): void {
    if (this.delayMs === 0) {
      this.onDue(run);
      return;
    }
    this.runs.add(run);
    this.timer ??= this.clock.after(this.delayMs, () => this.release());
  }

  delete(run: ExportRun): void {
    this.runs.delete(run);
  }

  /** Ends every wait now. */
  release(): void {
    this.stop();
    const runs = [...this.runs];
    this.runs.clear();
    for (const run of runs) this.onDue(run);
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }
}
