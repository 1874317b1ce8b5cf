import { type RawBuilder, type SqlBool, sql, type Transaction } from 'kysely';
import { slices } from '../core/lists.js';
import { parseTraceId, type TraceId } from '../record/telemetry-record.js';
import { IDS_PER_STATEMENT } from './database.js';
import { NOT_FINISHED, type RunStatus, type StateDb, type StateTables } from './state-tables.js';

/** Upper bounds of the durations that runs are counted by, in seconds. Longer runs are counted without a bound. */
export const DURATION_BOUNDS = [1, 5, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 14_400] as const;

/** What runs are counted by. Ids are those of the tables of the same names. */
interface TotalKey {
  readonly accountId: number;
  readonly projectId: number;
  readonly environmentId: number;
  readonly jobId: number;
  readonly status: RunStatus;
  /** One of `DURATION_BOUNDS`; 0 for longer runs and for those that are not over. */
  readonly boundSeconds: number;
}

/** Runs of one job in one environment that ended alike and took about as long, also those that were removed. */
export interface RunTotal extends TotalKey {
  readonly runCount: number;
  /** Sum of their durations in milliseconds; 0 for runs that are not over. */
  readonly durationMs: number;
  /** When the last of them began, in Unix milliseconds. */
  readonly startedUnixMs: number;
  /** When the last of them ended, in Unix milliseconds; `NOT_FINISHED` for runs that are not over. */
  readonly finishedUnixMs: number;
  /** The one of them that ended last; 0 if it was removed, or none is over. */
  readonly latestRunId: number;
}

/** A run to look at, as an example of those that took about as long. */
export interface ExampleRun {
  readonly runId: number;
  readonly traceId: TraceId;
  readonly durationMs: number;
}

/** Runs that are read by one statement, so that no other request waits long. */
const RUNS_PER_STATEMENT = 10_000;

const START = sql<number>`coalesce(seen_unix_ms, started_unix_ms)`;
const IS_OVER = sql<SqlBool>`status >= 10`;
const DURATION_MS = sql<number>`case when ${IS_OVER} and finished_unix_ms > ${START} then finished_unix_ms - ${START} else 0 end`;
const BOUND_SECONDS = sql<number>`case when not ${IS_OVER} then 0 ${sql.join(
  DURATION_BOUNDS.map(
    (seconds): RawBuilder<unknown> => sql`when ${DURATION_MS} <= ${sql.lit(seconds * 1_000)} then ${sql.lit(seconds)}`,
  ),
  sql` `,
)} else 0 end`;

/** How many runs each job had, by their results and durations, in an SQL database. Removed runs stay counted. */
export class RunTotalsStore {
  constructor(private readonly db: StateDb) {}

  /** Reads the totals of all accounts. */
  async read(): Promise<readonly RunTotal[]> {
    const totals = new Map<string, RunTotal>();
    const { first, last } = await this.db
      .selectFrom('executions')
      .select(({ fn }) => [fn.min('id').as('first'), fn.max('id').as('last')])
      .executeTakeFirstOrThrow();
    for (let after = (first ?? 0) - 1; after < (last ?? 0); after += RUNS_PER_STATEMENT) {
      const rows = await countRuns(this.db, sql`id > ${after} and id <= ${after + RUNS_PER_STATEMENT}`);
      for (const row of rows) add(totals, row);
    }
    for (const row of await this.db.selectFrom('removed_run_totals').selectAll().execute()) {
      add(totals, {
        ...{ accountId: row.account_id, projectId: row.project_id, environmentId: row.environment_id },
        ...{ jobId: row.job_id, status: row.status, boundSeconds: row.bound_seconds },
        ...{ runCount: Number(row.run_count), durationMs: Number(row.duration_ms), latestRunId: 0 },
        ...{ startedUnixMs: Number(row.started_unix_ms), finishedUnixMs: Number(row.finished_unix_ms) },
      });
    }
    return this.withLatest([...totals.values()]);
  }

  /** Finds the runs that ended last, by when that was. */
  private async withLatest(totals: readonly RunTotal[]): Promise<readonly RunTotal[]> {
    const ids = new Map<string, number>();
    const ends = [...new Set(totals.map(({ finishedUnixMs }) => finishedUnixMs))].filter((end) => end < NOT_FINISHED);
    for (const some of slices(ends, IDS_PER_STATEMENT)) {
      const rows = await keyed(this.db)
        .select(['id', 'finished_unix_ms'])
        .where(IS_OVER)
        .where('finished_unix_ms', 'in', some)
        .orderBy('id')
        .execute();
      for (const row of rows) ids.set(`${keyOf(withNumbers(row))} ${row.finished_unix_ms}`, row.id);
    }
    return totals.map((one) => ({ ...one, latestRunId: ids.get(`${keyOf(one)} ${one.finishedUnixMs}`) ?? 0 }));
  }

  /** Returns the names of all jobs, environments and projects by their ids. */
  async names(): Promise<Readonly<Record<'jobs' | 'environments' | 'projects', ReadonlyMap<number, string>>>> {
    const read = async (table: 'jobs' | 'environments' | 'projects') => {
      const rows = await this.db.selectFrom(table).select(['id', 'name']).execute();
      return new Map(rows.map(({ id, name }) => [id, name]));
    };
    return { jobs: await read('jobs'), environments: await read('environments'), projects: await read('projects') };
  }

