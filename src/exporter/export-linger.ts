import type { Clock, Timer } from '../component/clock.js';
import type { ExportRun } from './export-run.js';

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
