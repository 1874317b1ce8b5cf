import {
  type ExpressionBuilder,
  type Insertable,
  type Selectable,
  sql,
  type Transaction,
  type Updateable,
} from 'kysely';
import type { TraceId } from '../record/telemetry-record.js';
import { nextIds } from './database.js';
import { namedIds } from './scope-store.js';
import { NOT_FINISHED, RUN_STATUS, type StateDb, type StateTables } from './state-tables.js';
import type { CommandEnding, StepPosition, StepStart } from './steps.js';

// The tables of runs and their steps: their columns, and the statements that stores share.

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

/** Rows written, or asked for, by one statement. */
const ROWS_PER_STATEMENT = 500;

// Reading

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

/** Selects runs, as `toRun` takes them; the table is `run`. */
export function selectRuns(db: StateDb) {
  return db
    .selectFrom('executions as run')
    .select(['run.id as execution_id', ...RUN_COLUMNS])
    .select(FAILED_STEP_COUNT);
}

/** Selects steps with their runs, as `toStep` takes them; the tables are `step` and `run`. */
export function selectSteps(db: StateDb) {
  return db
    .selectFrom('execution_steps as step')
    .innerJoin('executions as run', 'run.id', 'step.execution_id')
    .selectAll('step')
    .select(RUN_COLUMNS)
    .select([FAILED_STEP_COUNT, TRACE_COUNT]);
}

/** Finds a step, registered or not. */
export function findStep(db: StateDb, stepId: string): Promise<StepColumns | undefined> {
  return selectSteps(db).where('step.step_id', '=', stepId).executeTakeFirst();
}

/** Selects steps whose artifacts cannot all be downloaded yet; the tables are `artifacts` and `step`. */
export function selectUploads(db: StateDb) {
  return db
    .selectFrom('step_artifacts as artifacts')
    .innerJoin('execution_steps as step', 'step.step_id', 'artifacts.step_id')
    .where('artifacts.state', '=', 'expected');
}

/** Finds the run of that name that takes further steps. */
export async function openRun(db: StateDb, runKey: string | null, accountId: number): Promise<RunColumns | undefined> {
  if (runKey === null) return undefined;
  return await runsOfName(db, runKey, accountId).where('run.state', '=', 'open').executeTakeFirst();
}

/** Finds the latest run of that name. */
export function latestRun(db: StateDb, runKey: string, accountId: number): Promise<RunColumns | undefined> {
  return runsOfName(db, runKey, accountId).orderBy('run.id', 'desc').limit(1).executeTakeFirst();
}

function runsOfName(db: StateDb, runKey: string, accountId: number) {
  return selectRuns(db).where('run.run_key', '=', runKey).where('run.account_id', '=', accountId);
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

export function toRun(row: RunColumns): ExecutionRow {
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

export function toStep(row: StepColumns): StepRow {
  return {
    stepId: row.step_id,
    stepIndex: row.step_index,
    run: toRun(row),
    // Only `addStep` writes the column, from a list of texts.
    command: JSON.parse(row.command) as readonly string[],
    startedUnixMs: row.started_unix_ms,
    endedUnixMs: row.ended_unix_ms,
    ending: toEnding(row),
    traceCount: row.trace_count,
    reporter: reporterOf(row.reporter),
  };
}

/** Returns the reporter of a registered step; unregistered ones are read only by the stores. */
export function reporterOf(reporter: StateTables['execution_steps']['reporter']): StepReporter {
  return reporter === 'remote' ? 'remote' : 'local';
}

/** Reads the steps that a query selects. */
export async function stepsIn(query: { execute(): Promise<StepColumns[]> }): Promise<readonly StepRow[]> {
  return (await query.execute()).map(toStep);
}

/** The columns with the end of a step. */
type EndingColumns = Pick<StateTables['execution_steps'], 'ending' | 'exit_code' | 'ending_detail'>;

/** Returns the columns of how a step's command ended. */
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

/** Returns how a step's command ended, from its row; `null` while it is running. */
export function toEnding({ ending, exit_code, ending_detail }: EndingColumns): CommandEnding | null {
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

// Writing

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

/** Closes a run, which takes no more steps from now on. */
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

/** Adds a step to a run. @returns its position, from 1 */
export async function addStep(
  transaction: Transaction<StateTables>,
  run: RunColumns,
  start: StepStart,
  reporter: StepReporter,
): Promise<number> {
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
  return stepIndex;
}

/** Returns where a step of a run stands. */
export function positionOf(run: RunColumns, stepIndex: number): StepPosition {
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

/** Set it whenever API-visible data of a run changes: its rows are then backed up again. */
export function touched({ eb }: { readonly eb: ExpressionBuilder<StateTables, 'executions'> }) {
  return { rows_revision: eb('rows_revision', '+', 1) };
}

/** Notes that API-visible data of a run has changed outside of its rows here. */
export async function touchRun(transaction: StateDb, runId: number): Promise<void> {
  await transaction.updateTable('executions').set(touched).where('id', '=', runId).execute();
}

/** Notes the same of the run of a step. */
export async function touchRunOfStep(db: StateDb, stepId: string): Promise<void> {
  await db
    .updateTable('executions')
    .set(touched)
    .where('id', 'in', (eb) => eb.selectFrom('execution_steps').select('execution_id').where('step_id', '=', stepId))
    .execute();
}

/** Notes the same of runs that have records in traces. */
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

/** Records that traces contain records of steps, whether or not these are registered. */
export async function linkSteps(
  transaction: Transaction<StateTables>,
  links: readonly Insertable<StateTables['step_traces']>[],
): Promise<void> {
  await transaction
    .insertInto('step_traces')
    .values([...links])
    .onConflict((conflict) => conflict.columns(['trace_id', 'step_id']).doNothing())
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

/** Returns the run and the status of a step. */
export function stepOf(transaction: Transaction<StateTables>, stepId: string) {
  return transaction
    .selectFrom('execution_steps')
    .select(['execution_id', 'status'])
    .where('step_id', '=', stepId)
    .executeTakeFirst();
}

/** Returns those of the steps that are registered. */
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

/** Saves what a step's telemetry says of its run; known values stay. */
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
