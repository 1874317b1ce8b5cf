import type { Clock } from './clock.js';

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
