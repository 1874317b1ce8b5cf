import { type Insertable, sql, type Transaction } from 'kysely';
import { slices } from '../core/lists.js';
import type { TraceId } from '../record/telemetry-record.js';
import { FIRST_ACCOUNT_ID } from './account-store.js';
import { changeState, nextIds } from './database.js';
import { type RunObserver, settleSteps } from './execution-status.js';
import {
  insertRuns,
  linkSteps,
  noteEngine,
  registeredOf,
  removeRunOf,
  stepOf,
  touchRunsOfTraces,
  updateRun,
  updateStep,
} from './executions.js';
import { type Fence, isOwned, onlyOwned } from './journal-store.js';
import { type RunRow, toRunRow } from './run-store.js';
import { namedIds, type RunScope, type ScopeIds } from './scope-store.js';
import { isFinal, NOT_FINISHED, type StateDb, type StateTables } from './state-tables.js';
import { stepStatus } from './steps.js';

/** The saved state of an invocation. */
export interface InvocationNote {
  /** Position in the trace, from 1. */
  readonly index: number;
  /** Whose it is; `null` for the first account. */
  readonly accountId: number | null;
  /** The registered step; `null` if the invocation is a run by itself. */
  readonly stepId: string | null;
  /** The step in its telemetry, whether or not it is registered; `null` if there is none. */
  readonly namedStepId: string | null;
  /** When the import that read it began, in milliseconds since 1970; left out if its telemetry arrived live. */
  readonly importBeganUnixMs?: number;
  /** The command line; `null` until known. */
  readonly command: string | null;
  readonly verdict: 'success' | 'error' | 'canceled' | 'lost' | null;
  readonly statusMessage: string | null;
  readonly startedUnixMs: number;
  /** Of its last record. */
  readonly endedUnixMs: number;
  /** Whether its Parquet can be read. */
  readonly isSaved: boolean;
  /** File name in the trace's folder. */
  readonly parquetFile: string;
  readonly engineVersion: string | null;
  readonly gitBranch: string | null;
  readonly gitSha: string | null;
  /** The job, environment and project of its run, if it is a run by itself. */
  readonly scope: RunScope;
}

/** All invocations of a trace. */
export interface TraceNote {
  readonly traceId: TraceId;
  readonly invocations: readonly InvocationNote[];
}

/** Rows asked for, or written, by one statement; a run's has 26 columns, and SQLite allows 32,766 parameters in one. */
const ROWS_PER_STATEMENT = 500;
/** In `runs.is_noted`. */
const SET_ASIDE = 2;

type InvocationColumns = StateTables['invocations'];

/** An invocation that is a run by itself. */
interface SingleRun {
  readonly stepId: string;
  readonly traceId: TraceId;
  readonly note: InvocationNote;
}

/** Rows of invocations, and the runs of those without a registered step, in an SQL database. */
export class InvocationStore {
  /** @param fence the identity of this process, if several share the database */
  constructor(
    private readonly db: StateDb,
    private readonly observer: RunObserver,
    private readonly fence?: Fence,
  ) {}

  /**
   * Saves traces, in one transaction: an invocation without a registered step gets a run with one step, and the statuses
   * of steps and runs are updated. Final values stay. Can be repeated.
   */
  async note(all: readonly TraceNote[], nowUnixMs: number): Promise<void> {
    if (all.length === 0) return;
    await changeState(this.db, async (transaction) => {
      const notes = await onlyOwned(transaction, all, this.fence);
      for (const some of slices(notes, ROWS_PER_STATEMENT)) {
        await noteSome(transaction, await findNamedSteps(transaction, some), nowUnixMs, this.observer);
      }
    });
  }

  /** Traces whose invocations can never be saved: they are skipped, and counted. */
  async setAside(traceIds: readonly TraceId[]): Promise<void> {
    await this.db.updateTable('runs').set({ is_noted: SET_ASIDE }).where('trace_id', 'in', traceIds).execute();
  }

