import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';

/** How long a test waits for anything, in milliseconds: far longer than a busy machine takes, and shorter than a test may take. */
export const WAIT_MS = 120_000;

/**
 * Resolves with the first value of `look` that is neither `undefined` nor false; looks every 25 ms.
 * @param timeoutMs another limit, where programs are started that take minutes
 * @throws Error naming `what` when there is none in time.
 */
export function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = WAIT_MS,
): Promise<T> {
  return poll(what, look, timeoutMs, () => pause(25));
}

/**
 * Lets the event loop turn until something holds: for what depends on a clock that the test itself moves, often in `holds`.
 * @throws Error when it does not in time.
 */
export async function untilTurned(holds: () => boolean, what = holds.toString()): Promise<void> {
  await poll(what, holds, WAIT_MS, () => nextTurn());
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
