import { parseTraceId, type TraceId } from '../record/telemetry-record.js';
import { traceIdsOf } from './database.js';
import type { ManifestRun } from './manifest.js';
import type { StateDb } from './state-tables.js';

/** A run of one engine command without a registered step, with its job, environment and project. */
export interface UnnamedRun {
  readonly traceId: TraceId;
  /** Position of the command in its trace, from 1. */
  readonly commandIndex: number;
  readonly runId: number;
  readonly job: string;
  readonly environment: string | null;
  readonly project: string | null;
}

/** The run that a step's telemetry belongs to. */
export interface RunOrigin extends ManifestRun {
  readonly stepId: string;
  /** Position of the step in its run, from 1. */
  readonly stepIndex: number;
  readonly job: string;
  readonly environment: string | null;
}

/** Finds the runs of traces and the traces of runs, in an SQL database. */
export class TraceCatalog {
  constructor(private readonly db: StateDb) {}

  /** Returns the runs whose commands the trace holds, the earliest first. */
  async runsOf(accountId: number, traceId: TraceId): Promise<readonly number[]> {
    const rows = await this.stepTraces()
      .where('invocation.trace_id', '=', traceId)
      .where('run.account_id', '=', accountId)
      .select('run.id')
      .distinct()
      .orderBy('run.id')
      .execute();
    return rows.map(({ id }) => id);
  }

  /** Returns the traces that hold commands of a run. */
  async tracesOf(runId: number): Promise<readonly TraceId[]> {
    const rows = await this.stepTraces().where('run.id', '=', runId).select('invocation.trace_id').distinct().execute();
    return traceIdsOf(rows);
  }

  /** Returns the runs of any account whose commands the trace holds. */
  async originsOf(traceId: TraceId): Promise<readonly RunOrigin[]> {
    return await this.stepTraces()
      .where('invocation.trace_id', '=', traceId)
      .select(['step.step_id as stepId', 'step.step_index as stepIndex', 'run.id as runId'])
      .select(['run.account_id as accountId', 'run.job_id as jobId', 'run.environment_id as environmentId'])
      .select(['run.job', 'run.environment'])
      .distinct()
      .execute();
  }

  /** Lists the traces of the account's runs, without those that hold a command of another account's run as well. */
  async listTraces(accountId: number): Promise<readonly TraceId[]> {
    const rows = await this.stepTraces()
      .select('invocation.trace_id')
      .groupBy('invocation.trace_id')
      .having(({ fn }) => fn.min('run.account_id'), '=', accountId)
      .having(({ fn }) => fn.max('run.account_id'), '=', accountId)
      .execute();
    return traceIdsOf(rows);
  }

  /** Lists runs without a registered step, whose ids are in no file. @param accountId if left out: of all accounts */
  async listUnnamed(accountId?: number): Promise<readonly UnnamedRun[]> {
    const unnamed = this.stepTraces().where('step.reporter', '=', 'nobody');
    const wanted = accountId === undefined ? unnamed : unnamed.where('run.account_id', '=', accountId);
    const rows = await wanted
      .select(['invocation.trace_id', 'invocation.invocation_index as commandIndex', 'run.id as runId'])
      .select(['run.job', 'run.environment', 'run.project'])
      .execute();
    return rows.flatMap(({ trace_id, ...rest }) => {
      const traceId = parseTraceId(trace_id);
      return traceId === undefined ? [] : [{ traceId, ...rest }];
    });
  }

  private stepTraces() {
    return this.db
      .selectFrom('invocations as invocation')
      .innerJoin('execution_steps as step', 'step.step_id', 'invocation.step_id')
      .innerJoin('executions as run', 'run.id', 'step.execution_id');
  }
}
