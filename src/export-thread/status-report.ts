import type { Clock, Timer } from '../component/clock.js';

/** How long after a message it is told, in milliseconds. */
const DELAY_MS = 200;
/** How often it is told while something is under way, is held back, or waits for a destination. */
const REPEAT_MS = 1_000;

/** Tells how things are, soon after something happened and as long as something is under way; when all is quiet, nothing. */
export class StatusReport {
  private timer: Timer | undefined;

  /** @param tell tells, and says whether something is under way. */
  constructor(
    private readonly clock: Clock,
    private readonly tell: () => boolean,
  ) {}

  /** Something happened. */
  later(delayMs = DELAY_MS): void {
    this.timer ??= this.clock.after(delayMs, () => this.now());
  }

  now(): void {
    this.timer?.cancel();
    this.timer = undefined;
    if (this.tell()) this.later(REPEAT_MS);
  }
}
