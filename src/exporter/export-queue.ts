import type { ExportRun } from './export-run.js';

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
