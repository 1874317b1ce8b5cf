import type { Clock } from './clock.js';

/** Resolves after a time, or as soon as the signal aborts; keeps the process alive meanwhile. */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    // The clock's timers let a process end; who waits here is not to be cut off by that.
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
