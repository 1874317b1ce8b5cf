import { once } from 'node:events';

/** Resolves when the user, or the system, asks the process to end. */
export async function stopped(stop: AbortSignal): Promise<void> {
  if (stop.aborted) return;
  // A signal alone does not keep a process alive; servers do, and this does where there is none.
  const alive = setInterval(() => {}, 2 ** 30);
  await once(stop, 'abort');
  clearInterval(alive);
}
