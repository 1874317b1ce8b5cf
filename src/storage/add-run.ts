import type { Transaction } from 'kysely';
import { nextIds } from './change-state.js';
import { namedIds } from './named-ids.js';
import { NOT_FINISHED, RUN_STATUS, type StateTables } from './state-tables.js';
import type { RunColumns } from './step-columns.js';
import type { StepStart } from './step-start.js';

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
