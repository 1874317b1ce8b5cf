import { sql, type Transaction } from 'kysely';
import { parseTraceId, type TraceId } from '../record/telemetry-record.js';
import { FIRST_ACCOUNT_ID } from './account-store.js';
import { addRun } from './add-run.js';
import { changeState, nextIds } from './change-state.js';
import type { CommandEnding } from './command-ending.js';
import type {
  CancelResult,
  EndedStep,
  ExecutionStore,
  ExpectedArtifacts,
  FinishResult,
  IdleRun,
  MissingArtifacts,
  StepReporter,
  StepRow,
  UploadingStep,
} from './execution-store.js';
import { closeRun, finishIfOver } from './finish-run.js';
import { type RunObserver, settleRuns, settleSteps } from './settle-runs.js';
import { RUN_STATUS, type StateDb, type StateTables } from './state-tables.js';
import { fromEnding, type RunColumns, type StepColumns, toRun, toStep } from './step-columns.js';
import type { StepPosition, StepStart } from './step-start.js';
import { touched } from './touch-rows.js';

/** Number of steps whose runs are checked at a time. */
const MAX_SETTLED = 1_000;

/** Rows of runs and their steps in an SQL database. */
export class SqlExecutionStore implements ExecutionStore {
  constructor(
    private readonly db: StateDb,
    private readonly observer: RunObserver,
  ) {}

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

  beginIn(runId: number, start: StepStart, reporter: StepReporter): Promise<StepPosition | undefined> {
    return changeState(this.db, async (transaction) => {
      const run = await selectRuns(transaction)
        .where('run.id', '=', runId)
        .where('run.state', '=', 'open')
        .executeTakeFirst();
      return run && (await addStep(transaction, run, start, reporter, this.observer));
    });
  }

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

  end(stepId: string, ending: CommandEnding, endedUnixMs: number): Promise<EndedStep | undefined> {
    return changeState(this.db, async (transaction) => {
      const step = await findStep(transaction, stepId);
      if (step === undefined) return undefined;
      if (step.ending === null || step.ending === 'unknown') {
        await transaction
          .updateTable('execution_steps')
          .set({ ...fromEnding(ending), ended_unix_ms: endedUnixMs })
          .where('step_id', '=', stepId)
          .execute();
      }
      // An engine command that ended within the last command, which continues.
      if (step.is_last !== 0 && ending.kind !== 'within') await closeRun(transaction, step.execution_id);
      await finishIfOver(transaction, step.execution_id);
      await settleSteps(transaction, [stepId], endedUnixMs, this.observer);
      const ended = await findStep(transaction, stepId);
      return ended && { step: toStep(ended), isNew: step.ending === null };
    });
  }

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
      await transaction
        .updateTable('executions')
        .set((row) => touched(row))
        .where('id', '=', step.execution_id)
        .execute();
      if (step.ending !== null) await settleSteps(transaction, [stepId], nowUnixMs, this.observer);
    });
  }

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
      await closeRun(transaction, runId);
      const runningCount = await finishIfOver(transaction, runId, nowUnixMs);
      await settleRuns(transaction, [runId], nowUnixMs, this.observer);
      return { runningCount };
    });
  }

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

  async tracesOf(stepId: string): Promise<readonly TraceId[]> {
    const rows = await this.db
      .selectFrom('step_traces')
      .select('trace_id')
      .where('step_id', '=', stepId)
      .orderBy('trace_id')
      .execute();
    return rows.flatMap((row) => parseTraceId(row.trace_id) ?? []);
  }

  async listSteps(runId: number): Promise<readonly StepRow[]> {
    const rows = await selectSteps(this.db).where('step.execution_id', '=', runId).orderBy('step.step_index').execute();
    return rows.map(toStep);
  }

  async listRunning(): Promise<readonly StepRow[]> {
    const rows = await selectSteps(this.db)
      .where('step.ending', 'is', null)
      .where('step.reporter', '<>', 'nobody')
      .orderBy('step.execution_id')
      .execute();
    return rows.map(toStep);
  }

  async noteHeard(stepId: string, nowUnixMs: number): Promise<void> {
    await this.db
      .updateTable('execution_steps')
      .set({ heard_unix_ms: nowUnixMs })
      .where('step_id', '=', stepId)
      .execute();
  }

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
  await transaction
    .updateTable('executions')
    .set({ step_count: stepIndex })
    .where('id', '=', run.execution_id)
    .execute();
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

/** One step, registered or not. */
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

/** The latest run of that name. */
export function latestRun(db: StateDb, runKey: string, accountId: number): Promise<RunColumns | undefined> {
  return selectRuns(db)
    .where('run.run_key', '=', runKey)
    .where('run.account_id', '=', accountId)
    .orderBy('run.id', 'desc')
    .limit(1)
    .executeTakeFirst();
}
