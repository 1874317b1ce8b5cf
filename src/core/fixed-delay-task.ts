import type { Clock, Timer } from './clock.js';

/** Runs an action again and again, each time a fixed delay after the last one ended, whether it failed or not. */
export class FixedDelayTask {
  private timer: Timer | undefined;
  private turn: Promise<void> = Promise.resolve();
  private isGoingOn = false;

  /** @param action the work @param onError receives its exceptions; the task continues */
  constructor(
    private readonly intervalMs: number,
    private readonly clock: Clock,
    private readonly action: () => Promise<void>,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** From now on; the first time after the interval. */
  start(): void {
    this.isGoingOn = true;
    this.later();
  }

  /** Waits for a running turn; no other follows. */
  async stop(): Promise<void> {
    this.isGoingOn = false;
    this.timer?.cancel();
    await this.turn;
  }

  private later(): void {
    if (!this.isGoingOn) return;
    this.timer = this.clock.after(this.intervalMs, () => {
      this.turn = this.action()
        .catch(this.onError)
        .then(() => this.later());
    });
  }
}
