import {
  type ExpressionBuilder,
  type Insertable,
  type Selectable,
  sql,
  type Transaction,
  type Updateable,
} from 'kysely';
import { slices } from '../core/lists.js';
import { parseTraceId, type TraceId } from '../record/telemetry-record.js';
import { FIRST_ACCOUNT_ID } from './account-store.js';
import { changeState, nextIds } from './database.js';
import { namedIds } from './scope-store.js';
import { isFinal, NOT_FINISHED, RUN_STATUS, type RunStatus, type StateDb, type StateTables } from './state-tables.js';
import { type CommandEnding, runStatus, type StepPosition, type StepStart, stepStatus } from './steps.js';

/**
 * Whether a run accepts further steps (`open`), ends with the running ones (`closing`), or has ended (`finished`).
 */
export type ExecutionState = 'open' | 'closing' | 'finished';

/** A run: one execution of a job, made of steps. */
export interface ExecutionRow {
  readonly runId: number;
  /** The user's name for it (`--run-id`); `null` if there is none. */
  readonly runKey: string | null;
  readonly job: string;
  readonly environment: string | null;
  readonly project: string | null;
  readonly reason: string | null;
  readonly state: ExecutionState;
  readonly startedUnixMs: number;
  /** `null` until it is over. */
  readonly endedUnixMs: number | null;
  /** Steps registered so far. */
  readonly stepCount: number;
  /** Those that ended, and not with exit code 0. */
  readonly failedStepCount: number;
}

/** A run with a name that accepts steps and has none running. */
export interface IdleRun {
  readonly runKey: string;
  /** Whose it is: accounts have names of their own. */
  readonly accountId: number;
}

/** A step: one command of a run. */
export interface StepRow {
  readonly stepId: string;
  readonly stepIndex: number;
  readonly run: ExecutionRow;
  readonly command: readonly string[];
  readonly startedUnixMs: number;
  /** Both `null` while it is running. */
  readonly endedUnixMs: number | null;
  readonly ending: CommandEnding | null;
  /** Traces that contain its records, as far as known. */
  readonly traceCount: number;
  /** The program that will report its end: this one (`local`), or another one over HTTP (`remote`). */
  readonly reporter: StepReporter;
}

/** See `StepRow.reporter`. */
export type StepReporter = 'local' | 'remote';

/** What is to be done with a run that is cancelled. */
export interface CancelResult {
  /** Its running steps; it ends with them. */
  readonly runningCount: number;
}

/** A step that ended. */
export interface EndedStep {
  readonly step: StepRow;
  /** Whether it is new. */
  readonly isNew: boolean;
}

/** The outcome of finishing a run. */
export type FinishResult =
  | { readonly kind: 'finished'; readonly run: ExecutionRow }
  /** Steps of it are running; it ends with them. */
  | { readonly kind: 'closing'; readonly run: ExecutionRow; readonly runningCount: number }
  | { readonly kind: 'alreadyFinished'; readonly run: ExecutionRow }
  | { readonly kind: 'unknownRun' };

/** Artifacts that a step is to have before its run is over. */
export interface ExpectedArtifacts {
  readonly runId: number;
  readonly stepIndex: number;
  readonly paths: readonly string[];
}

/** A step whose artifacts are being uploaded. */
export interface UploadingStep {
  readonly stepId: string;
  readonly reporter: StepReporter;
}

/** Artifacts that never arrived. */
export interface MissingArtifacts {
  readonly paths: readonly string[];
  /** Why, in words. */
  readonly reason: string;
}

/** Number of steps whose runs are checked at a time. */
const MAX_SETTLED = 1_000;

/** Rows of runs and their steps in an SQL database. */
export class ExecutionStore {
  constructor(
    private readonly db: StateDb,
    private readonly observer: RunObserver,
  ) {}

  /** Adds a step, and its run if none accepts it. A known step stays unchanged. */
  begin(start: StepStart, reporter: StepReporter): Promise<StepPosition> {
    return changeState(this.db, async (transaction) => {
      const known = await findStep(transaction, start.stepId);
      if (known !== undefined) return placeOf(known, known.step_index);
      const accountId = start.accountId ?? FIRST_ACCOUNT_ID;
      const run =
        (await runOf(transaction, start)) ??
        (await openRun(transaction, start.runKey, accountId)) ??
        (await addRun(transaction, start, accountId));
      return await addStep(transaction, run, start, reporter, this.observer);
    });
  }

  /** Adds a step to a run; `undefined` where that takes no more steps: it was cancelled, or is over. */
  beginIn(runId: number, start: StepStart, reporter: StepReporter): Promise<StepPosition | undefined> {
    return changeState(this.db, async (transaction) => {
      const run = await selectRuns(transaction)
        .where('run.id', '=', runId)
        .where('run.state', '=', 'open')
        .executeTakeFirst();
      return run && (await addStep(transaction, run, start, reporter, this.observer));
    });
  }

