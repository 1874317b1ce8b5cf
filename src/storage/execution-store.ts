import { sql, type Transaction } from 'kysely';
import type { TraceId } from '../record/telemetry-record.js';
import { FIRST_ACCOUNT_ID } from './account-store.js';
import { changeState, traceIdsOf } from './database.js';
import { endRun, type RunObserver, settleRuns, settleSteps } from './execution-status.js';
import {
  addRun,
  addStep,
  closeRun,
  type ExecutionRow,
  findStep,
  finishIfOver,
  fromEnding,
  latestRun,
  linkSteps,
  openRun,
  positionOf,
  type RunColumns,
  reporterOf,
  type StepReporter,
  type StepRow,
  selectRuns,
  selectSteps,
  selectUploads,
  stepsIn,
  toRun,
  toStep,
  touchRun,
  updateStep,
} from './executions.js';
import type { StateDb, StateTables } from './state-tables.js';
import type { CommandEnding, StepPosition, StepStart } from './steps.js';

/** A run with a name that accepts steps and has none running. */
export interface IdleRun {
  readonly runKey: string;
  /** The account of the run: each account has its names. */
  readonly accountId: number;
}

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

/** The number of steps whose runs are checked at a time. */
const MAX_SETTLED = 1_000;

/** Registers steps of runs and records how they end, in an SQL database. */
export class ExecutionStore {
  constructor(
    private readonly db: StateDb,
    private readonly observer: RunObserver,
  ) {}

  /** Adds a step, and its run if none accepts it. A known step stays unchanged. */
  register(start: StepStart, reporter: StepReporter): Promise<StepPosition> {
    return changeState(this.db, async (transaction) => {
      const known = await findStep(transaction, start.stepId);
      if (known !== undefined) return positionOf(known, known.step_index);
      const { runOf, runKey, accountId = FIRST_ACCOUNT_ID } = start;
      const run =
        (runOf === undefined ? undefined : await findStep(transaction, runOf)) ??
        (await openRun(transaction, runKey, accountId)) ??
        (await addRun(transaction, start, accountId));
      return await this.add(transaction, run, start, reporter);
    });
  }

  /** Adds a step to a run; `undefined` where that takes no more steps: it was cancelled, or is over. */
  registerIn(runId: number, start: StepStart, reporter: StepReporter): Promise<StepPosition | undefined> {
    return changeState(this.db, async (transaction) => {
      const run = await selectRuns(transaction)
        .where('run.id', '=', runId)
        .where('run.state', '=', 'open')
        .executeTakeFirst();
      return run && (await this.add(transaction, run, start, reporter));
    });
  }

  private async add(
    transaction: Transaction<StateTables>,
    run: RunColumns,
    start: StepStart,
    reporter: StepReporter,
  ): Promise<StepPosition> {
    const stepIndex = await addStep(transaction, run, start, reporter);
    await settleRuns(transaction, [run.execution_id], start.startedUnixMs, this.observer);
    return positionOf(run, stepIndex);
  }

  /** Records that a trace contains records of a step; `false` for an unknown step. */
  attach(stepId: string, traceId: TraceId): Promise<boolean> {
    return changeState(this.db, async (transaction) => {
      if ((await findStep(transaction, stepId)) === undefined) return false;
      await linkSteps(transaction, [{ trace_id: traceId, step_id: stepId }]);
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

  /** Returns the expected artifacts of a step while its upload has not ended; `undefined` if there are none. */
  async expectedArtifacts(stepId: string): Promise<ExpectedArtifacts | undefined> {
    const row = await selectUploads(this.db)
      .select(['step.execution_id', 'step.step_index', 'artifacts.paths'])
      .where('artifacts.step_id', '=', stepId)
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

  /** Lists steps whose artifacts are being uploaded. */
  async listUploading(): Promise<readonly UploadingStep[]> {
    const rows = await selectUploads(this.db)
      .select(['step.step_id', 'step.reporter'])
      .orderBy('step.step_id')
      .execute();
    return rows.map(({ step_id: stepId, reporter }) => ({ stepId, reporter: reporterOf(reporter) }));
  }

  /** Closes a run, which accepts no more steps and ends when none is running. @param accountId default: the first account */
  finish(runKey: string, accountId = FIRST_ACCOUNT_ID): Promise<FinishResult> {
    return changeState(this.db, async (transaction) => {
      const found = await latestRun(transaction, runKey, accountId);
      if (found === undefined) return { kind: 'unknownRun' };
      if (found.state === 'finished') return { kind: 'alreadyFinished', run: toRun(found) };
      const runningCount = await endRun(transaction, found.execution_id, null, this.observer);
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
      const stepIds = unsettled.map(({ step_id }) => step_id);
      await settleSteps(transaction, stepIds, nowUnixMs, this.observer);
    });
  }

  /** Returns whether the run of a step was cancelled. */
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
    return await stepsIn(
      selectSteps(this.db)
        .innerJoin('step_traces', 'step_traces.step_id', 'step.step_id')
        .where('step_traces.trace_id', '=', traceId)
        .where('step.reporter', '<>', 'nobody')
        .orderBy('step.started_unix_ms')
        .orderBy('step.step_index'),
    );
  }

  /** Traces that hold records of a step. */
  async tracesOf(stepId: string): Promise<readonly TraceId[]> {
    const rows = await this.db
      .selectFrom('step_traces')
      .select('trace_id')
      .where('step_id', '=', stepId)
      .orderBy('trace_id')
      .execute();
    return traceIdsOf(rows);
  }

  /** Lists a run's steps, by their position. */
  async listSteps(runId: number): Promise<readonly StepRow[]> {
    return await stepsIn(selectSteps(this.db).where('step.execution_id', '=', runId).orderBy('step.step_index'));
  }

  /** Registered running steps, oldest first. */
  async listRunning(): Promise<readonly StepRow[]> {
    return await stepsIn(
      selectSteps(this.db)
        .where('step.ending', 'is', null)
        .where('step.reporter', '<>', 'nobody')
        .orderBy('step.execution_id'),
    );
  }

  /** Records a sign of life of the program that runs a step. */
  async noteHeard(stepId: string, nowUnixMs: number): Promise<void> {
    await updateStep(this.db, stepId, { heard_unix_ms: nowUnixMs });
  }

  /** Remote steps that are running or uploading artifacts, without a sign of life since that time. */
  async listSilent(sinceUnixMs: number): Promise<readonly StepRow[]> {
    return await stepsIn(
      selectSteps(this.db)
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
        .orderBy('step.execution_id'),
    );
  }

  /** Lists runs that accept steps and have had none running since that time, oldest first. */
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
      // A run that is queued has no step yet.
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

/** Reads the column of paths, which only the store writes, from a list of texts. */
function parsePaths(paths: string): readonly string[] {
  return JSON.parse(paths) as readonly string[];
}
