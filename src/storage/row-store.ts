import { sql, type Transaction } from 'kysely';
import { slices } from '../core/lists.js';
import { accountOfStep } from '../record/attributes.js';
import type { TraceId } from '../record/telemetry-record.js';
import { FIRST_ACCOUNT_ID } from './account-store.js';
import { changeState, nextIds, raiseLastId, traceIdsOf } from './database.js';
import { isWithoutRuns, readRunRows, reserveIds, restoreRunRows } from './execution-rows.js';
import { addRun, closeRun, finishIfOver, fromEnding, linkSteps, type RunStart, stepOf } from './executions.js';
import type { RunRows } from './run-rows.js';
import { type RunRow, SqlRunStore } from './run-store.js';
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

/** Traces asked for by one statement. */
const TRACES_PER_STATEMENT = 500;

/** Backs up and restores rows of runs as they are in an SQL database. */
export class RowStore {
  constructor(private readonly db: StateDb) {}

  /** Finished runs whose rows have changed since they were backed up, in the order of their ids. */
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
  isEmpty(): Promise<boolean> {
    return isWithoutRuns(this.db);
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
