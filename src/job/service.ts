import type { JobDefinition } from '../config/jobs.js';
import { commandsOfRun, linesOfRun, type RunCommands } from '../config/run-commands.js';
import type { Clock } from '../core/clock.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import type { ExecutionStore } from '../storage/execution-store.js';
import type { RunCatalog } from '../storage/run-catalog.js';
import { isFinal, RUN_STATUS, type RunStatus } from '../storage/state-tables.js';
import type { CancelState } from '../web/page/page-deps.js';
import {
  type AddedJobRun,
  digestOf,
  type JobRunRequest,
  type JobRunRow,
  type JobRunStore,
  type QueueLimits,
} from './job-run-store.js';
import type { JobRunner } from './runner.js';

/** The most waiting runs, of one job and in total; a further one is refused. */
export const QUEUE_LIMITS: QueueLimits = { perJob: 20, total: 200 };

/** The result of starting a run. */
export type StartResult =
  | { readonly kind: 'queued'; readonly runId: number }
  /** The configuration has no commands for the job. */
  | { readonly kind: 'noCommands' }
  /** The job may not run the requested steps. @property problem the reason, as a sentence */
  | { readonly kind: 'stepsRefused'; readonly problem: string }
  | Extract<AddedJobRun, { kind: 'full' }>;

/** The result of retrying a run. */
export type RetryResult =
  | StartResult
  /** The run has not ended or has succeeded, so there is nothing to retry. */
  | { readonly kind: 'notOver' | 'succeeded' };

/** Where a retry of a run would continue. */
export type StopResult =
  /** @property skippedCommands the command lines that were not started; empty if they are unknown */
  | { readonly kind: 'stopped'; readonly skippedCommands: readonly string[] }
  | { readonly kind: 'notOver' | 'succeeded' };

/** The result of cancelling a run. */
export type CancelResult =
  | { readonly kind: 'cancelled' | 'alreadyOver' }
  /** The command does not run under `exec`, so it cannot be interrupted. */
  | { readonly kind: 'outOfReach' };

/** The fields of a run that are needed here. */
export interface RunToChange {
  readonly accountId: number;
  readonly runId: number;
  readonly job: string;
  readonly status: RunStatus;
}

/** A run to queue. With `retriedRunId` it repeats that run with its steps, from the command at which it stopped. */
type NewRun = Pick<JobRunRequest, 'accountId' | 'job' | 'reason' | 'retriedRunId' | 'stepsOverride'>;

/** Dependencies of the service. */
export interface JobServiceDeps {
  /** The configured jobs by name. */
  readonly jobs: ReadonlyMap<string, JobDefinition>;
  readonly queue: JobRunStore;
  readonly catalog: Pick<RunCatalog, 'latestRunOf'>;
  readonly executions: Pick<ExecutionStore, 'cancel' | 'listRunning' | 'listSteps'>;
  readonly runner: Pick<JobRunner, 'wake' | 'onCancelled'>;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Starts, retries and cancels runs. Commands come from the configuration, or are steps that `commandsOfRun` allows for a job. */
export class JobService {
  constructor(private readonly deps: JobServiceDeps) {}

  /** Returns a configured job if it belongs to the account. */
  definitionOf(accountId: number, job: string): JobDefinition | undefined {
    // The configuration belongs to the first account.
    return accountId === FIRST_ACCOUNT_ID ? this.deps.jobs.get(job) : undefined;
  }

  /**
   * Queues a run of a job.
   * @param reason for people to read
   * @param stepsOverride command lines that replace the job's; `null` for the job's
   * @throws StoreError
   */
  start(
    accountId: number,
    job: string,
    reason: string | null,
    stepsOverride: readonly string[] | null = null,
  ): Promise<StartResult> {
    return this.add({ accountId, job, reason, retriedRunId: null, stepsOverride });
  }

  /** Queues a job's last run again, from the command at which it stopped, or the whole job if it did not stop. @throws StoreError */
  async rerun(accountId: number, job: string, reason: string | null): Promise<StartResult> {
    const latest = await this.deps.catalog.latestRunOf(accountId, job);
    const retriedRunId = latest !== undefined && isFailed(latest.status) ? latest.runId : null;
    return this.add({ accountId, job, reason, retriedRunId, stepsOverride: null });
  }

  /** Queues a failed or cancelled run again, from the command at which it stopped. @throws StoreError */
  async retry({ accountId, runId, job, status }: RunToChange, reason: string | null): Promise<RetryResult> {
    if (!isFinal(status)) return { kind: 'notOver' };
    if (!isFailed(status)) return { kind: 'succeeded' };
    return this.add({ accountId, job, reason, retriedRunId: runId, stepsOverride: null });
  }

