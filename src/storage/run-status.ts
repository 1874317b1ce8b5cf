/** Where a run or a step stands, by the hosted platform's numbers. */
export const RUN_STATUS = {
  queued: 1,
  /** A command was started, and no record of it has come. */
  starting: 2,
  running: 3,
  success: 10,
  error: 20,
  cancelled: 30,
} as const;

/** One of `RUN_STATUS`. Those from 10 on are final: everything of the run can be read. */
export type RunStatus = (typeof RUN_STATUS)[keyof typeof RUN_STATUS];

/** A status, and why it is that, in words. */
export interface StatusWithReason {
  readonly status: RunStatus;
  readonly statusMessage: string | null;
}

/** Whether a run or step is over, and its artifacts can be read. */
export function isFinal(status: RunStatus): boolean {
  return status >= RUN_STATUS.success;
}
