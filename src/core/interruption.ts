import type { Clock, Timer } from './clock.js';

/** How long a command may take to end after SIGINT, and then after SIGTERM, in milliseconds. */
export interface InterruptionTimes {
  readonly afterInterruptMs: number;
  readonly afterTerminateMs: number;
}

/** At SIGINT an engine cancels its queries and reports what it left undone, which takes seconds. */
export const CANCEL_TIMES: InterruptionTimes = { afterInterruptMs: 10_000, afterTerminateMs: 10_000 };

/**
 * Ends processes step by step: SIGINT at once, SIGTERM when that did not end them, SIGKILL when neither did.
 * @param send sends a signal to all of them; called until `stop`
 */
export class Interruption {
  private timer: Timer | undefined;

  constructor(
    private readonly send: (signal: NodeJS.Signals) => void,
    { afterInterruptMs, afterTerminateMs }: InterruptionTimes,
    clock: Clock,
  ) {
    send('SIGINT');
    this.timer = clock.after(afterInterruptMs, () => {
      this.send('SIGTERM');
      this.timer = clock.after(afterTerminateMs, () => this.send('SIGKILL'));
    });
  }

  /** They have ended. */
  stop(): void {
    this.timer?.cancel();
  }
}