  /** Records that a trace contains records of a step; `false` for an unknown step. */
  attach(stepId: string, traceId: TraceId): Promise<boolean> {
    return changeState(this.db, async (transaction) => {
      if ((await findStep(transaction, stepId)) === undefined) return false;
      await transaction
        .insertInto('step_traces')
        .values({ trace_id: traceId, step_id: stepId })
        .onConflict((conflict) => conflict.columns(['trace_id', 'step_id']).doNothing())
        .execute();
      return true;
    });
  }

  /**
   * Records how a step ended, and the end of its run if it was the last one. A known end is not overwritten, unless it is
   * unknown how it ended. `undefined` for an unknown step.
   */
  end(stepId: string, ending: CommandEnding, endedUnixMs: number): Promise<EndedStep | undefined> {
    return changeState(this.db, async (transaction) => {
      const step = await findStep(transaction, stepId);
      if (step === undefined) return undefined;
      if (step.ending === null || step.ending === 'unknown') {
        await updateStep(transaction, stepId, { ...fromEnding(ending), ended_unix_ms: endedUnixMs });
      }
      // An engine command that ended within the last command, which continues.
      if (step.is_last !== 0 && ending.kind !== 'within') await closeRun(transaction, step.execution_id);
      await finishIfOver(transaction, step.execution_id);
      await settleSteps(transaction, [stepId], endedUnixMs, this.observer);
      const ended = await findStep(transaction, stepId);
      return ended && { step: toStep(ended), isNew: step.ending === null };
    });
  }

  /**
   * Records expected artifacts of a step: its run does not end before `endArtifacts`. Earlier ones stay expected,
   * also if they were given up meanwhile. `false` for an unknown step.
   */
  expectArtifacts(stepId: string, paths: readonly string[]): Promise<boolean> {
    return changeState(this.db, async (transaction) => {
      if ((await findStep(transaction, stepId)) === undefined) return false;
      const known = await transaction
        .selectFrom('step_artifacts')
        .selectAll()
        .where('step_id', '=', stepId)
        .executeTakeFirst();
      const before = known === undefined ? [] : parsePaths(known.paths);
      const all = [...new Set([...before, ...paths])];
      if (all.length === 0) return true;
      // Artifacts that arrived before others were given up are no longer listed.
      const expected_count = Math.max(known?.expected_count ?? 0, all.length);
      const row = {
        state: 'expected' as const,
        expected_count,
        missing_count: 0,
        paths: JSON.stringify(all),
        reason: null,
      };
      await transaction
        .insertInto('step_artifacts')
        .values({ step_id: stepId, ...row })
        .onConflict((conflict) => conflict.column('step_id').doUpdateSet(row))
        .execute();
      return true;
    });
  }

  /** The expected artifacts of a step while its upload has not ended; `undefined` if there are none. */
  async expectedArtifacts(stepId: string): Promise<ExpectedArtifacts | undefined> {
    const row = await this.db
      .selectFrom('step_artifacts as artifacts')
      .innerJoin('execution_steps as step', 'step.step_id', 'artifacts.step_id')
      .select(['step.execution_id', 'step.step_index', 'artifacts.paths'])
      .where('artifacts.step_id', '=', stepId)
      .where('artifacts.state', '=', 'expected')
      .executeTakeFirst();
    return row && { runId: row.execution_id, stepIndex: row.step_index, paths: parsePaths(row.paths) };
  }

  /** Records that all expected artifacts can be downloaded (`null`), or which never arrived; the run may end with it. */
  endArtifacts(stepId: string, missing: MissingArtifacts | null, nowUnixMs: number): Promise<void> {
    return changeState(this.db, async (transaction) => {
      const step = await findStep(transaction, stepId);
      if (missing === null) {
        await transaction.deleteFrom('step_artifacts').where('step_id', '=', stepId).execute();
      } else {
        const { paths, reason } = missing;
        await transaction
          .updateTable('step_artifacts')
          .set({ state: 'missing', missing_count: paths.length, paths: JSON.stringify(paths), reason })
          .where('step_id', '=', stepId)
          .execute();
      }
      if (step === undefined) return;
      await touchRun(transaction, step.execution_id);
      if (step.ending !== null) await settleSteps(transaction, [stepId], nowUnixMs, this.observer);
    });
  }

  /** Steps whose artifacts are being uploaded. */
  async listUploading(): Promise<readonly UploadingStep[]> {
    const rows = await this.db
      .selectFrom('step_artifacts as artifacts')
      .innerJoin('execution_steps as step', 'step.step_id', 'artifacts.step_id')
      .select(['step.step_id', 'step.reporter'])
      .where('artifacts.state', '=', 'expected')
      .orderBy('step.step_id')
      .execute();
    return rows.map(({ step_id, reporter }) => ({
      stepId: step_id,
      reporter: reporter === 'remote' ? 'remote' : 'local',
    }));
  }

  /** The run accepts no more steps, and ends when none is running. @param accountId default: the first account */
  finish(runKey: string, accountId = FIRST_ACCOUNT_ID): Promise<FinishResult> {
    return changeState(this.db, async (transaction) => {
      const found = await latestRun(transaction, runKey, accountId);
      if (found === undefined) return { kind: 'unknownRun' };
      if (found.state === 'finished') return { kind: 'alreadyFinished', run: toRun(found) };
      await closeRun(transaction, found.execution_id);
      const runningCount = await finishIfOver(transaction, found.execution_id);
      await settleRuns(transaction, [found.execution_id], null, this.observer);
      const run = toRun((await latestRun(transaction, runKey, accountId)) ?? found);
      return runningCount === 0 ? { kind: 'finished', run } : { kind: 'closing', run, runningCount };
    });
  }

