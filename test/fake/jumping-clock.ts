import { type Clock, systemClock } from '../../src/core/clock.js';

const HOUR_MS = 3_600_000;

/** The machine's clock, whose wall-clock time a test sets forward and back, as somebody or NTP does. */
export class JumpingClock implements Clock {
  private aheadMs = 0;

  nowUnixMs(): number {
    return systemClock.nowUnixMs() + this.aheadMs;
  }

  monotonicMs(): number {
    return systemClock.monotonicMs();
  }

  after(...timer: Parameters<Clock['after']>): ReturnType<Clock['after']> {
    return systemClock.after(...timer);
  }

  /** @param byHours negative: back. */
  jump(byHours: number): void {
    this.aheadMs += byHours * HOUR_MS;
  }
}