  /** Returns each of these runs with its first trace; runs without a trace are left out. */
  async examples(runIds: readonly number[]): Promise<readonly ExampleRun[]> {
    const found: ExampleRun[] = [];
    for (const some of slices(runIds, IDS_PER_STATEMENT)) {
      const rows = await this.db
        .selectFrom('executions as run')
        .innerJoin('execution_steps as step', 'step.execution_id', 'run.id')
        .innerJoin('step_traces as trace', 'trace.step_id', 'step.step_id')
        .select(({ fn }) => ['run.id', fn.min('trace.trace_id').as('traceId')])
        .select(
          sql<number>`min(run.finished_unix_ms - coalesce(run.seen_unix_ms, run.started_unix_ms))`.as('durationMs'),
        )
        .where('run.id', 'in', some)
        .groupBy('run.id')
        .execute();
      for (const { id, traceId, durationMs } of rows) {
        const parsed = parseTraceId(traceId);
        if (parsed !== undefined) found.push({ runId: id, traceId: parsed, durationMs: Number(durationMs) });
      }
    }
    return found;
  }
}

/** Keeps counting runs whose rows are about to be deleted. */
export async function noteRemovedRuns(transaction: Transaction<StateTables>, runIds: readonly number[]): Promise<void> {
  const rows = await countRuns(transaction, sql`id in (${sql.join(runIds)}) and ${IS_OVER}`);
  for (const row of rows) {
    await transaction
      .insertInto('removed_run_totals')
      .values({
        ...{ account_id: row.accountId, project_id: row.projectId, environment_id: row.environmentId },
        ...{ job_id: row.jobId, status: row.status, bound_seconds: row.boundSeconds },
        ...{ run_count: row.runCount, duration_ms: row.durationMs },
        ...{ started_unix_ms: row.startedUnixMs, finished_unix_ms: row.finishedUnixMs },
      })
      .onConflict((conflict) =>
        conflict
          .columns(['account_id', 'project_id', 'environment_id', 'job_id', 'status', 'bound_seconds'])
          .doUpdateSet(({ eb, ref }) => ({
            run_count: eb('removed_run_totals.run_count', '+', ref('excluded.run_count')),
            duration_ms: eb('removed_run_totals.duration_ms', '+', ref('excluded.duration_ms')),
            started_unix_ms: later('started_unix_ms'),
            finished_unix_ms: later('finished_unix_ms'),
          })),
      )
      .execute();
  }
}

function later(column: 'started_unix_ms' | 'finished_unix_ms'): RawBuilder<number> {
  const [kept, added] = [sql.ref(`removed_run_totals.${column}`), sql.ref(`excluded.${column}`)];
  return sql`case when ${added} > ${kept} then ${added} else ${kept} end`;
}

/** Selects runs with what they are counted by. */
function keyed(db: StateDb) {
  return db
    .selectFrom('executions')
    .select(['account_id as accountId', 'project_id as projectId', 'environment_id as environmentId'])
    .select(['job_id as jobId', 'status', BOUND_SECONDS.as('boundSeconds')]);
}

/** PostgreSQL's driver gives computed integers as texts. */
function withNumbers<Row extends TotalKey>(row: Row): Row {
  return { ...row, boundSeconds: Number(row.boundSeconds) };
}

async function countRuns(db: StateDb, which: RawBuilder<unknown>): Promise<readonly RunTotal[]> {
  const rows = await keyed(db)
    .select(({ fn }) => fn.countAll<number>().as('runCount'))
    .select([
      sql<number>`sum(${DURATION_MS})`.as('durationMs'),
      sql<number>`max(${START})`.as('startedUnixMs'),
      sql<number>`max(finished_unix_ms)`.as('finishedUnixMs'),
    ])
    .where(sql<SqlBool>`${which}`)
    .groupBy(['account_id', 'project_id', 'environment_id', 'job_id', 'status', BOUND_SECONDS])
    .execute();
  return rows.map(({ runCount, durationMs, startedUnixMs, finishedUnixMs, ...row }) => ({
    ...withNumbers(row),
    ...{ runCount: Number(runCount), durationMs: Number(durationMs) },
    ...{ startedUnixMs: Number(startedUnixMs), finishedUnixMs: Number(finishedUnixMs), latestRunId: 0 },
  }));
}

function add(totals: Map<string, RunTotal>, more: RunTotal): void {
  const known = totals.get(keyOf(more));
  totals.set(keyOf(more), known === undefined ? more : joined(known, more));
}

function keyOf({ accountId, projectId, environmentId, jobId, status, boundSeconds }: TotalKey): string {
  return [accountId, projectId, environmentId, jobId, status, boundSeconds].join();
}

function joined(one: RunTotal, other: RunTotal): RunTotal {
  return {
    ...one,
    runCount: one.runCount + other.runCount,
    durationMs: one.durationMs + other.durationMs,
    startedUnixMs: Math.max(one.startedUnixMs, other.startedUnixMs),
    finishedUnixMs: Math.max(one.finishedUnixMs, other.finishedUnixMs),
  };
}
