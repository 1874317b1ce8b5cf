import { parseTraceId, type TraceId } from '../record/ids.js';
import type { StateDb } from './state-tables.js';
import type { TraceCatalog } from './trace-catalog.js';

/** Traces as accounts see them, from an SQL database. */
export class SqlTraceCatalog implements TraceCatalog {
  constructor(private readonly db: StateDb) {}

  async runsOf(accountId: number, traceId: TraceId): Promise<readonly number[]> {
    const rows = await this.told()
      .where('invocation.trace_id', '=', traceId)
      .where('run.account_id', '=', accountId)
      .select('run.id')
      .distinct()
      .orderBy('run.id')
      .execute();
    return rows.map(({ id }) => id);
  }

  async listTraces(accountId: number): Promise<readonly TraceId[]> {
    const rows = await this.told()
      .select('invocation.trace_id')
      .groupBy('invocation.trace_id')
      .having(({ fn }) => fn.min('run.account_id'), '=', accountId)
      .having(({ fn }) => fn.max('run.account_id'), '=', accountId)
      .execute();
    return rows.flatMap(({ trace_id }) => parseTraceId(trace_id) ?? []);
  }

  private told() {
    return this.db
      .selectFrom('invocations as invocation')
      .innerJoin('execution_steps as step', 'step.step_id', 'invocation.step_id')
      .innerJoin('executions as run', 'run.id', 'step.execution_id');
  }
}
