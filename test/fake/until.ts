import { setImmediate as nextTurn } from 'node:timers/promises';

/** Lets the event loop turn until something holds. @throws Error when it does not within ten seconds. */
export async function until(holds: () => boolean, what = holds.toString()): Promise<void> {
  const started = performance.now();
  while (!holds()) {
    if (performance.now() - started > 10_000) throw new Error(`waited in vain until ${what}`);
    await nextTurn();
  }
}
