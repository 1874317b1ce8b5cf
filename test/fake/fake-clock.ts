import type { Clock, Timer } from '../../src/core/clock.js';

interface PendingTimer {
  readonly dueMs: number;
  readonly callback: () => void;
}

/** A clock that stands still until a test moves it. */
export class FakeClock implements Clock {
  /** Time that passes with each look at the clock. */
  creepMs = 0;
  /** How much too early timers fire, as real ones may by a fraction of a millisecond. */
  earlyMs = 0;
  private elapsedMs = 0;
  private readonly timers = new Set<PendingTimer>();

  /** @param startUnixMs wall-clock time at the start. */
  constructor(private readonly startUnixMs = Date.UTC(2026, 0, 1)) {}

  nowUnixMs(): number {
    return this.startUnixMs + this.elapsedMs;
  }

  monotonicMs(): number {
    const now = this.elapsedMs;
    this.elapsedMs += this.creepMs;
    return now;
  }

  after(delayMs: number, callback: () => void): Timer {
    const timer = { dueMs: this.elapsedMs + delayMs - this.earlyMs, callback };
    this.timers.add(timer);
    return { cancel: () => this.timers.delete(timer) };
  }

  /** Moves time forward and calls what falls due, in order of time. */
  advance(byMs: number): void {
    const endMs = this.elapsedMs + byMs;
    for (let next = this.earliest(endMs); next !== undefined; next = this.earliest(endMs)) {
      this.elapsedMs = Math.max(this.elapsedMs, next.dueMs);
      this.timers.delete(next);
      next.callback();
    }
    this.elapsedMs = Math.max(this.elapsedMs, endMs);
  }

  /** Milliseconds until the next timer; `undefined` when none is set. */
  get nextTimerMs(): number | undefined {
    const next = this.earliest(Number.POSITIVE_INFINITY);
    return next && Math.max(0, next.dueMs - this.elapsedMs);
  }

  private earliest(endMs: number): PendingTimer | undefined {
    let found: PendingTimer | undefined;
    for (const timer of this.timers) {
      if (timer.dueMs <= endMs && (found === undefined || timer.dueMs < found.dueMs)) found = timer;
    }
    return found;
  }
}
