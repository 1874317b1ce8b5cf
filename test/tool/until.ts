import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';

/**
 * Resolves with the first value of `look` that is neither `undefined` nor false; looks every 25 ms.
 * @throws Error naming `what` when there is none within `timeoutMs`.
 */
export function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 30_000,
): Promise<T> {
  return poll(what, look, timeoutMs, () => pause(25));
}

/**
 * Lets the event loop turn until something holds: for what depends on a clock that the test itself moves, often in `holds`.
 * @throws Error when it does not within 25 seconds, which leaves a test time to say so.
 */
export async function untilTurned(holds: () => boolean, what = holds.toString()): Promise<void> {
  await poll(what, holds, 25_000, () => nextTurn());
}

async function poll<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs: number,
  rest: () => Promise<unknown>,
): Promise<T> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const value = await look();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > end) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`);
    await rest();
  }
}
