import type { Clock } from '../core/clock.js';
import { pause } from '../core/pause.js';
import type { ExecTarget } from './exec-target.js';

/** How often it is asked whether the run was cancelled, in milliseconds. */
const ASK_MS = 2_000;

/** Whose cancellation is watched for, and what to do about it. */
export interface CancellationWatch {
  readonly stepId: string;
  readonly clock: Clock;
  /** Aborts when the command has ended. */
  readonly hasEnded: AbortSignal;
  readonly onCancelled: () => void;
}

/** Asks the registry, while a command is under way, whether its run was cancelled. Never fails: a registry that cannot tell is asked again. */
export async function watchCancellation(
  target: Promise<Pick<ExecTarget, 'registry'>>,
  { stepId, clock, hasEnded, onCancelled }: CancellationWatch,
): Promise<void> {
  const registry = await target.then(
    (found) => found.registry,
    () => undefined,
  );
  while (registry !== undefined && !hasEnded.aborted) {
    const isCancelled = await registry.isCancelled(stepId).catch(() => false);
    if (isCancelled === null || hasEnded.aborted) return;
    if (isCancelled) {
      onCancelled();
      return;
    }
    await pause(clock, ASK_MS, hasEnded);
  }
}