  async countSetAside(): Promise<number> {
    const found = await this.db
      .selectFrom('runs')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('is_noted', '=', SET_ASIDE)
      .executeTakeFirst();
    return found?.count ?? 0;
  }

  /** Lists those of them that were seen last, the latest first. */
  async listSetAside(limit: number): Promise<readonly RunRow[]> {
    const rows = await this.db
      .selectFrom('runs')
      .selectAll()
      .where('is_noted', '=', SET_ASIDE)
      .orderBy('last_seen_unix_ms', 'desc')
      .limit(limit)
      .execute();
    return rows.map(toRunRow);
  }

  /** Lists traces with a row whose invocations were never saved, oldest first. */
  async listUnnoted(limit: number): Promise<readonly RunRow[]> {
    const { fence } = this;
    const rows = await this.db
      .selectFrom('runs')
      .selectAll()
      // Spelt as the partial index spells it.
      .where(sql<boolean>`is_noted = 0`)
      .$if(fence !== undefined, (query) => query.where(isOwned(fence?.processId ?? '')))
      .orderBy('first_seen_unix_ms')
      .limit(limit)
      .execute();
    return rows.map(toRunRow);
  }
}

async function noteSome(
  transaction: Transaction<StateTables>,
  notes: readonly TraceNote[],
  nowUnixMs: number,
  observer: RunObserver,
): Promise<void> {
  const traceIds = notes.map(({ traceId }) => traceId);
  const rows = await transaction.selectFrom('invocations').selectAll().where('trace_id', 'in', traceIds).execute();
  const known = new Map(rows.map((row) => [`${row.trace_id} ${row.invocation_index}`, row]));
  const written: InvocationColumns[] = [];
  const fresh: SingleRun[] = [];
  const changed: SingleRun[] = [];
  const settled = new Set<string>();
  const surplus: InvocationColumns[] = [];
  for (const { traceId, invocations } of notes) {
    for (const note of invocations) {
      const before = known.get(`${traceId} ${note.index}`);
      const stepId = note.stepId ?? singleStepId(traceId, note.index);
      written.push(rowOf(traceId, stepId, note, before));
      if (note.stepId !== null) settled.add(note.stepId);
      else (before?.step_id === stepId ? changed : fresh).push({ stepId, traceId, note });
      if (before !== undefined && before.step_id !== stepId) surplus.push(before);
    }
    surplus.push(...rows.filter((row) => row.trace_id === traceId && row.invocation_index > invocations.length));
  }
  for (const row of surplus) {
    if (row.step_id === singleStepId(row.trace_id, row.invocation_index))
      await removeSingle(transaction, row.step_id, observer);
    else settled.add(row.step_id);
    await transaction
      .deleteFrom('invocations')
      .where('trace_id', '=', row.trace_id)
      .where('invocation_index', '=', row.invocation_index)
      .execute();
  }
  await writeInvocations(transaction, written);
  // Rows of telemetry are written before the statuses that follow from them, since observers are notified at once.
  for (const own of notes.flatMap(({ invocations }) => invocations)) {
    if (own.stepId !== null) await noteEngine(transaction, own.stepId, own);
  }
  const ownRunIds = [...(await addSingle(transaction, fresh, nowUnixMs))];
  for (const own of changed) ownRunIds.push(...(await updateSingle(transaction, own, nowUnixMs)));
  await observeImported(transaction, notes, observer);
  await observer.onChanged(transaction, ownRunIds);
  await settleSteps(transaction, [...settled], nowUnixMs, observer);
  await touchRunsOfTraces(transaction, traceIds);
  await transaction.updateTable('runs').set({ is_noted: 1 }).where('trace_id', 'in', traceIds).execute();
}

