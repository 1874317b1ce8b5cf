import { isFinal, RUN_STATUS, type StatusWithReason } from './state-tables.js';

/** A command that begins: one step of a run. */
export interface StepStart {
  /** A unique id chosen by the program that runs the command; the command's telemetry has it as resource attribute `run_bridge.step.id`. */
  readonly stepId: string;
  /** The user's name for the run (`--run-id`), under which several commands are its steps; `null` for a run of this one step. */
  readonly runKey: string | null;
  /** Default `adhoc`. The run keeps the value of its first step, like the next three. */
  readonly job: string;
  readonly environment: string | null;
  readonly project: string | null;
  /** Why the run was started, for people to read. */
  readonly reason: string | null;
  /** A step of the same run, whatever `runKey` is; left out if `runKey` decides. */
  readonly runOf?: string;
  /** The command and its arguments, with secrets taken out. */
  readonly command: readonly string[];
  readonly startedUnixMs: number;
  /** Whose run it is; default: the first account. */
  readonly accountId?: number;
  /** Whether the run finishes with this step. Running steps may end; a further one starts a new run. */
  readonly isLast: boolean;
}

/** The job of runs without a name. */
export const DEFAULT_JOB = 'adhoc';

/** Where a step stands. */
export interface StepPosition {
  /** Of the run; a number that is never given again. */
  readonly runId: number;
  /** Position in the run, from 1, in the order in which steps began. */
  readonly stepIndex: number;
  /** The run's job, from its first step. */
  readonly job: string;
  /** Why the run was started, from its first step. */
  readonly reason: string | null;
  readonly accountId: number;
  readonly jobId: number;
  readonly projectId: number;
  readonly environmentId: number;
}

/** How a command ended. */
export type CommandEnding =
  /** It exited by itself; `stoppedBy` names the signal, for example `SIGINT`, by which it was asked to. */
  | { readonly kind: 'exited'; readonly exitCode: number; readonly stoppedBy?: string }
  /** A signal killed it, for example `SIGKILL`. */
  | { readonly kind: 'killed'; readonly signal: string }
  /** It could not be started (not found, not executable); why, in words. */
  | { readonly kind: 'notStarted'; readonly reason: string }
  /**
   * It was one of several engine commands inside a command that continued after it: its records show how it ended, there is no exit
   * code for it.
   */
  | { readonly kind: 'within' }
  /** Unknown: the program that ran it disappeared without a report. */
  | { readonly kind: 'unknown' };

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

/** Returns a step's status: the worst of its invocations and its command's end, once all of them are known. */
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

/** Returns a run's status by those of its steps. */
export function runStatus(
  steps: readonly StatusWithReason[],
  { isOver, isCancelled, failure }: RunEvidence,
): StatusWithReason {
  if (!isOver || steps.some(({ status }) => !isFinal(status))) {
    if (steps.length === 0) return { status: RUN_STATUS.queued, statusMessage: null };
    const isSeen = steps.some(({ status }) => status >= RUN_STATUS.running);
    return { status: isSeen ? RUN_STATUS.running : RUN_STATUS.starting, statusMessage: null };
  }
  if (isCancelled) return { status: RUN_STATUS.cancelled, statusMessage: failure ?? 'The run was canceled' };
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
