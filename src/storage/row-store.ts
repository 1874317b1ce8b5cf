import { sql, type Transaction } from 'kysely';
import { slices } from '../core/lists.js';
import { accountOfStep } from '../record/attributes.js';
import type { TraceId } from '../record/telemetry-record.js';
import { FIRST_ACCOUNT_ID } from './account-store.js';
import { changeState, nextIds, raiseLastId, traceIdsOf } from './database.js';
import { addRun, closeRun, finishIfOver, fromEnding, linkSteps, type RunStart, stepOf } from './executions.js';
import type { RunRows } from './run-rows.js';
import { type RunRow, SqlRunStore } from './run-store.js';
import { noteRemovedRuns } from './run-totals.js';
import { RUN_STATUS, type StateDb, type StateTables } from './state-tables.js';
import type { CommandEnding } from './steps.js';

/** A run's rows that are not in its file, or not as they are now. */
export interface RunToBackUp {
  readonly runId: number;
  readonly revision: number;
  readonly rows: RunRows;
}

/** A step of an unfinished run, according to the files of its trace. */
export interface NamedStep extends RunStart {
  readonly runId: number;
  readonly stepId: string;
  readonly stepIndex: number;
  readonly traceId: TraceId;
  readonly command: readonly string[];
  readonly endedUnixMs: number | null;
  /** `null` if it was running. */
  readonly ending: CommandEnding | null;
}

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
/** Traces asked for by one statement. */
const TRACES_PER_STATEMENT = 500;

/** Backs up and restores all rows of runs, in whichever tables of an SQL database. */
export class RowStore {
  constructor(private readonly db: StateDb) {}

  /** Lists finished runs whose rows have changed since they were backed up, in the order of their ids. */
  async listWithoutBackup(limit: number): Promise<readonly RunToBackUp[]> {
    const runs = await this.db
      .selectFrom('executions')
      .selectAll()
      // Spelt as the partial index spells it.
      .where(sql<boolean>`status >= 10 and rows_revision <> kept_revision`)
      .orderBy('id')
      .limit(limit)
      .execute();
    const found: RunToBackUp[] = [];
    for (const run of runs) {
      found.push({ runId: run.id, revision: run.rows_revision, rows: await readRunRows(this.db, run) });
    }
    return found;
  }

  /** Records that the rows of these runs are backed up as listed. @returns the runs that were removed meanwhile */
  noteBackedUp(runs: readonly Pick<RunToBackUp, 'runId' | 'revision'>[]): Promise<readonly number[]> {
    return this.db.transaction().execute(async (transaction) => {
      const gone: number[] = [];
      for (const { runId, revision } of runs) {
        const { numUpdatedRows } = await transaction
          .updateTable('executions')
          .set({ kept_revision: revision })
          .where('id', '=', runId)
          .executeTakeFirst();
        if (numUpdatedRows === 0n) gone.push(runId);
      }
      return gone;
    });
  }

  /** Returns whether no run has ever been in this database. */
  async isEmpty(): Promise<boolean> {
    for (const table of ['executions', 'runs'] as const) {
      const found = await this.db.selectFrom(table).select(sql<number>`1`.as('one')).limit(1).executeTakeFirst();
      if (found !== undefined) return false;
    }
    return true;
  }

  /** Has new runs get numbers above this one. */
  reserveRunIds(runId: number): Promise<void> {
    return changeState(this.db, (transaction) => raiseLastId(transaction, 'execution', runId));
  }

  /** Puts rows back as they were; what is there already stays. Numbers up to theirs are not given again. */
  restore(runs: readonly RunRows[]): Promise<void> {
    return changeState(this.db, (transaction) => restoreRunRows(transaction, runs));
  }

  /** Restores steps without a backed-up row, and their runs by their ids. */
  restoreNamed(steps: readonly NamedStep[]): Promise<void> {
    return changeState(this.db, async (transaction) => {
      for (const step of steps) {
        if ((await stepOf(transaction, step.stepId)) !== undefined) continue;
        const run = await transaction
          .selectFrom('executions')
          .select('id')
          .where('id', '=', step.runId)
          .executeTakeFirst();
        const accountId = accountOfStep(step.stepId) ?? FIRST_ACCOUNT_ID;
        if (run === undefined) await addRun(transaction, step, accountId, step.runId);
        await addNamedStep(transaction, step);
        // It is unknown whether more was to come: further steps with its name form another run.
        await closeRun(transaction, step.runId);
      }
      for (const runId of new Set(steps.map((step) => step.runId))) await finishIfOver(transaction, runId);
      await reserveIds(transaction, 'execution', 'executions');
    });
  }

  /**
   * Restores traces whose runs were restored: those with only known invocations are not checked again.
   * @returns those that the next start has to check
   */
  async restoreTraces(traces: readonly RunRow[]): Promise<readonly TraceId[]> {
    await new SqlRunStore(this.db).save(traces);
    const left: TraceId[] = [];
    for (const some of slices(traces, TRACES_PER_STATEMENT)) {
      const ids = some.map(({ traceId }) => traceId);
      await this.db
        .updateTable('runs')
        .set({ is_noted: 1 })
        .where('trace_id', 'in', ids)
        .where('trace_id', 'in', (eb) => eb.selectFrom('invocations').select('trace_id'))
        .execute();
      const rows = await this.db
        .selectFrom('runs')
        .select('trace_id')
        .where('trace_id', 'in', ids)
        .where('is_noted', '=', 0)
        .execute();
      left.push(...traceIdsOf(rows));
    }
    return left;
  }
}

async function addNamedStep(transaction: Transaction<StateTables>, step: NamedStep): Promise<void> {
  const row = {
    ...{ id: await nextIds(transaction, 'step', 1), step_id: step.stepId, execution_id: step.runId },
    ...{ step_index: step.stepIndex, command: JSON.stringify(step.command), reporter: 'local' as const, is_last: 0 },
    ...{ started_unix_ms: step.startedUnixMs, updated_unix_ms: step.endedUnixMs ?? step.startedUnixMs },
    ...{ seen_unix_ms: step.startedUnixMs, status: RUN_STATUS.running, status_message: null },
    ended_unix_ms: step.ending === null ? null : step.endedUnixMs,
    ...(step.ending === null ? { ending: null, exit_code: null, ending_detail: null } : fromEnding(step.ending)),
  };
  await transaction
    .insertInto('execution_steps')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await transaction
    .updateTable('executions')
    .set({ step_count: step.stepIndex })
    .where('id', '=', step.runId)
    .where('step_count', '<', step.stepIndex)
    .execute();
  await linkSteps(transaction, [{ trace_id: step.traceId, step_id: step.stepId }]);
}

/** Reads all rows of a run. */
async function readRunRows(db: StateDb, run: RunRows['executions']): Promise<RunRows> {
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
async function restoreRunRows(transaction: Transaction<StateTables>, runs: readonly RunRows[]): Promise<void> {
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
async function reserveIds(
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
  await noteRemovedRuns(transaction, runIds);
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
