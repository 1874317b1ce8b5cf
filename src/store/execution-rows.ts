import { sql } from 'kysely';
import type { StateDb } from './state-tables.js';
import type { RunColumns, StepColumns } from './step-columns.js';

/** A run's columns, beside those of a step. */
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
export function selectRuns(db: StateDb) {
  return db
    .selectFrom('executions as run')
    .select(['run.id as execution_id', ...RUN_COLUMNS])
    .select(FAILED_STEP_COUNT);
}

/** Steps with their runs, as `toStep` takes them; the tables are `step` and `run`. */
export function selectSteps(db: StateDb) {
  return db
    .selectFrom('execution_steps as step')
    .innerJoin('executions as run', 'run.id', 'step.execution_id')
    .selectAll('step')
    .select(RUN_COLUMNS)
    .select([FAILED_STEP_COUNT, TRACE_COUNT]);
}

/** One step, whoever told of it. */
export function findStep(db: StateDb, stepId: string): Promise<StepColumns | undefined> {
  return selectSteps(db).where('step.step_id', '=', stepId).executeTakeFirst();
}

/** The run of that name that takes further steps. */
export async function openRun(db: StateDb, runKey: string | null, accountId: number): Promise<RunColumns | undefined> {
  if (runKey === null) return undefined;
  return await selectRuns(db)
    .where('run.run_key', '=', runKey)
    .where('run.account_id', '=', accountId)
    .where('run.state', '=', 'open')
    .executeTakeFirst();
}

/** The run of that name that came last. */
export function latestRun(db: StateDb, runKey: string, accountId: number): Promise<RunColumns | undefined> {
  return selectRuns(db)
    .where('run.run_key', '=', runKey)
    .where('run.account_id', '=', accountId)
    .orderBy('run.id', 'desc')
    .limit(1)
    .executeTakeFirst();
}
