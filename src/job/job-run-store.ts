import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { changeState } from '../storage/database.js';
import { endRun, type RunObserver } from '../storage/execution-status.js';
import { addRun, touchRun, touchRunOfStep } from '../storage/executions.js';
import type { Fence } from '../storage/journal-store.js';
import { PROCESS_LEASE } from '../storage/lease-store.js';
import { parseLines } from '../storage/run-catalog.js';
import type { StateDb } from '../storage/state-tables.js';

/** Whether a run is queued, is running or has ended. */
export type JobRunState = 'queued' | 'running' | 'ended';

/** A run that was started over the API: its commands, in addition to its row as a run. */
export interface JobRunRow {
  readonly runId: number;
  readonly accountId: number;
  /** The key by which steps are registered for the run; generated when the run was requested. */
  readonly runKey: string;
  readonly job: string;
  readonly environment: string | null;
  readonly project: string | null;
  readonly reason: string | null;
  readonly state: JobRunState;
  /** Command lines that replace the job's; `null` if it runs the job's. */
  readonly stepsOverride: readonly string[] | null;
  /** Index of the first command to run, from 0. */
  readonly firstCommand: number;
  /** Hash of the commands when the run was requested; the runner uses the configuration at the time of the start. */
  readonly commandsDigest: string;
  /** Index of the command that failed, from 0; `null` if all succeeded or none was started. */
  readonly stoppedAt: number | null;
  /** Whether it was cancelled. */
  readonly isCancelled: boolean;
  /** Process id of the running command, as last saved. */
  readonly pid: number | null;
}

/** A run to add to the queue. */
export interface JobRunRequest {
  readonly accountId: number;
  readonly runKey: string;
  readonly job: string;
  readonly environment: string | null;
  readonly project: string | null;
  readonly reason: string | null;
  readonly stepsOverride: readonly string[] | null;
  readonly firstCommand: number;
  readonly commandsDigest: string;
  /** The failed run that this one retries; `null` if it is no retry. */
  readonly retriedRunId: number | null;
  readonly requestedUnixMs: number;
}

/** The most runs that may wait. */
export interface QueueLimits {
  /** For each job. */
  readonly perJob: number;
  readonly total: number;
}

/** The result of adding a run. */
export type AddedJobRun =
  | { readonly kind: 'added'; readonly runId: number }
  /** Too many runs are waiting: of this job (`perJob`) or of all (`total`). */
  | { readonly kind: 'full'; readonly limit: keyof QueueLimits; readonly waitingCount: number };

/** The output of a command. */
export interface StepOutput {
  /** The end of the output, without secrets. */
  readonly text: string;
  /** The number of bytes before it that were discarded. */
  readonly droppedBytes: number;
}

/** The queue of runs that were started over the API. */
export class JobRunStore {
  /** @param fence the identity of this process, if several share the database */
  constructor(
    private readonly db: StateDb,
    private readonly observer: RunObserver,
    private readonly fence: Fence | undefined,
  ) {}

  /** Adds a run at the end of the queue, unless it is full. */
  add(request: JobRunRequest, limits: QueueLimits): Promise<AddedJobRun> {
    return changeState(this.db, async (transaction) => {
      const waiting = await jobRuns(transaction)
        .where(IS_NOT_ENDED)
        .where('asked.state', '=', 'queued')
        .where('run.state', '=', 'open')
        .execute();
      const ofJob = waiting.filter(({ account_id, job }) => account_id === request.accountId && job === request.job);
      if (ofJob.length >= limits.perJob) return { kind: 'full', limit: 'perJob', waitingCount: ofJob.length };
      if (waiting.length >= limits.total) return { kind: 'full', limit: 'total', waitingCount: waiting.length };
      const start = { ...request, startedUnixMs: request.requestedUnixMs };
      const { execution_id: runId } = await addRun(transaction, start, request.accountId);
      await transaction
        .insertInto('job_runs')
        .values({
          run_id: runId,
          state: 'queued',
          first_command: request.firstCommand,
          commands_digest: request.commandsDigest,
          stopped_at: null,
          failure: null,
          pid: null,
          retried_run_id: request.retriedRunId,
          steps_override: request.stepsOverride && JSON.stringify(request.stepsOverride),
        })
        .execute();
      return { kind: 'added', runId };
    });
  }