/** Notifies the observer of imported steps. While the end of a command is unknown, its last record counts as its end. */
async function observeImported(
  transaction: Transaction<StateTables>,
  notes: readonly TraceNote[],
  observer: RunObserver,
): Promise<void> {
  const imported = notes.flatMap(({ traceId, invocations }) =>
    invocations.flatMap(({ index, stepId, importBeganUnixMs, endedUnixMs }) => {
      if (importBeganUnixMs === undefined) return [];
      return [{ stepId: stepId ?? singleStepId(traceId, index), isRecent: endedUnixMs >= importBeganUnixMs }];
    }),
  );
  for (const isRecent of [true, false]) {
    const stepIds = imported.filter((one) => one.isRecent === isRecent).map(({ stepId }) => stepId);
    if (stepIds.length > 0) await observer.onImported(transaction, stepIds, isRecent);
  }
}

/** No registered step can have this id: it contains a slash. */
function singleStepId(traceId: string, index: number): string {
  return `trace/${traceId}/${index}`;
}

function rowOf(
  traceId: TraceId,
  stepId: string,
  note: InvocationNote,
  before: InvocationColumns | undefined,
): InvocationColumns {
  const isReopened = note.verdict === null && before !== undefined && before.verdict !== null;
  return {
    trace_id: traceId,
    invocation_index: note.index,
    step_id: stepId,
    command: note.command,
    verdict: isReopened ? before.verdict : note.verdict,
    status_message: isReopened ? before.status_message : note.statusMessage,
    started_unix_ms: note.startedUnixMs,
    ended_unix_ms: note.endedUnixMs,
    // The previous file stays until the new one replaces it.
    is_saved: note.isSaved || before?.is_saved === 1 ? 1 : 0,
    parquet_file: note.parquetFile,
  };
}

async function writeInvocations(transaction: Transaction<StateTables>, rows: InvocationColumns[]): Promise<void> {
  for (const some of slices(rows, ROWS_PER_STATEMENT)) {
    await transaction
      .insertInto('invocations')
      .values(some)
      .onConflict((conflict) =>
        conflict.columns(['trace_id', 'invocation_index']).doUpdateSet((row) => ({
          step_id: row.ref('excluded.step_id'),
          command: row.ref('excluded.command'),
          verdict: row.ref('excluded.verdict'),
          status_message: row.ref('excluded.status_message'),
          started_unix_ms: row.ref('excluded.started_unix_ms'),
          ended_unix_ms: row.ref('excluded.ended_unix_ms'),
          is_saved: row.ref('excluded.is_saved'),
          parquet_file: row.ref('excluded.parquet_file'),
        })),
      )
      .execute();
  }
}

/** @returns numbers of the runs */
async function addSingle(
  transaction: Transaction<StateTables>,
  own: readonly SingleRun[],
  nowUnixMs: number,
): Promise<readonly number[]> {
  if (own.length === 0) return [];
  const scopes = new Map<string, ScopeIds>();
  const firstRunId = await nextIds(transaction, 'execution', own.length);
  const firstStepId = await nextIds(transaction, 'step', own.length);
  const runs: Insertable<StateTables['executions']>[] = [];
  const steps: Insertable<StateTables['execution_steps']>[] = [];
  for (const [position, one] of own.entries()) {
    const { scope, startedUnixMs, command } = one.note;
    const accountId = one.note.accountId ?? FIRST_ACCOUNT_ID;
    const name = JSON.stringify([accountId, scope.job, scope.environment, scope.project]);
    const ids = scopes.get(name) ?? (await namedIds(transaction, accountId, scope, startedUnixMs));
    scopes.set(name, ids);
    const id = firstRunId + position;
    const { run, step } = stateOf(one, nowUnixMs);
    runs.push({
      ...{
        id,
        run_key: null,
        reason: null,
        step_count: 1,
        account_id: accountId,
        cancelled_unix_ms: null,
        notified: 0,
      },
      ...{ job: scope.job, environment: scope.environment, project: scope.project },
      ...{ project_id: ids.projectId, environment_id: ids.environmentId, job_id: ids.jobId },
      ...run,
    });
    steps.push({
      ...{ id: firstStepId + position, step_id: one.stepId, execution_id: id, step_index: 1, reporter: 'nobody' },
      ...{ is_last: 1, command: JSON.stringify(command === null ? [] : command.split(' ')) },
      ...{ exit_code: null, ending_detail: null },
      ...step,
    });
  }
  const links = own.map(({ traceId, stepId }) => ({ trace_id: traceId, step_id: stepId }));
  await insertRuns(transaction, { runs, steps, links });
  return runs.map(({ id }) => id);
}

