import type { Clock, Timer } from './clock.js';

/** How long a command may take to end after SIGINT and then after SIGTERM, in milliseconds. */
export interface InterruptionTimes {
  readonly afterInterruptMs: number;
  readonly afterTerminateMs: number;
}

/** Times for an engine, which needs seconds after SIGINT to cancel its queries and to report what it left undone. */
export const CANCEL_TIMES: InterruptionTimes = { afterInterruptMs: 10_000, afterTerminateMs: 10_000 };

/**
 * Ends processes step by step: SIGINT at once, then SIGTERM, then SIGKILL.
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

  /** Sends no further signals; to be called when the processes have ended. */
  stop(): void {
    this.timer?.cancel();
  }
}
