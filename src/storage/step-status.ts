import type { CommandEnding } from './command-ending.js';
import { isFinal, RUN_STATUS, type StatusWithReason } from './state-tables.js';

/** The result of an invocation for its step. */
export interface InvocationEvidence {
  readonly verdict: 'success' | 'error' | 'canceled' | 'lost' | null;
  readonly statusMessage: string | null;
  /** Whether its Parquet can be read. */
  readonly isSaved: boolean;
}

/** The state of a step. */
export interface StepEvidence {
  /** `null` while it is running. */
  readonly ending: CommandEnding | null;
  /** Whether a program runs the command and reports its end; otherwise only its telemetry shows it. */
  readonly isReported: boolean;
  readonly invocations: readonly InvocationEvidence[];
  /** Whether records of it have come that are not judged yet, or artifacts of it are being uploaded. */
  readonly isAwaited: boolean;
}

/** The status of a command whose end is unknown. */
export const NO_END_SEEN = 'no end seen';

/** Signals that stop a command on purpose; any other is a fault. A shell exits with 128 plus the number. */
const STOP_SIGNALS: ReadonlyMap<string, number> = new Map([
  ['SIGHUP', 129],
  ['SIGINT', 130],
  ['SIGTERM', 143],
]);

/** A step's status: the worst of its invocations and its command's end, once all of them are known. */
export function stepStatus({ ending, isReported, invocations, isAwaited }: StepEvidence): StatusWithReason {
  const areJudged = invocations.every(({ verdict, isSaved }) => verdict !== null && isSaved);
  const isOver = isReported ? ending !== null && !isAwaited : invocations.length > 0;
  if (!isOver || !areJudged) {
    return { status: invocations.length > 0 ? RUN_STATUS.running : RUN_STATUS.starting, statusMessage: null };
  }
  const worst = (verdict: InvocationEvidence['verdict']) => invocations.find((one) => one.verdict === verdict);
  const failed = worst('error');
  if (failed !== undefined) return { status: RUN_STATUS.error, statusMessage: failed.statusMessage };
  const canceled = worst('canceled');
  if (canceled !== undefined) return { status: RUN_STATUS.cancelled, statusMessage: canceled.statusMessage };
  if (worst('lost') !== undefined) return { status: RUN_STATUS.error, statusMessage: NO_END_SEEN };
  return endingStatus(ending, invocations.length > 0);
}

/** The state of a run beside its steps. */
export interface RunEvidence {
  /** Whether it takes no more steps, and all have ended. */
  readonly isOver: boolean;
  readonly isCancelled: boolean;
  /** Why it ended early; `null` if its steps contain the reason. */
  readonly failure: string | null;
}

/** A run's status by those of its steps. */
export function runStatus(
  steps: readonly StatusWithReason[],
  { isOver, isCancelled, failure }: RunEvidence,
): StatusWithReason {
  if (!isOver || steps.some(({ status }) => !isFinal(status))) {
    if (steps.length === 0) return { status: RUN_STATUS.queued, statusMessage: null };
    const isSeen = steps.some(({ status }) => status >= RUN_STATUS.running);
    return { status: isSeen ? RUN_STATUS.running : RUN_STATUS.starting, statusMessage: null };
  }
  if (isCancelled) return { status: RUN_STATUS.cancelled, statusMessage: failure ?? 'The run was cancelled' };
  if (failure !== null) return { status: RUN_STATUS.error, statusMessage: failure };
  const decisive = [RUN_STATUS.error, RUN_STATUS.cancelled].flatMap((each) =>
    steps.filter(({ status }) => status === each),
  );
  return decisive[0] ?? { status: RUN_STATUS.success, statusMessage: null };
}

function endingStatus(ending: CommandEnding | null, hasInvocations: boolean): StatusWithReason {
  switch (ending?.kind) {
    case undefined:
      return { status: RUN_STATUS.success, statusMessage: null };
    case 'within':
    case 'unknown':
      // Its telemetry decides; without any, the outcome is unknown.
      return hasInvocations
        ? { status: RUN_STATUS.success, statusMessage: null }
        : { status: RUN_STATUS.error, statusMessage: NO_END_SEEN };
    case 'notStarted':
      return {
        status: RUN_STATUS.error,
        statusMessage: `The command could not be started${ending.reason === '' ? '' : ` (${ending.reason})`}`,
      };
    case 'killed':
      return {
        status: STOP_SIGNALS.has(ending.signal) ? RUN_STATUS.cancelled : RUN_STATUS.error,
        statusMessage: `The command was killed by ${ending.signal}`,
      };
    case 'exited': {
      if (ending.exitCode === 0) return { status: RUN_STATUS.success, statusMessage: null };
      const isStopped = [...STOP_SIGNALS.values()].includes(ending.exitCode);
      return {
        status: isStopped ? RUN_STATUS.cancelled : RUN_STATUS.error,
        statusMessage: `The command ended with exit code ${ending.exitCode}`,
      };
    }
  }
}
