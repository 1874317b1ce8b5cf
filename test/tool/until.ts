import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';

/** What is waited for comes in milliseconds, or seconds; on a machine that others keep busy it takes many times that. */
const LIMIT_MS = 120_000;

/**
 * Resolves with the first value of `look` that is neither `undefined` nor false; looks every 25 ms.
 * @param timeoutMs for what takes minutes by itself
 * @throws Error naming `what` when there is none within two minutes, or `timeoutMs`.
 */
export function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = LIMIT_MS,
): Promise<T> {
  return poll(what, look, timeoutMs, () => pause(25));
}

/**
 * Lets the event loop turn until something holds: for what depends on a clock that the test itself moves, often in `holds`.
 * @throws Error when it does not within two minutes.
 */
export async function untilTurned(holds: () => boolean, what = holds.toString()): Promise<void> {
  await poll(what, holds, LIMIT_MS, () => nextTurn());
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