/** @returns the number of the run, where there is something new of it */
async function updateSingle(
  transaction: Transaction<StateTables>,
  own: SingleRun,
  nowUnixMs: number,
): Promise<readonly number[]> {
  const known = await stepOf(transaction, own.stepId);
  if (known === undefined) return [];
  const { run, step } = stateOf(own, nowUnixMs);
  if (isFinal(known.status) && !isFinal(step.status)) return [];
  const command = JSON.stringify(own.note.command === null ? [] : own.note.command.split(' '));
  await updateStep(transaction, own.stepId, { ...step, command });
  await updateRun(transaction, known.execution_id, run);
  return [known.execution_id];
}

/** Updates the run and the step of an invocation that is a run by itself. */
function stateOf({ note }: SingleRun, nowUnixMs: number) {
  const { status, statusMessage } = stepStatus({
    ending: null,
    isReported: false,
    invocations: [note],
    isAwaited: false,
  });
  const isOver = isFinal(status);
  const ended_unix_ms = isOver ? note.endedUnixMs : null;
  const times = { started_unix_ms: note.startedUnixMs, seen_unix_ms: note.startedUnixMs, ended_unix_ms };
  const both = { ...times, updated_unix_ms: nowUnixMs, status, status_message: statusMessage };
  const run = {
    ...both,
    created_unix_ms: note.startedUnixMs,
    state: isOver ? ('finished' as const) : ('closing' as const),
    finished_unix_ms: ended_unix_ms ?? NOT_FINISHED,
    engine_version: note.engineVersion,
    git_branch: note.gitBranch,
    git_sha: note.gitSha,
  };
  return { run, step: { ...both, ending: isOver ? ('unknown' as const) : null } };
}

/** It turned out to be part of another invocation, or of a registered step. */
async function removeSingle(
  transaction: Transaction<StateTables>,
  stepId: string,
  observer: RunObserver,
): Promise<void> {
  const runId = await removeRunOf(transaction, stepId);
  if (runId !== undefined) await observer.onRemoved(transaction, runId);
}

/**
 * Links traces with steps that their telemetry names before these are registered: registration then finds its traces.
 * @returns the notes, with the step if it was registered meanwhile
 */
async function findNamedSteps(
  transaction: Transaction<StateTables>,
  notes: readonly TraceNote[],
): Promise<readonly TraceNote[]> {
  const links = notes.flatMap(({ traceId, invocations }) =>
    [...new Set(invocations.flatMap((note) => unregistered(note) ?? []))].map((step_id) => ({
      trace_id: traceId,
      step_id,
    })),
  );
  if (links.length === 0) return notes;
  const begun = new Set<string>();
  for (const some of slices(links, ROWS_PER_STATEMENT)) {
    await linkSteps(transaction, some);
    const stepIds = some.map(({ step_id }) => step_id);
    for (const stepId of await registeredOf(transaction, stepIds)) begun.add(stepId);
  }
  if (begun.size === 0) return notes;
  const found = (note: InvocationNote) =>
    [unregistered(note)].find((stepId) => stepId !== null && begun.has(stepId)) ?? null;
  return notes.map(({ traceId, invocations }) => ({
    traceId,
    invocations: invocations.map((note) => ({ ...note, stepId: note.stepId ?? found(note) })),
  }));
}

function unregistered({ stepId, namedStepId }: InvocationNote): string | null {
  return stepId === null ? namedStepId : null;
}
