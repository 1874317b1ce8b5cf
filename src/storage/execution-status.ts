import { sql, type Transaction } from 'kysely';
import { slices } from '../core/lists.js';
import { closeRun, finishIfOver, selectUploads, toEnding, touched, updateStep } from './executions.js';
import { isFinal, NOT_FINISHED, type RunStatus, type StateTables } from './state-tables.js';
import { runStatus, stepStatus } from './steps.js';

/** Is notified of changes of runs, within the transaction that makes them. */
export interface RunObserver {
  /** Runs may have changed. */
  onChanged(transaction: Transaction<StateTables>, runIds: readonly number[]): Promise<void>;
  /** An import adds these steps. @param isRecent whether they ended after it had begun; the last record so far counts as the end */
  onImported(transaction: Transaction<StateTables>, stepIds: readonly string[], isRecent: boolean): Promise<void>;
  /** The run does not exist: it turned out to be part of another one. */
  onRemoved(transaction: Transaction<StateTables>, runId: number): Promise<void>;
}

/** Ignores all changes. */
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
    const uploads = await selectUploads(transaction).select('step.step_id').where('step.step_id', 'in', some).execute();
    const uploading = new Set(uploads.map(({ step_id }) => step_id));
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

/** Sets the status of runs from their steps, and notifies the observer. @param nowUnixMs as above; `null` to use the run's end */
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

/** Returns whether artifacts of any of its steps cannot be downloaded yet. */
async function isUploading(transaction: Transaction<StateTables>, runId: number): Promise<boolean> {
  const uploads = selectUploads(transaction).select('step.step_id').where('step.execution_id', '=', runId);
  return (await uploads.limit(1).executeTakeFirst()) !== undefined;
}

/**
 * Ends a run, which takes no more steps, once none is running.
 * @param nowUnixMs as of `settleRuns`
 * @returns the number of running steps
 */
export async function endRun(
  transaction: Transaction<StateTables>,
  runId: number,
  nowUnixMs: number | null,
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

/** Lists runs of which not all events were created, and whether they may turn out to be part of another run. */
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
