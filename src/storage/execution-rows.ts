import { sql, type Transaction } from 'kysely';
import { raiseLastId } from './database.js';
import type { RunRows } from './run-rows.js';
import type { StateDb, StateTables } from './state-tables.js';

// All rows of runs, in whichever tables: read to be backed up, put back, and deleted together.

/** Tables with rows of steps, by the id of the step. */
const STEP_TABLES = ['step_traces', 'invocations', 'step_outputs', 'step_artifacts'] as const;
/** Tables with rows of traces; measures last, since saving them locks the row in `runs`. */
const TRACE_TABLES = [
  'invocations',
  'step_traces',
  'export_cursors',
  'runs',
  'run_measures',
  'command_errors',
] as const;
/** Tables of a run's rows in the order in which they are put back. */
const TABLES = ['projects', 'environments', 'jobs', 'execution_steps', ...STEP_TABLES, 'job_runs'] as const;
/** What numbers are given to, and the tables that have them. */
const NUMBERED = [
  ['execution', 'executions'],
  ['step', 'execution_steps'],
  ['project', 'projects'],
  ['environment', 'environments'],
  ['job', 'jobs'],
] as const;

/** Returns whether no run has ever been in this database. */
export async function isWithoutRuns(db: StateDb): Promise<boolean> {
  for (const table of ['executions', 'runs'] as const) {
    const found = await db.selectFrom(table).select(sql<number>`1`.as('one')).limit(1).executeTakeFirst();
    if (found !== undefined) return false;
  }
  return true;
}

/** Reads all rows of a run. */
export async function readRunRows(db: StateDb, run: RunRows['executions']): Promise<RunRows> {
  const steps = db.selectFrom('execution_steps').select('step_id').where('execution_id', '=', run.id);
  return {
    executions: run,
    projects: await db.selectFrom('projects').selectAll().where('id', '=', run.project_id).execute(),
    environments: await db.selectFrom('environments').selectAll().where('id', '=', run.environment_id).execute(),
    jobs: await db.selectFrom('jobs').selectAll().where('id', '=', run.job_id).execute(),
    execution_steps: await db
      .selectFrom('execution_steps')
      .selectAll()
      .where('execution_id', '=', run.id)
      .orderBy('step_index')
      .execute(),
    step_traces: await db.selectFrom('step_traces').selectAll().where('step_id', 'in', steps).execute(),
    invocations: await db.selectFrom('invocations').selectAll().where('step_id', 'in', steps).execute(),
    step_outputs: await db.selectFrom('step_outputs').selectAll().where('step_id', 'in', steps).execute(),
    step_artifacts: await db.selectFrom('step_artifacts').selectAll().where('step_id', 'in', steps).execute(),
    job_runs: await db.selectFrom('job_runs').selectAll().where('run_id', '=', run.id).execute(),
  };
}

/** Puts rows of runs back as they were; what is there already stays. Numbers up to theirs are not given again. */
export async function restoreRunRows(transaction: Transaction<StateTables>, runs: readonly RunRows[]): Promise<void> {
  for (const { executions, ...rows } of runs) {
    await putBack(transaction, 'executions', [{ ...executions, kept_revision: executions.rows_revision }]);
    for (const table of TABLES) await putBack(transaction, table, rows[table]);
  }
  for (const [kind, table] of NUMBERED) await reserveIds(transaction, kind, table);
}

async function putBack<Table extends 'executions' | (typeof TABLES)[number]>(
  transaction: Transaction<StateTables>,
  table: Table,
  rows: readonly object[],
): Promise<void> {
  for (const row of rows) {
    await transaction
      .insertInto(table)
      .values(row as never)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
}

/** Has new rows of a table get numbers above those that are there. */
export async function reserveIds(
  transaction: Transaction<StateTables>,
  kind: (typeof NUMBERED)[number][0],
  table: (typeof NUMBERED)[number][1],
): Promise<void> {
  const found = await transaction
    .selectFrom(table)
    .select(({ fn }) => fn.max<number | null>('id').as('last'))
    .executeTakeFirst();
  const last = found?.last ?? null;
  if (last !== null) await raiseLastId(transaction, kind, last);
}

/** Tables that say which traces hold records of which steps. */
type LinkTable = 'step_traces' | 'invocations';

/** Returns the traces that hold records of runs' steps, sorted. */
export async function tracesOfRuns(db: StateDb, runIds: readonly number[]): Promise<string[]> {
  const linked = (table: LinkTable) =>
    db
      .selectFrom('execution_steps as step')
      .innerJoin(`${table as 'step_traces'} as trace`, 'trace.step_id', 'step.step_id')
      .select('trace.trace_id')
      .where('step.execution_id', 'in', runIds);
  const rows = await linked('step_traces').union(linked('invocations')).execute();
  return rows.map(({ trace_id }) => trace_id).toSorted();
}

/** Returns the runs with steps that have records in these traces. */
export async function runsOfTraces(db: StateDb, traceIds: readonly string[]): Promise<number[]> {
  if (traceIds.length === 0) return [];
  const linked = (table: LinkTable) =>
    db
      .selectFrom(`${table as 'step_traces'} as trace`)
      .innerJoin('execution_steps as step', 'step.step_id', 'trace.step_id')
      .select('step.execution_id')
      .where('trace.trace_id', 'in', traceIds);
  const rows = await linked('step_traces').union(linked('invocations')).execute();
  return rows.map(({ execution_id }) => execution_id);
}

/** Deletes all rows of runs and traces, but those that several processes share. */
export async function deleteRunRows(
  transaction: Transaction<StateTables>,
  runIds: readonly number[],
  traceIds: readonly string[],
): Promise<void> {
  for (const table of ['step_outputs', 'step_artifacts', 'step_traces'] as const) {
    await transaction
      .deleteFrom(table)
      .where('step_id', 'in', ({ selectFrom }) =>
        selectFrom('execution_steps').select('step_id').where('execution_id', 'in', runIds),
      )
      .execute();
  }
  if (traceIds.length > 0) {
    for (const table of TRACE_TABLES) await transaction.deleteFrom(table).where('trace_id', 'in', traceIds).execute();
  }
  await transaction.deleteFrom('job_runs').where('run_id', 'in', runIds).execute();
  await transaction.deleteFrom('execution_steps').where('execution_id', 'in', runIds).execute();
  await transaction.deleteFrom('executions').where('id', 'in', runIds).execute();
}
