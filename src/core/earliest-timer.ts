import type { Clock, Timer } from './clock.js';

/** One timer for the earliest of the times that were asked for; it fires once, and the later ones are asked for again. */
export class EarliestTimer {
  private timer: Timer | undefined;
  private due = Number.POSITIVE_INFINITY;

  /** @param callback is called when the time has come, after which none is set */
  constructor(
    private readonly clock: Clock,
    private readonly callback: () => void,
  ) {}

  /** When it fires, in monotonic milliseconds; infinity for never. */
  get dueMs(): number {
    return this.due;
  }

  /** Fires after so long, at least a millisecond, or sooner when that was asked for already. */
  within(delayMs: number): void {
    const waitMs = Math.max(1, delayMs);
    const dueMs = this.clock.monotonicMs() + waitMs;
    if (dueMs >= this.due) return;
    this.cancel();
    this.due = dueMs;
    this.timer = this.clock.after(waitMs, () => {
      this.cancel();
      this.callback();
    });
  }

  cancel(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.due = Number.POSITIVE_INFINITY;
  }
}
