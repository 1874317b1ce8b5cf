import type { ExportRun } from './export-run.js';

/**
 * Whose turn it is, and who may hold a mapper. Open runs take turns; closed ones wait, first come first served, until a
 * mapper is free: fewer than `maxOpen` are open, an open one has nothing to do or cannot go on, or one has had its
 * `sliceMs`.
 */
export class ExportQueue {
  private readonly open = new Set<ExportRun>();
  private readonly turns: ExportRun[] = [];
  private readonly backlog: ExportRun[] = [];

  /** @param closeRun closes a run that has to make room. */
  constructor(
    private readonly limits: { readonly maxOpen: number; readonly sliceMs: number },
    private readonly closeRun: (run: ExportRun) => void,
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
  }

  closed(run: ExportRun): void {
    this.open.delete(run);
  }

  private makeRoom(nowMs: number): boolean {
    if (this.open.size < this.limits.maxOpen) return true;
    let idle: ExportRun | undefined;
    let blocked: ExportRun | undefined;
    for (const run of this.open) {
      if (run.isInTurn || run.isQueued) continue;
      if (run.hasQueued) blocked ??= run;
      else if (!run.isBehind && run.replay?.heldCount === 0 && run.lastTurnMs < (idle?.lastTurnMs ?? Infinity))
        idle = run;
    }
    const victim = idle ?? blocked;
    if (victim !== undefined) {
      this.closeRun(victim);
      return true;
    }
    const overdue = this.takeOverdueTurn(nowMs);
    if (overdue === undefined) return false;
    this.closeRun(overdue);
    overdue.isBehind = true;
    this.add(overdue);
    return true;
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