  /**
   * Marks a run that is not over as cancelled: it takes no more steps, and ends with that status. `undefined` where the
   * account has no such run that is not over.
   */
  cancel(accountId: number, runId: number, nowUnixMs: number): Promise<CancelResult | undefined> {
    return changeState(this.db, async (transaction) => {
      const marked = await transaction
        .updateTable('executions')
        .set({ cancelled_unix_ms: nowUnixMs, updated_unix_ms: nowUnixMs })
        .where('id', '=', runId)
        .where('account_id', '=', accountId)
        .where('state', '<>', 'finished')
        .returning('id')
        .executeTakeFirst();
      if (marked === undefined) return undefined;
      return { runningCount: await endRun(transaction, runId, nowUnixMs, this.observer) };
    });
  }

  /**
   * Sets the status of runs whose commands have ended and whose telemetry was awaited: a trace without any records
   * is no longer awaited.
   */
  settle(nowUnixMs: number): Promise<void> {
    return changeState(this.db, async (transaction) => {
      const unsettled = await transaction
        .selectFrom('executions')
        .innerJoin('execution_steps as step', 'step.execution_id', 'executions.id')
        .select('step.step_id')
        // Spelt as the partial index spells it.
        .where(sql<boolean>`executions.state = 'finished' and executions.status < 10`)
        .limit(MAX_SETTLED)
        .execute();
      await settleSteps(
        transaction,
        unsettled.map(({ step_id }) => step_id),
        nowUnixMs,
        this.observer,
      );
    });
  }

  /** Whether the run of a step was cancelled. */
  async isCancelled(stepId: string): Promise<boolean> {
    const row = await this.db
      .selectFrom('execution_steps as step')
      .innerJoin('executions as run', 'run.id', 'step.execution_id')
      .select('run.cancelled_unix_ms')
      .where('step.step_id', '=', stepId)
      .executeTakeFirst();
    return row !== undefined && row.cancelled_unix_ms !== null;
  }

  async findStep(stepId: string): Promise<StepRow | undefined> {
    const row = await findStep(this.db, stepId);
    return row && toStep(row);
  }

  /** Registered steps with records in a trace, in the order in which they started. */
  async stepsOf(traceId: TraceId): Promise<readonly StepRow[]> {
    const rows = await selectSteps(this.db)
      .innerJoin('step_traces', 'step_traces.step_id', 'step.step_id')
      .where('step_traces.trace_id', '=', traceId)
      .where('step.reporter', '<>', 'nobody')
      .orderBy('step.started_unix_ms')
      .orderBy('step.step_index')
      .execute();
    return rows.map(toStep);
  }

  /** Traces that hold records of a step. */
  async tracesOf(stepId: string): Promise<readonly TraceId[]> {
    const rows = await this.db
      .selectFrom('step_traces')
      .select('trace_id')
      .where('step_id', '=', stepId)
      .orderBy('trace_id')
      .execute();
    return rows.flatMap((row) => parseTraceId(row.trace_id) ?? []);
  }

  /** A run's steps, by their position. */
  async listSteps(runId: number): Promise<readonly StepRow[]> {
    const rows = await selectSteps(this.db).where('step.execution_id', '=', runId).orderBy('step.step_index').execute();
    return rows.map(toStep);
  }

  /** Registered running steps, oldest first. */
  async listRunning(): Promise<readonly StepRow[]> {
    const rows = await selectSteps(this.db)
      .where('step.ending', 'is', null)
      .where('step.reporter', '<>', 'nobody')
      .orderBy('step.execution_id')
      .execute();
    return rows.map(toStep);
  }

  /** Records a sign of life of the program that runs a step. */
  async noteHeard(stepId: string, nowUnixMs: number): Promise<void> {
    await updateStep(this.db, stepId, { heard_unix_ms: nowUnixMs });
  }

  /** Remote steps that are running or uploading artifacts, without a sign of life since that time. */
  async listSilent(sinceUnixMs: number): Promise<readonly StepRow[]> {
    const rows = await selectSteps(this.db)
      .where(({ or, eb, exists, selectFrom }) =>
        or([
          eb('step.ending', 'is', null),
          exists(
            selectFrom('step_artifacts as artifacts')
              .select('artifacts.step_id')
              .whereRef('artifacts.step_id', '=', 'step.step_id')
              .where('artifacts.state', '=', 'expected'),
          ),
        ]),
      )
      .where('step.reporter', '=', 'remote')
      .where(({ eb, fn }) => eb(fn.coalesce('step.heard_unix_ms', 'step.started_unix_ms'), '<', sinceUnixMs))
      .orderBy('step.execution_id')
      .execute();
    return rows.map(toStep);
  }

