import type { ExportRun } from './export-run.js';

/**
 * Whose turn it is, and who may hold a mapper. Open runs take turns; closed ones wait, first come first served, until a
 * mapper is free: fewer than `maxOpen` are open, an open one has nothing to do, or one has been open for `sliceMs`.
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
    let oldest: ExportRun | undefined;
    for (const run of this.open) {
      if (run.isInTurn || run.isQueued) continue;
      if (!run.isBehind && !run.hasQueued && run.replay?.heldCount === 0) {
        if (idle === undefined || run.lastTurnMs < idle.lastTurnMs) idle = run;
      } else if (nowMs - run.openedAtMs >= this.limits.sliceMs) {
        if (oldest === undefined || run.openedAtMs < oldest.openedAtMs) oldest = run;
      }
    }
    const victim = idle ?? oldest ?? this.takeOverdueTurn(nowMs);
    if (victim === undefined) return false;
    const hasMore = victim !== idle;
    this.closeRun(victim);
    if (hasMore) {
      victim.isBehind = true;
      this.add(victim);
    }
    return true;
  }

  /** The next in turn, if it has been open for its slice: it goes to the end of the line of closed runs. */
  private takeOverdueTurn(nowMs: number): ExportRun | undefined {
    const next = this.turns[0];
    if (next === undefined || nowMs - next.openedAtMs < this.limits.sliceMs) return undefined;
    this.turns.shift();
    next.isQueued = false;
    return next;
  }
}