  /** Returns where a failed or cancelled run stopped. @throws StoreError */
  async stopOfRun({ accountId, runId, job, status }: RunToChange): Promise<StopResult> {
    if (!isFinal(status)) return { kind: 'notOver' };
    if (!isFailed(status)) return { kind: 'succeeded' };
    const definition = this.definitionOf(accountId, job);
    const row = await this.deps.queue.find(runId);
    if (definition === undefined || row === undefined) return { kind: 'stopped', skippedCommands: [] };
    const stoppedAt = stopIn(row, commandsOfRun(definition, row.stepsOverride));
    const lines = linesOfRun(definition, row.stepsOverride);
    return { kind: 'stopped', skippedCommands: stoppedAt === null ? [] : lines.slice(stoppedAt + 1) };
  }

  /** Cancels a queued or running run. @throws StoreError */
  async cancel({ accountId, runId, status }: RunToChange): Promise<CancelResult> {
    const { executions, clock, queue, runner } = this.deps;
    if (isFinal(status)) return { kind: 'alreadyOver' };
    const row = await queue.find(runId);
    if (row === undefined && !(await isInReach(runId, executions))) return { kind: 'outOfReach' };
    const nowUnixMs = clock.nowUnixMs();
    if ((await executions.cancel(accountId, runId, nowUnixMs)) === undefined) return { kind: 'alreadyOver' };
    if (row?.state === 'queued') await queue.end(runId, { stoppedAt: row.firstCommand, failure: null, nowUnixMs });
    runner.onCancelled(runId);
    return { kind: 'cancelled' };
  }

  /** Lets queued runs start; to be called after the request was answered. */
  startQueued(): void {
    this.deps.runner.wake();
  }

  private async add({ accountId, job, reason, retriedRunId, stepsOverride: given }: NewRun): Promise<StartResult> {
    const { queue, clock, newId } = this.deps;
    const definition = this.definitionOf(accountId, job);
    if (definition === undefined || definition.commands.length === 0) return { kind: 'noCommands' };
    const retried = retriedRunId === null ? undefined : await queue.find(retriedRunId);
    const stepsOverride = retried?.stepsOverride ?? given;
    const run = commandsOfRun(definition, stepsOverride);
    if ('problem' in run) return { kind: 'stepsRefused', problem: run.problem };
    const { environment, project } = definition;
    const scope = { accountId, job, environment, project, reason };
    const added = await queue.add(
      {
        ...scope,
        runKey: newId(),
        stepsOverride,
        firstCommand: retried === undefined ? 0 : (stopIn(retried, run) ?? 0),
        commandsDigest: digestOf(run.commands),
        retriedRunId,
        requestedUnixMs: clock.nowUnixMs(),
      },
      QUEUE_LIMITS,
    );
    if (added.kind === 'full') return added;
    return { kind: 'queued', runId: added.runId };
  }
}

/** Returns whether a run that is not over can be cancelled. @throws StoreError */
export async function cancelStateOf(
  runId: number,
  {
    queue,
    executions,
  }: {
    queue: Pick<JobRunStore, 'find'>;
    executions: Pick<ExecutionStore, 'isCancelled' | 'listRunning' | 'listSteps'>;
  },
): Promise<CancelState> {
  const latest = (await executions.listSteps(runId)).at(-1);
  if (latest !== undefined && (await executions.isCancelled(latest.stepId))) return 'requested';
  const isReached = (await queue.find(runId)) !== undefined || (await isInReach(runId, executions));
  return isReached ? 'possible' : 'outOfReach';
}

/** Whether a program that listens runs the commands of a run, or none of them runs. */
async function isInReach(
  runId: number,
  executions: Pick<ExecutionStore, 'listRunning' | 'listSteps'>,
): Promise<boolean> {
  const isReached = (await executions.listRunning()).some(({ run }) => run.runId === runId);
  return isReached || (await executions.listSteps(runId)).every(({ ending }) => ending !== null);
}

/** Returns the command at which a run stopped, if these are still its commands; `null` if not, or if it was not started here. */
function stopIn({ commandsDigest, stoppedAt }: JobRunRow, run: RunCommands): number | null {
  if ('problem' in run || commandsDigest !== digestOf(run.commands)) return null;
  return stoppedAt !== null && stoppedAt < run.commands.length ? stoppedAt : null;
}

function isFailed(status: RunStatus): boolean {
  return status === RUN_STATUS.error || status === RUN_STATUS.cancelled;
}