  /** Runs that accept steps and have had none running since that time, oldest first. */
  async listIdle(sinceUnixMs: number): Promise<readonly IdleRun[]> {
    const rows = await this.db
      .selectFrom('executions as run')
      .select(['run.run_key', 'run.account_id'])
      // Spelt as the partial index spells it, or SQLite does not use it: finished runs cost a start nothing.
      .where(sql<boolean>`run.state = 'open' and run.run_key is not null`)
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('execution_steps as step')
              .select('step.step_id')
              .whereRef('step.execution_id', '=', 'run.id')
              .where(({ or, eb }) => or([eb('step.ending', 'is', null), eb('step.ended_unix_ms', '>', sinceUnixMs)])),
          ),
        ),
      )
      // What waits for its turn has no step yet.
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('job_runs')
              .select('job_runs.run_id')
              .whereRef('job_runs.run_id', '=', 'run.id')
              .where('job_runs.state', '<>', 'ended'),
          ),
        ),
      )
      .orderBy('run.id')
      .execute();
    return rows.flatMap(({ run_key: runKey, account_id: accountId }) =>
      runKey === null ? [] : [{ runKey, accountId }],
    );
  }
}

/** The run that a step is of because another one is. */
async function runOf(db: StateDb, { runOf: stepId }: StepStart): Promise<RunColumns | undefined> {
  return stepId === undefined ? undefined : await findStep(db, stepId);
}

async function addStep(
  transaction: Transaction<StateTables>,
  run: RunColumns,
  start: StepStart,
  reporter: StepReporter,
  observer: RunObserver,
): Promise<StepPosition> {
  const stepIndex = run.step_count + 1;
  await updateRun(transaction, run.execution_id, { step_count: stepIndex });
  await transaction
    .insertInto('execution_steps')
    .values({
      id: await nextIds(transaction, 'step', 1),
      step_id: start.stepId,
      execution_id: run.execution_id,
      step_index: stepIndex,
      command: JSON.stringify(start.command),
      reporter,
      is_last: start.isLast ? 1 : 0,
      started_unix_ms: start.startedUnixMs,
      ended_unix_ms: null,
      ending: null,
      exit_code: null,
      ending_detail: null,
      updated_unix_ms: start.startedUnixMs,
      seen_unix_ms: null,
      status: RUN_STATUS.starting,
      status_message: null,
    })
    .execute();
  await settleRuns(transaction, [run.execution_id], start.startedUnixMs, observer);
  return placeOf(run, stepIndex);
}

function placeOf(run: RunColumns, stepIndex: number): StepPosition {
  return {
    runId: run.execution_id,
    stepIndex,
    job: run.job,
    reason: run.reason,
    accountId: run.account_id,
    jobId: run.job_id,
    projectId: run.project_id,
    environmentId: run.environment_id,
  };
}

/** Only the store writes the column, from a list of texts. */
function parsePaths(paths: string): readonly string[] {
  return JSON.parse(paths) as readonly string[];
}

/** Columns of a run, beside those of a step. */
const RUN_COLUMNS = [
  'run.run_key',
  'run.job',
  'run.environment',
  'run.project',
  'run.reason',
  'run.state',
  'run.started_unix_ms as run_started_unix_ms',
  'run.ended_unix_ms as run_ended_unix_ms',
  'run.step_count',
  'run.account_id',
  'run.job_id',
  'run.project_id',
  'run.environment_id',
] as const;
const FAILED_STEP_COUNT = sql<number>`(
  select count(*) from execution_steps as other
  where other.execution_id = run.id and (other.ending not in ('exited', 'within') or other.exit_code <> 0))`.as(
  'failed_step_count',
);
const TRACE_COUNT = sql<number>`(select count(*) from step_traces as trace where trace.step_id = step.step_id)`.as(
  'trace_count',
);

/** Runs, as `toRun` takes them; the table is `run`. */
function selectRuns(db: StateDb) {
  return db
    .selectFrom('executions as run')
    .select(['run.id as execution_id', ...RUN_COLUMNS])
    .select(FAILED_STEP_COUNT);
}

/** Steps with their runs, as `toStep` takes them; the tables are `step` and `run`. */
function selectSteps(db: StateDb) {
  return db
    .selectFrom('execution_steps as step')
    .innerJoin('executions as run', 'run.id', 'step.execution_id')
    .selectAll('step')
    .select(RUN_COLUMNS)
    .select([FAILED_STEP_COUNT, TRACE_COUNT]);
}

/** One step, registered or not. */
function findStep(db: StateDb, stepId: string): Promise<StepColumns | undefined> {
  return selectSteps(db).where('step.step_id', '=', stepId).executeTakeFirst();
}

/** The run of that name that takes further steps. */
async function openRun(db: StateDb, runKey: string | null, accountId: number): Promise<RunColumns | undefined> {
  if (runKey === null) return undefined;
  return await selectRuns(db)
    .where('run.run_key', '=', runKey)
    .where('run.account_id', '=', accountId)
    .where('run.state', '=', 'open')
    .executeTakeFirst();
}

