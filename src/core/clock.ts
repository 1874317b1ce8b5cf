/** A timer that was asked for; cancelling it twice, or after it fired, does nothing. */
export interface Timer {
  cancel(): void;
}

/** Time, passed in so that tests decide when it passes. */
export interface Clock {
  /** Wall-clock time in milliseconds since the Unix epoch; may jump in both directions. */
  nowUnixMs(): number;
  /** Milliseconds from an arbitrary start; never goes backwards. Intervals are measured with this one. */
  monotonicMs(): number;
  /** Calls `callback` once, `delayMs` from now; does not keep the process alive. */
  after(delayMs: number, callback: () => void): Timer;
}

/** The clock of the machine. */
export const systemClock: Clock = {
  nowUnixMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, callback) {
    const timeout = setTimeout(callback, delayMs);
    timeout.unref();
    return { cancel: () => clearTimeout(timeout) };
  },
};

/** Resolves after a time, or when the signal aborts; keeps the process alive meanwhile. */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    // The clock's timers do not keep a process alive; this wait must.
    const alive = setInterval(() => {}, 2 ** 30);
    const timer = clock.after(delayMs, done);
    signal.addEventListener('abort', done, { once: true });
    function done(): void {
      clearInterval(alive);
      timer.cancel();
      signal.removeEventListener('abort', done);
      resolve();
    }
  });
}

/** Resolves as soon as the signal is aborted, at once where it already is. Never rejects. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

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
