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