/** The latest run of that name. */
function latestRun(db: StateDb, runKey: string, accountId: number): Promise<RunColumns | undefined> {
  return selectRuns(db)
    .where('run.run_key', '=', runKey)
    .where('run.account_id', '=', accountId)
    .orderBy('run.id', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** What is read of a run's row. */
export type RunColumns = Pick<
  StateTables['executions'],
  | 'run_key'
  | 'job'
  | 'environment'
  | 'project'
  | 'reason'
  | 'state'
  | 'step_count'
  | 'account_id'
  | 'job_id'
  | 'project_id'
  | 'environment_id'
> & {
  readonly execution_id: number;
  readonly run_started_unix_ms: number;
  readonly run_ended_unix_ms: number | null;
  readonly failed_step_count: number;
};

/** The columns of a step's row, with its run's. */
type StepColumns = Selectable<StateTables['execution_steps']> & RunColumns & { readonly trace_count: number };

function toRun(row: RunColumns): ExecutionRow {
  return {
    runId: row.execution_id,
    runKey: row.run_key,
    job: row.job,
    environment: row.environment,
    project: row.project,
    reason: row.reason,
    state: row.state,
    startedUnixMs: row.run_started_unix_ms,
    endedUnixMs: row.run_ended_unix_ms,
    stepCount: row.step_count,
    failedStepCount: row.failed_step_count,
  };
}

function toStep(row: StepColumns): StepRow {
  return {
    stepId: row.step_id,
    stepIndex: row.step_index,
    run: toRun(row),
    // Only `begin` writes the column, from a list of texts.
    command: JSON.parse(row.command) as readonly string[],
    startedUnixMs: row.started_unix_ms,
    endedUnixMs: row.ended_unix_ms,
    ending: toEnding(row),
    traceCount: row.trace_count,
    // Unregistered steps are read only by their own store.
    reporter: row.reporter === 'remote' ? 'remote' : 'local',
  };
}

/** The columns with the end of a step. */
type EndingColumns = Pick<StateTables['execution_steps'], 'ending' | 'exit_code' | 'ending_detail'>;

export function fromEnding(ending: CommandEnding): EndingColumns {
  switch (ending.kind) {
    case 'exited':
      return { ending: ending.kind, exit_code: ending.exitCode | 0, ending_detail: ending.stoppedBy ?? null };
    case 'killed':
      return { ending: ending.kind, exit_code: null, ending_detail: ending.signal };
    case 'notStarted':
      return { ending: ending.kind, exit_code: null, ending_detail: ending.reason };
    case 'within':
    case 'unknown':
      return { ending: ending.kind, exit_code: null, ending_detail: null };
  }
}

/** How a step's command ended, from its row; `null` while it is running. */
function toEnding({ ending, exit_code, ending_detail }: EndingColumns): CommandEnding | null {
  switch (ending) {
    case null:
      return null;
    case 'exited':
      return {
        kind: ending,
        exitCode: exit_code ?? 0,
        ...(ending_detail === null ? {} : { stoppedBy: ending_detail }),
      };
    case 'killed':
      return { kind: ending, signal: ending_detail ?? 'a signal' };
    case 'notStarted':
      return { kind: ending, reason: ending_detail ?? '' };
    case 'within':
    case 'unknown':
      return { kind: ending };
  }
}

/** The properties of a run from its first step. */
export type RunStart = Pick<StepStart, 'runKey' | 'job' | 'environment' | 'project' | 'reason' | 'startedUnixMs'>;

/** Adds a run. One without a name accepts only one step. @param numberOf its earlier id, if it had one; default: a new one */
export async function addRun(
  transaction: Transaction<StateTables>,
  start: RunStart,
  accountId: number,
  numberOf?: number,
): Promise<RunColumns> {
  const { jobId, environmentId, projectId } = await namedIds(transaction, accountId, start, start.startedUnixMs);
  const id = numberOf ?? (await nextIds(transaction, 'execution', 1));
  const row: Omit<StateTables['executions'], 'rows_revision' | 'kept_revision'> = {
    id,
    run_key: start.runKey,
    job: start.job,
    environment: start.environment,
    project: start.project,
    reason: start.reason,
    state: start.runKey === null ? 'closing' : 'open',
    started_unix_ms: start.startedUnixMs,
    ended_unix_ms: null,
    step_count: 0,
    account_id: accountId,
    project_id: projectId,
    environment_id: environmentId,
    job_id: jobId,
    created_unix_ms: start.startedUnixMs,
    updated_unix_ms: start.startedUnixMs,
    seen_unix_ms: null,
    finished_unix_ms: NOT_FINISHED,
    cancelled_unix_ms: null,
    status: RUN_STATUS.queued,
    status_message: null,
    engine_version: null,
    git_branch: null,
    git_sha: null,
    artifacts_removed_unix_ms: null,
    notified: 0,
  };
  await transaction.insertInto('executions').values(row).execute();
  return {
    ...row,
    execution_id: id,
    run_started_unix_ms: row.started_unix_ms,
    run_ended_unix_ms: null,
    failed_step_count: 0,
  };
}

/** A run takes no more steps from now on. */
export async function closeRun(transaction: Transaction<StateTables>, runId: number): Promise<void> {
  await transaction
    .updateTable('executions')
    .set({ state: 'closing' })
    .where('id', '=', runId)
    .where('state', '=', 'open')
    .execute();
}

/** Ends a run that accepts no more steps once none is running. Returns the number of running ones. */
export async function finishIfOver(
  transaction: Transaction<StateTables>,
  runId: number,
  nowUnixMs: number | null = null,
): Promise<number> {
  const { running, ended } = await transaction
    .selectFrom('execution_steps')
    .where('execution_id', '=', runId)
    .select(({ fn }) => [
      fn.countAll<number>().filterWhere('ending', 'is', null).as('running'),
      fn.max('ended_unix_ms').as('ended'),
    ])
    .executeTakeFirstOrThrow();
  if (running > 0) return running;
  await transaction
    .updateTable('executions')
    .set({ state: 'finished', ended_unix_ms: ended ?? nowUnixMs })
    .where('id', '=', runId)
    .where('state', '=', 'closing')
    .execute();
  return 0;
}

/** Is notified of changes of runs, within the transaction that makes them. */
export interface RunObserver {
  /** Runs may have changed. */
  onChanged(transaction: Transaction<StateTables>, runIds: readonly number[]): Promise<void>;
  /** An import adds these steps. @param isRecent whether they ended after it had begun; the last record so far counts as the end */
  onImported(transaction: Transaction<StateTables>, stepIds: readonly string[], isRecent: boolean): Promise<void>;
  /** The run does not exist: it turned out to be part of another one. */
  onRemoved(transaction: Transaction<StateTables>, runId: number): Promise<void>;
}

/** Follows nothing. */
export const NO_OBSERVER: RunObserver = {
  onChanged: async () => {},
  onImported: async () => {},
  onRemoved: async () => {},
};

/** How long after a command's end the first row of its trace is awaited, in milliseconds. */
const TRACE_GRACE_MS = 10_000;
/** Rows asked for by one statement. */
const ROWS_PER_STATEMENT = 500;

/**
 * Sets the status of registered steps, and of their runs. A final status changes only to another final one.
 * @param nowUnixMs when their state changed
 */
export async function settleSteps(
  transaction: Transaction<StateTables>,
  stepIds: readonly string[],
  nowUnixMs: number,
  observer: RunObserver,
): Promise<void> {
  const runIds = new Set<number>();
  for (const some of slices(stepIds, ROWS_PER_STATEMENT)) {
    const steps = await transaction.selectFrom('execution_steps').selectAll().where('step_id', 'in', some).execute();
    const invocations = await transaction
      .selectFrom('invocations')
      .select(['step_id', 'verdict', 'status_message as statusMessage', 'is_saved', 'started_unix_ms'])
      .where('step_id', 'in', some)
      .orderBy('started_unix_ms')
      .execute();
    const awaited = await awaitedTraces(transaction, some);
    const uploading = await stepsUploading(transaction, some);
    for (const step of steps) {
      const own = invocations.filter(({ step_id }) => step_id === step.step_id);
      const isLate = step.ended_unix_ms !== null && nowUnixMs - step.ended_unix_ms > TRACE_GRACE_MS;
      const { status, statusMessage } = stepStatus({
        ending: toEnding(step),
        isReported: step.reporter !== 'nobody',
        invocations: own.map((one) => ({ ...one, isSaved: one.is_saved !== 0 })),
        isAwaited:
          uploading.has(step.step_id) ||
          awaited.some((trace) => trace.step_id === step.step_id && (trace.state !== null || !isLate)),
      });
      runIds.add(step.execution_id);
      const seen_unix_ms = own[0]?.started_unix_ms ?? step.seen_unix_ms;
      const isKept = isFinal(step.status) && !isFinal(status);
      const isSame = step.status === status && step.status_message === statusMessage;
      if (isKept || (isSame && seen_unix_ms === step.seen_unix_ms)) continue;
      const columns = { status, status_message: statusMessage, seen_unix_ms, updated_unix_ms: nowUnixMs };
      await updateStep(transaction, step.step_id, columns);
    }
  }
  await settleRuns(transaction, [...runIds], nowUnixMs, observer);
}

/** Sets the status of runs from their steps, and notifies the observer. @param nowUnixMs as above; `null` to use the run's own end */
export async function settleRuns(
  transaction: Transaction<StateTables>,
  runIds: readonly number[],
  nowUnixMs: number | null,
  observer: RunObserver,
): Promise<void> {
  for (const runId of runIds) {
    const run = await transaction
      .selectFrom('executions')
      .leftJoin('job_runs', 'job_runs.run_id', 'executions.id')
      .select(['executions.state', 'status', 'status_message', 'cancelled_unix_ms', 'seen_unix_ms', 'ended_unix_ms'])
      .select(['started_unix_ms', 'updated_unix_ms', 'job_runs.failure'])
      .where('executions.id', '=', runId)
      .executeTakeFirst();
    if (run === undefined) continue;
    const steps = await transaction
      .selectFrom('execution_steps')
      .select(['status', 'status_message as statusMessage', 'seen_unix_ms'])
      .where('execution_id', '=', runId)
      .orderBy('step_index')
      .execute();
    const { status, statusMessage } = runStatus(steps, {
      // A step may end before its artifacts are announced.
      isOver: run.state === 'finished' && !(await isUploading(transaction, runId)),
      isCancelled: run.cancelled_unix_ms !== null,
      failure: run.failure,
    });
    const seen = steps.flatMap(({ seen_unix_ms }) => seen_unix_ms ?? []);
    const seen_unix_ms = seen.length === 0 ? run.seen_unix_ms : Math.min(...seen);
    const isSame = run.status === status && run.status_message === statusMessage && run.seen_unix_ms === seen_unix_ms;
    if (isSame || (isFinal(run.status) && !isFinal(status))) continue;
    await transaction
      .updateTable('executions')
      .set((row) => ({
        ...{ ...touched(row), status, status_message: statusMessage, seen_unix_ms },
        updated_unix_ms: nowUnixMs ?? run.ended_unix_ms ?? run.updated_unix_ms,
        finished_unix_ms: finishedAt(status, run),
      }))
      .where('id', '=', runId)
      .execute();
  }
  await observer.onChanged(transaction, runIds);
}

function finishedAt(
  status: RunStatus,
  run: { readonly ended_unix_ms: number | null; readonly started_unix_ms: number },
) {
  return isFinal(status) ? (run.ended_unix_ms ?? run.started_unix_ms) : NOT_FINISHED;
}

/** Traces of steps without known invocations that may still contain one; `state` is null before their first row. */
function awaitedTraces(transaction: Transaction<StateTables>, stepIds: readonly string[]) {
  return transaction
    .selectFrom('step_traces as trace')
    .leftJoin('runs', 'runs.trace_id', 'trace.trace_id')
    .leftJoin('invocations as known', (join) =>
      join.onRef('known.trace_id', '=', 'trace.trace_id').onRef('known.step_id', '=', 'trace.step_id'),
    )
    .select(['trace.step_id', 'runs.state'])
    .where('trace.step_id', 'in', stepIds)
    .where('known.trace_id', 'is', null)
    .where(sql<boolean>`(runs.state is null or runs.state = 'open' or runs.is_noted = 0)`)
    .execute();
}

/** Whether artifacts of any of its steps cannot be downloaded yet. */
async function isUploading(transaction: Transaction<StateTables>, runId: number): Promise<boolean> {
  const found = await transaction
    .selectFrom('step_artifacts as artifacts')
    .innerJoin('execution_steps as step', 'step.step_id', 'artifacts.step_id')
    .select('step.step_id')
    .where('step.execution_id', '=', runId)
    .where('artifacts.state', '=', 'expected')
    .limit(1)
    .executeTakeFirst();
  return found !== undefined;
}

/** Steps whose artifacts cannot all be downloaded yet. */
async function stepsUploading(
  transaction: Transaction<StateTables>,
  stepIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await transaction
    .selectFrom('step_artifacts')
    .select('step_id')
    .where('step_id', 'in', stepIds)
    .where('state', '=', 'expected')
    .execute();
  return new Set(rows.map(({ step_id }) => step_id));
}

/** Set it whenever API-visible data of a run changes: its rows are then backed up again. */
function touched({ eb }: { readonly eb: ExpressionBuilder<StateTables, 'executions'> }) {
  return { rows_revision: eb('rows_revision', '+', 1) };
}

/** API-visible data of a run has changed outside of its rows here. */
export async function touchRun(transaction: StateDb, runId: number): Promise<void> {
  await transaction.updateTable('executions').set(touched).where('id', '=', runId).execute();
}

/** The same of the run of a step. */
export async function touchRunOfStep(db: StateDb, stepId: string): Promise<void> {
  await db
    .updateTable('executions')
    .set(touched)
    .where('id', 'in', (eb) => eb.selectFrom('execution_steps').select('execution_id').where('step_id', '=', stepId))
    .execute();
}

/** The same of runs that have records in traces. */
export async function touchRunsOfTraces(
  transaction: Transaction<StateTables>,
  traceIds: readonly TraceId[],
): Promise<void> {
  await transaction
    .updateTable('executions')
    .set(touched)
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('invocations')
        .innerJoin('execution_steps as step', 'step.step_id', 'invocations.step_id')
        .select('step.execution_id')
        .where('invocations.trace_id', 'in', traceIds),
    )
    .execute();
}

/** Adds runs whose rows are known whole, with their steps and the traces of these. */
export async function insertRuns(
  transaction: Transaction<StateTables>,
  rows: {
    readonly runs: readonly Insertable<StateTables['executions']>[];
    readonly steps: readonly Insertable<StateTables['execution_steps']>[];
    readonly links: readonly Insertable<StateTables['step_traces']>[];
  },
): Promise<void> {
  for (let from = 0; from < rows.runs.length; from += ROWS_PER_STATEMENT) {
    const to = from + ROWS_PER_STATEMENT;
    await transaction.insertInto('executions').values(rows.runs.slice(from, to)).execute();
    await transaction.insertInto('execution_steps').values(rows.steps.slice(from, to)).execute();
    await transaction.insertInto('step_traces').values(rows.links.slice(from, to)).execute();
  }
}

/** The run and the status of a step. */
export function stepOf(transaction: Transaction<StateTables>, stepId: string) {
  return transaction
    .selectFrom('execution_steps')
    .select(['execution_id', 'status'])
    .where('step_id', '=', stepId)
    .executeTakeFirst();
}

/** Those of the steps that are registered. */
export async function registeredOf(
  transaction: Transaction<StateTables>,
  stepIds: readonly string[],
): Promise<readonly string[]> {
  const rows = await transaction
    .selectFrom('execution_steps')
    .select('step_id')
    .where('step_id', 'in', stepIds)
    .execute();
  return rows.map(({ step_id }) => step_id);
}

export async function updateRun(
  transaction: Transaction<StateTables>,
  runId: number,
  columns: Updateable<StateTables['executions']>,
): Promise<void> {
  await transaction.updateTable('executions').set(columns).where('id', '=', runId).execute();
}

export async function updateStep(
  db: StateDb,
  stepId: string,
  columns: Updateable<StateTables['execution_steps']>,
): Promise<void> {
  await db.updateTable('execution_steps').set(columns).where('step_id', '=', stepId).execute();
}

/** What a run has of a step's telemetry; what is known stays. */
export async function noteEngine(
  transaction: Transaction<StateTables>,
  stepId: string,
  {
    engineVersion,
    gitBranch,
    gitSha,
  }: { readonly engineVersion: string | null; readonly gitBranch: string | null; readonly gitSha: string | null },
): Promise<void> {
  if (engineVersion === null && gitBranch === null && gitSha === null) return;
  await transaction
    .updateTable('executions')
    .set(({ fn, ref, val }) => ({
      engine_version: fn.coalesce(ref('engine_version'), val(engineVersion)),
      git_branch: fn.coalesce(ref('git_branch'), val(gitBranch)),
      git_sha: fn.coalesce(ref('git_sha'), val(gitSha)),
    }))
    .where(({ eb, selectFrom }) =>
      eb('id', '=', selectFrom('execution_steps').select('execution_id').where('step_id', '=', stepId)),
    )
    .execute();
}

/** Removes a step that is a run by itself. @returns the number of its run */
export async function removeRunOf(transaction: Transaction<StateTables>, stepId: string): Promise<number | undefined> {
  const step = await transaction
    .deleteFrom('execution_steps')
    .where('step_id', '=', stepId)
    .returning('execution_id')
    .executeTakeFirst();
  await transaction.deleteFrom('step_traces').where('step_id', '=', stepId).execute();
  if (step === undefined) return undefined;
  await transaction.deleteFrom('executions').where('id', '=', step.execution_id).execute();
  return step.execution_id;
}

/** A run takes no more steps, and ends where none is running. @returns the number of running ones */
export async function endRun(
  transaction: Transaction<StateTables>,
  runId: number,
  nowUnixMs: number,
  observer: RunObserver,
): Promise<number> {
  await closeRun(transaction, runId);
  const runningCount = await finishIfOver(transaction, runId, nowUnixMs);
  await settleRuns(transaction, [runId], nowUnixMs, observer);
  return runningCount;
}

/** Notes which events of runs were created, as bits of `executions.notified`. */
export async function markNotified(
  transaction: Transaction<StateTables>,
  runIds: readonly number[],
  notified: number,
): Promise<void> {
  await transaction.updateTable('executions').set({ notified }).where('id', 'in', runIds).execute();
}

/** Sets, or takes back, bits of `executions.notified` for the runs of steps. */
export async function markStepsNotified(
  transaction: Transaction<StateTables>,
  stepIds: readonly string[],
  bits: number,
  isSet: boolean,
): Promise<void> {
  await transaction
    .updateTable('executions')
    .set({ notified: isSet ? sql<number>`notified | ${bits}` : sql<number>`notified & ${~bits}` })
    .where('id', 'in', ({ selectFrom }) =>
      selectFrom('execution_steps').select('execution_id').where('step_id', 'in', stepIds),
    )
    .execute();
}

/** Runs of which not all events were created, and whether they may turn out to be part of another run. */
export function listUnnotified(transaction: Transaction<StateTables>, runIds: readonly number[], allBits: number) {
  return transaction
    .selectFrom('executions')
    .select(['id', 'account_id', 'status', 'notified', 'step_count', 'cancelled_unix_ms'])
    .select(({ exists, selectFrom }) =>
      exists(
        selectFrom('execution_steps as step')
          .select('step.id')
          .whereRef('step.execution_id', '=', 'executions.id')
          .where('step.reporter', '=', 'nobody'),
      ).as('is_unregistered'),
    )
    .select(({ exists, selectFrom }) =>
      exists(
        selectFrom('execution_steps as step')
          .innerJoin('step_traces as own', 'own.step_id', 'step.step_id')
          .innerJoin('step_traces as named', 'named.trace_id', 'own.trace_id')
          .leftJoin('execution_steps as registered', 'registered.step_id', 'named.step_id')
          .select('step.id')
          .whereRef('step.execution_id', '=', 'executions.id')
          .where('step.reporter', '=', 'nobody')
          .where('registered.id', 'is', null),
      ).as('is_step_expected'),
    )
    .where('id', 'in', runIds)
    .where('notified', '<>', allBits)
    .orderBy('id')
    .execute();
}
