import { isFinal, RUN_STATUS, type RunStatus } from '../run-status.js';
import type { WebhookEventType } from './webhook-subscription.js';

/** Bits of `executions.told`. */
const BITS: Readonly<Record<WebhookEventType, number>> = {
  'job.run.started': 1,
  'job.run.errored': 2,
  'job.run.completed': 4,
};
/** Everything was told. */
export const ALL_TOLD = 7;
/** Bit of a run that an import brings and that had ended before it, as far as it is known: nothing is told of it for now. */
export const NOT_NEWS = 8;

/** What is known of a run. */
export interface ToldRun {
  readonly status: RunStatus;
  /** Sum of the bits of what was told. */
  readonly told: number;
  readonly stepCount: number;
  readonly isCancelled: boolean;
  /** Whether one of its commands is known to have errored, before the run is over. */
  readonly hasError: boolean;
}

/** What is to be told of a run now, in order, and `told` afterwards. What never happens any more counts as told. */
export function dueEvents(run: ToldRun): { readonly types: readonly WebhookEventType[]; readonly told: number } {
  if ((run.told & NOT_NEWS) !== 0) return { types: [], told: run.told };
  const isOver = isFinal(run.status);
  const isErrored = isOver ? run.status === RUN_STATUS.error : run.hasError && !run.isCancelled;
  const due: readonly (readonly [WebhookEventType, boolean])[] = [
    ['job.run.started', run.stepCount > 0],
    ['job.run.errored', isErrored],
    ['job.run.completed', isOver],
  ];
  const types = due.filter(([type, isDue]) => isDue && (run.told & BITS[type]) === 0).map(([type]) => type);
  const told = isOver ? ALL_TOLD : types.reduce((sum, type) => sum | BITS[type], run.told);
  return { types, told };
}