  /** Whether any run is queued or running. */
  async hasWork(): Promise<boolean> {
    const row = await this.db
      .selectFrom('job_runs as asked')
      .select('run_id')
      .where(IS_NOT_ENDED)
      .limit(1)
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Takes the run that has waited longest among jobs without a running run, and marks it as running. */
  claim(): Promise<JobRunRow | undefined> {
    return changeState(this.db, async (transaction) => {
      const rows = await jobRuns(transaction).where(IS_NOT_ENDED).orderBy('asked.run_id').execute();
      const busy = new Set(rows.flatMap((row) => (row.state === 'running' ? [row.job_id] : [])));
      const next = rows.find((row) => row.state === 'queued' && row.run_state === 'open' && !busy.has(row.job_id));
      if (next === undefined) return undefined;
      await transaction
        .updateTable('job_runs')
        .set({ state: 'running', process_id: this.fence?.processId ?? null })
        .where('run_id', '=', next.run_id)
        .execute();
      return toRow({ ...next, state: 'running' });
    });
  }

  async find(runId: number): Promise<JobRunRow | undefined> {
    const row = await jobRuns(this.db).where('asked.run_id', '=', runId).executeTakeFirst();
    return row && toRow(row);
  }

  /** Lists runs marked as running, oldest first; if several processes share the database, only those of dead processes. */
  async listRunning(nowUnixMs: number): Promise<readonly JobRunRow[]> {
    const rows = await jobRuns(this.db)
      .where(IS_NOT_ENDED)
      .where('asked.state', '=', 'running')
      .$if(this.fence !== undefined, (query) =>
        query.where(({ or, eb, selectFrom }) =>
          or([
            eb('asked.process_id', 'is', null),
            eb(
              'asked.process_id',
              'not in',
              selectFrom('leases')
                .select('holder')
                .where('name', 'like', `${PROCESS_LEASE}%`)
                .where('expires_unix_ms', '>', nowUnixMs),
            ),
          ]),
        ),
      )
      .orderBy('asked.run_id')
      .execute();
    return rows.map(toRow);
  }

  async notePid(runId: number, pid: number): Promise<void> {
    await this.db.updateTable('job_runs').set({ pid }).where('run_id', '=', runId).execute();
  }

  /**
   * Removes the run from the queue and finishes its registered steps.
   * @param failure the reason, if the steps do not contain it
   */
  async end(
    runId: number,
    { stoppedAt, failure, nowUnixMs }: { stoppedAt: number | null; failure: string | null; nowUnixMs: number },
  ): Promise<void> {
    await changeState(this.db, async (transaction) => {
      await transaction
        .updateTable('job_runs')
        .set({ state: 'ended', stopped_at: stoppedAt, failure, pid: null })
        .where('run_id', '=', runId)
        .execute();
      await endRun(transaction, runId, nowUnixMs, this.observer);
      await touchRun(transaction, runId);
    });
  }

  /** Saves the output of a step. */
  async saveOutput(stepId: string, { text, droppedBytes }: StepOutput): Promise<void> {
    const row = { output: text, dropped_bytes: droppedBytes };
    await this.db
      .insertInto('step_outputs')
      .values({ step_id: stepId, ...row })
      .onConflict((conflict) => conflict.column('step_id').doUpdateSet(row))
      .execute();
    await touchRunOfStep(this.db, stepId);
  }

  /** Returns the output of steps by id; steps without output are left out. */
  async outputsOf(stepIds: readonly string[]): Promise<ReadonlyMap<string, StepOutput>> {
    if (stepIds.length === 0) return new Map();
    const rows = await this.db.selectFrom('step_outputs').selectAll().where('step_id', 'in', stepIds).execute();
    return new Map(rows.map((row) => [row.step_id, { text: row.output, droppedBytes: row.dropped_bytes }]));
  }
}

/** Written exactly as in the partial index. */
const IS_NOT_ENDED = sql<boolean>`asked.state <> 'ended'`;

function jobRuns(db: StateDb) {
  return db
    .selectFrom('job_runs as asked')
    .innerJoin('executions as run', 'run.id', 'asked.run_id')
    .selectAll('asked')
    .select(['run.account_id', 'run.run_key', 'run.job', 'run.job_id', 'run.environment', 'run.project', 'run.reason'])
    .select(['run.state as run_state', 'run.cancelled_unix_ms']);
}

type JobRunColumns = Awaited<ReturnType<ReturnType<typeof jobRuns>['execute']>>[number];

function toRow(row: JobRunColumns): JobRunRow {
  return {
    runId: row.run_id,
    accountId: row.account_id,
    runKey: row.run_key ?? '',
    job: row.job,
    environment: row.environment,
    project: row.project,
    reason: row.reason,
    state: row.state,
    stepsOverride: parseLines(row.steps_override),
    firstCommand: row.first_command,
    commandsDigest: row.commands_digest,
    stoppedAt: row.stopped_at,
    isCancelled: row.cancelled_unix_ms !== null,
    pid: row.pid,
  };
}

/** Hashes commands, so that a retry, which continues in the middle of them, can detect a change. */
export function digestOf(commands: readonly (readonly string[])[]): string {
  return createHash('sha256').update(JSON.stringify(commands)).digest('hex');
}
