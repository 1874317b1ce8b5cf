import { type ExpressionBuilder, type RawBuilder, type Selectable, sql } from 'kysely';
import { groupBy, slices } from '../core/lists.js';
import { parseTraceId, type TraceId } from '../record/telemetry-record.js';
import {
  NOT_FINISHED,
  parseRunNumber,
  RUN_STATUS,
  type RunStatus,
  type StateDb,
  type StateTables,
} from './state-tables.js';

/** Something with a number and a name that runs belong to. */
export interface NamedThing {
  readonly id: number;
  readonly name: string;
}

/** A run as lists show it. Times are Unix milliseconds. */
export interface CatalogRun {
  readonly id: number;
  readonly accountId: number;
  readonly project: NamedThing;
  readonly environment: NamedThing;
  readonly job: NamedThing;
  /** The user's name for it (`--run-id`). */
  readonly runKey: string | null;
  /** Why it was started, for people to read. */
  readonly reason: string | null;
  /** Whether it was asked for over the API. */
  readonly isAskedFor: boolean;
  /** The failed run that it starts anew; `null` where it is no retry. */
  readonly retriedRunId: number | null;
  /** Command lines that it was asked to run in place of its job's; `null` where it runs the job's. */
  readonly stepsOverride: readonly string[] | null;
  readonly status: RunStatus;
  /** Why it failed; `null` if there is nothing to report. */
  readonly statusMessage: string | null;
  readonly createdUnixMs: number;
  readonly updatedUnixMs: number;
  /** When its first command was started; `null` while it is queued. */
  readonly dequeuedUnixMs: number | null;
  /** When its first engine command began, by its telemetry; `null` before. */
  readonly startedUnixMs: number | null;
  /** `null` until its status is final. */
  readonly finishedUnixMs: number | null;
  /** `null` if its telemetry does not contain it. */
  readonly engineVersion: string | null;
  readonly gitBranch: string | null;
  readonly gitSha: string | null;
  readonly stepCount: number;
  /** Artifacts that were to come and never did, of all its steps. */
  readonly missingArtifactCount: number;
}

/** Artifacts that a step is to have and that cannot all be downloaded. */
export interface CatalogArtifacts {
  /** `uploading`: uploads are in progress; `incomplete`: some never arrived. */
  readonly state: 'uploading' | 'incomplete';
  /** All expected artifacts of the step. */
  readonly expectedCount: number;
  /** The missing ones. */
  readonly missing: readonly string[];
  /** Why, in words; `null` while they are uploaded. */
  readonly reason: string | null;
}

/** A step of a run: one command. */
export interface CatalogStep {
  readonly id: number;
  /** The name under which it was registered. */
  readonly stepId: string;
  readonly runId: number;
  readonly accountId: number;
  /** Position in the run, from 1. */
  readonly index: number;
  readonly status: RunStatus;
  readonly statusMessage: string | null;
  /** The command and its arguments as started, or according to the telemetry. */
  readonly command: readonly string[];
  readonly createdUnixMs: number;
  readonly updatedUnixMs: number;
  /** When its first engine command began; `null` before. */
  readonly startedUnixMs: number | null;
  /** `null` while it is running. */
  readonly finishedUnixMs: number | null;
  /** `null` if all its artifacts can be downloaded. */
  readonly artifacts: CatalogArtifacts | null;
  /** Its engine commands, in the order in which they began; most steps have one. */
  readonly invocations: readonly CatalogInvocation[];
}

/** The command lines of a run's steps: those of its engine commands, else of what was started. */
export function commandLinesOf(steps: readonly Pick<CatalogStep, 'command' | 'invocations'>[]): readonly string[] {
  return steps.flatMap(({ command, invocations }) =>
    invocations.length === 0 ? [command.join(' ')] : invocations.map((one) => one.command ?? command.join(' ')),
  );
}

/** The command lines of runs of an account, by their ids; none of one that is not there. */
export async function commandLinesByRun(
  catalog: Pick<RunCatalog, 'stepsOf'>,
  accountId: number,
  runIds: readonly number[],
): Promise<(runId: number) => readonly string[]> {
  const steps = groupBy(await catalog.stepsOf(accountId, runIds), ({ runId }) => runId);
  return (runId) => commandLinesOf(steps.get(runId) ?? []);
}

/** One engine command of a step. */
export interface CatalogInvocation {
  readonly traceId: TraceId;
  /** Position in its trace, from 1. */
  readonly index: number;
  /** The command line; `null` if the telemetry does not contain it. */
  readonly command: string | null;
  readonly verdict: 'success' | 'error' | 'canceled' | 'lost' | null;
  /** File name in the trace's folder. */
  readonly parquetFile: string;
  /** Whether that file is there and has all of it. */
  readonly isSaved: boolean;
}

/** A job. */
export interface CatalogJob extends NamedThing {
  readonly accountId: number;
  readonly projectId: number;
  readonly environmentId: number;
  /** Of its last run that ended; `null` where there is none, or its telemetry does not have it. */
  readonly engineVersion: string | null;
  readonly createdUnixMs: number;
  readonly updatedUnixMs: number;
}

/** A project. */
export interface CatalogProject extends NamedThing {
  readonly accountId: number;
  readonly createdUnixMs: number;
  readonly updatedUnixMs: number;
}

/** An environment; its project is that of its first run, or the declared one. */
export interface CatalogEnvironment extends CatalogProject {
  readonly projectId: number;
  /** Of its last run that ended; `null` where there is none, or its telemetry does not have it. */
  readonly engineVersion: string | null;
}

/** The first command of a run that errored. */
export interface RunError {
  /** The reason; `null` if unknown. */
  readonly message: string | null;
  /** When it ended; `null` if unknown. */
  readonly erroredUnixMs: number | null;
}

/** From and to, both included, in Unix milliseconds. */
export type TimeRange = readonly [fromUnixMs: number, toUnixMs: number];

/** Texts of errors: as they were sent, without literals, or none. */
export type ErrorTexts = 'whole' | 'redacted' | 'none';

/** Which runs, in which order. What is left out filters nothing. */
export interface RunQuery {
  readonly ids?: readonly number[];
  readonly statuses?: readonly number[];
  readonly jobId?: number;
  readonly environmentId?: number;
  readonly projectIds?: readonly number[];
  /** Whole names; of several things of one name, the runs of all. */
  readonly jobName?: string;
  readonly environmentName?: string;
  readonly projectName?: string;
  readonly idAbove?: number;
  readonly createdRange?: TimeRange;
  readonly finishedRange?: TimeRange;
  readonly engineVersions?: readonly string[];
  /**
   * Part of the name of its job, environment or project, of the user's name for it, of its git branch, or of its errors as far as
   * `errorTexts` says, ignoring case; or its id.
   */
  readonly textContains?: string;
  /** Which texts of errors `textContains` is looked for in; default: none. Only runs that were measured have any. */
  readonly errorTexts?: ErrorTexts;
  /** Runs that are not over stand after all others by `finished`. */
  readonly orderBy: 'id' | 'created' | 'finished';
  readonly isDescending: boolean;
  readonly limit: number;
  readonly offset: number;
}

/** Which jobs, in which order. */
export interface JobQuery {
  readonly ids?: readonly number[];
  readonly projectIds?: readonly number[];
  readonly environmentId?: number;
  /** Part of the name, ignoring case. */
  readonly nameContains?: string;
  readonly engineVersions?: readonly string[];
  readonly orderBy: 'id' | 'name' | 'created' | 'updated';
  readonly isDescending: boolean;
  readonly limit: number;
  readonly offset: number;
}

/** Which projects, in which order. */
export interface ProjectQuery {
  readonly ids?: readonly number[];
  readonly idAbove?: number;
  readonly name?: string;
  /** Part of the name, ignoring case. */
  readonly nameContains?: string;
  readonly orderBy: JobQuery['orderBy'];
  readonly isDescending: boolean;
  readonly limit: number;
  readonly offset: number;
}

/** Which environments, in which order. */
export interface EnvironmentQuery extends ProjectQuery {
  readonly projectIds?: readonly number[];
  readonly engineVersions?: readonly string[];
}

/** A part of a list. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** On all pages. */
  readonly totalCount: number;
}

/** Ids of a job's latest run, and of the latest one that is over; `null` where there is none. */
export interface LatestRuns {
  readonly latest: number | null;
  readonly completed: number | null;
}

/** Ids asked for by one statement. */
const IDS_PER_STATEMENT = 500;

/** Runs, steps and jobs as accounts see them, from an SQL database. */
export class RunCatalog {
  constructor(private readonly db: StateDb) {}

  async findRun(accountId: number, runId: number): Promise<CatalogRun | undefined> {
    const row = await runs(this.db)
      .where('run.id', '=', runId)
      .where('run.account_id', '=', accountId)
      .executeTakeFirst();
    return row && toRun(row);
  }

  /** First selects the runs, by an index with all filtered columns; then reads only those. */
  async listRuns(accountId: number, query: RunQuery): Promise<Page<CatalogRun>> {
    const matching = this.db.selectFrom('executions as run').where((where) => matches(where, accountId, query));
    const counted = await matching.select(({ fn }) => fn.countAll<number>().as('totalCount')).executeTakeFirstOrThrow();
    const totalCount = Number(counted.totalCount);
    const count = Math.min(query.limit, totalCount - query.offset);
    if (count <= 0) return { items: [], totalCount };
    // An offset walks through the skipped rows, so a page of old runs is read from the oldest end, where none are added.
    const isFromEnd = query.isDescending && query.offset > totalCount / 2;
    const direction = query.isDescending && !isFromEnd ? 'desc' : 'asc';
    const order = ORDER[query.orderBy];
    const sorted = order === 'run.id' ? matching : matching.orderBy(order, direction);
    const ids = await sorted
      .select('run.id')
      .orderBy('run.id', direction)
      .limit(count)
      .offset(isFromEnd ? totalCount - query.offset - count : query.offset)
      .execute();
    if (isFromEnd) ids.reverse();
    const rows = await runs(this.db)
      .where(
        'run.id',
        'in',
        ids.map(({ id }) => id),
      )
      .execute();
    const byId = new Map(rows.map((row) => [row.id, row]));
    const items = ids.flatMap(({ id }) => {
      const row = byId.get(id);
      return row === undefined ? [] : [toRun(row)];
    });
    return { items, totalCount };
  }

  /** Steps of these runs, by run and position. */
  async stepsOf(accountId: number, runIds: readonly number[]): Promise<readonly CatalogStep[]> {
    const found: CatalogStep[] = [];
    for (const some of slices(runIds, IDS_PER_STATEMENT)) {
      const rows = await steps(this.db, accountId)
        .where('step.execution_id', 'in', some)
        .orderBy('step.execution_id')
        .orderBy('step.step_index')
        .execute();
      found.push(...(await this.withInvocations(rows)));
    }
    return found;
  }

  async findStep(accountId: number, id: number): Promise<CatalogStep | undefined> {
    const [step] = await this.withInvocations(await steps(this.db, accountId).where('step.id', '=', id).execute());
    return step;
  }

  async findJob(accountId: number, id: number): Promise<CatalogJob | undefined> {
    const [job] = await this.findJobs(accountId, [id]);
    return job;
  }

  /** Those of the jobs that there are. */
  async findJobs(accountId: number, ids: readonly number[]): Promise<readonly CatalogJob[]> {
    if (ids.length === 0) return [];
    const rows = await this.db
      .selectFrom('jobs')
      .selectAll()
      .select(JOB_ENGINE_VERSION.as('engine_version'))
      .where('account_id', '=', accountId)
      .where('id', 'in', ids)
      .execute();
    return rows.map(toJob);
  }

  async listJobs(accountId: number, query: JobQuery): Promise<Page<CatalogJob>> {
    const { ids, projectIds, environmentId, nameContains, engineVersions } = query;
    const matching = this.db
      .selectFrom('jobs')
      .where(({ and, eb }) =>
        and([
          eb('account_id', '=', accountId),
          ...(ids === undefined ? [] : [inAny(eb('id', 'in', ids), ids)]),
          ...(engineVersions === undefined
            ? []
            : [inAny(eb(JOB_ENGINE_VERSION, 'in', engineVersions), engineVersions)]),
          ...(projectIds === undefined ? [] : [inAny(eb('project_id', 'in', projectIds), projectIds)]),
          ...(environmentId === undefined ? [] : [eb('environment_id', '=', environmentId)]),
          ...(nameContains === undefined ? [] : [isNameLike(nameContains)]),
        ]),
      );
    const direction = query.isDescending ? 'desc' : 'asc';
    const rows = await matching
      .selectAll()
      .select(JOB_ENGINE_VERSION.as('engine_version'))
      .orderBy(JOB_ORDER[query.orderBy], direction)
      .orderBy('id', direction)
      .limit(query.limit)
      .offset(query.offset)
      .execute();
    const { totalCount } = await matching
      .select(({ fn }) => fn.countAll<number>().as('totalCount'))
      .executeTakeFirstOrThrow();
    return { items: rows.map(toJob), totalCount: Number(totalCount) };
  }

  /** The latest runs of jobs, by the ids of the jobs. */
  async latestRunsOf(accountId: number, jobIds: readonly number[]): Promise<ReadonlyMap<number, LatestRuns>> {
    const found = new Map<number, LatestRuns>();
    for (const some of slices(jobIds, IDS_PER_STATEMENT)) {
      const rows = await this.db
        .selectFrom('jobs')
        .select(['id', LATEST_RUN.as('latest'), LATEST_COMPLETED_RUN.as('completed')])
        .where('account_id', '=', accountId)
        .where('id', 'in', some)
        .execute();
      for (const { id, latest, completed } of rows) found.set(id, { latest, completed });
    }
    return found;
  }

  async listProjects(accountId: number, query: ProjectQuery): Promise<Page<CatalogProject>> {
    const matching = this.db
      .selectFrom('projects')
      .where(({ and, eb }) =>
        and([
          eb('account_id', '=', accountId),
          ...(query.ids === undefined ? [] : [inAny(eb('id', 'in', query.ids), query.ids)]),
          ...(query.idAbove === undefined ? [] : [eb('id', '>', query.idAbove)]),
          ...(query.name === undefined ? [] : [eb('name', '=', query.name)]),
          ...(query.nameContains === undefined ? [] : [isNameLike(query.nameContains)]),
        ]),
      );
    const direction = query.isDescending ? 'desc' : 'asc';
    const rows = await matching
      .selectAll()
      .orderBy(JOB_ORDER[query.orderBy], direction)
      .orderBy('id', direction)
      .limit(query.limit)
      .offset(query.offset)
      .execute();
    const { totalCount } = await matching
      .select(({ fn }) => fn.countAll<number>().as('totalCount'))
      .executeTakeFirstOrThrow();
    return { items: rows.map(toProject), totalCount: Number(totalCount) };
  }

  async listEnvironments(accountId: number, query: EnvironmentQuery): Promise<Page<CatalogEnvironment>> {
    const { ids, projectIds, engineVersions } = query;
    const matching = this.db
      .selectFrom('environments')
      .where(({ and, eb }) =>
        and([
          eb('account_id', '=', accountId),
          ...(ids === undefined ? [] : [inAny(eb('id', 'in', ids), ids)]),
          ...(query.idAbove === undefined ? [] : [eb('id', '>', query.idAbove)]),
          ...(query.name === undefined ? [] : [eb('name', '=', query.name)]),
          ...(query.nameContains === undefined ? [] : [isNameLike(query.nameContains)]),
          ...(projectIds === undefined ? [] : [inAny(eb('project_id', 'in', projectIds), projectIds)]),
          ...(engineVersions === undefined
            ? []
            : [inAny(eb(ENVIRONMENT_ENGINE_VERSION, 'in', engineVersions), engineVersions)]),
        ]),
      );
    const direction = query.isDescending ? 'desc' : 'asc';
    const rows = await matching
      .selectAll()
      .select(ENVIRONMENT_ENGINE_VERSION.as('engine_version'))
      .orderBy(JOB_ORDER[query.orderBy], direction)
      .orderBy('id', direction)
      .limit(query.limit)
      .offset(query.offset)
      .execute();
    const { totalCount } = await matching
      .select(({ fn }) => fn.countAll<number>().as('totalCount'))
      .executeTakeFirstOrThrow();
    const items = rows.map((row) => ({
      ...toProject(row),
      projectId: row.project_id,
      engineVersion: row.engine_version,
    }));
    return { items, totalCount: Number(totalCount) };
  }

  /** Runs with a command that has errored, whether or not its files can be read yet. */
  async errorsOf(runIds: readonly number[]): Promise<ReadonlyMap<number, RunError>> {
    if (runIds.length === 0) return new Map();
    const rows = await this.db
      .selectFrom('execution_steps as step')
      .leftJoin('invocations as command', (join) =>
        join.onRef('command.step_id', '=', 'step.step_id').on('command.verdict', 'in', ['error', 'lost']),
      )
      .select(['step.execution_id', 'step.status_message', 'step.ended_unix_ms'])
      .select(['command.status_message as command_message', 'command.ended_unix_ms as command_ended_unix_ms'])
      .where('step.execution_id', 'in', runIds)
      .where(sql<boolean>`(step.status = ${RUN_STATUS.error} or command.verdict = 'error')`)
      .orderBy('step.step_index', 'desc')
      .orderBy('command.ended_unix_ms', 'desc')
      .execute();
    return new Map(
      rows.map((row) => [
        row.execution_id,
        {
          message: row.status_message ?? row.command_message,
          erroredUnixMs: row.command_ended_unix_ms ?? row.ended_unix_ms,
        },
      ]),
    );
  }

  /** Whether a registered command is running, to which telemetry without a step id may turn out to belong. */
  async isStepRunning(): Promise<boolean> {
    const step = await this.db
      .selectFrom('execution_steps as step')
      .select('step.id')
      // Spelt as the partial index spells it.
      .where(sql<boolean>`step.ending is null`)
      .where('step.reporter', '<>', 'nobody')
      .limit(1)
      .executeTakeFirst();
    return step !== undefined;
  }

  /** The job's last runs that began before that one, in its project and environment, and ended well or in error; the last to begin first. */
  async runsBefore(
    run: CatalogRun,
    limit: number,
  ): Promise<readonly { readonly id: number; readonly status: RunStatus }[]> {
    return await this.db
      .selectFrom('executions')
      .select(['id', 'status'])
      .where('account_id', '=', run.accountId)
      .where('job_id', '=', run.job.id)
      .where('project_id', '=', run.project.id)
      .where('environment_id', '=', run.environment.id)
      .where('status', 'in', [RUN_STATUS.success, RUN_STATUS.error])
      .where('created_unix_ms', '<=', run.createdUnixMs)
      .where(({ eb, or }) => or([eb('created_unix_ms', '<', run.createdUnixMs), eb('id', '<', run.id)]))
      .orderBy('created_unix_ms', 'desc')
      .orderBy('id', 'desc')
      .limit(limit)
      .execute();
  }

  /**
   * When the first command of a run started; if none did, when the run was created. The run's telemetry may not contain it yet.
   */
  async firstStartOf(run: Pick<CatalogRun, 'id' | 'createdUnixMs'>): Promise<number> {
    const { first } = await this.db
      .selectFrom('execution_steps')
      .select(({ fn }) => fn.min('started_unix_ms').as('first'))
      .where('execution_id', '=', run.id)
      .executeTakeFirstOrThrow();
    return first === null ? run.createdUnixMs : Number(first);
  }

  /** Jobs of these names that never ran, with their environments and projects. @param jobIds only of these, if there are any */
  async listJobsWithoutRun(accountId: number, names: readonly string[], jobIds: readonly number[]) {
    return await this.db
      .selectFrom('jobs')
      .innerJoin('environments', 'environments.id', 'jobs.environment_id')
      .innerJoin('projects', 'projects.id', 'jobs.project_id')
      .select(['jobs.id', 'jobs.name', 'environment_id as environmentId', 'jobs.project_id as projectId'])
      .select(['environments.name as environment', 'projects.name as project'])
      .where('jobs.account_id', '=', accountId)
      .where('jobs.name', 'in', names)
      .$if(jobIds.length > 0, (query) => query.where('jobs.id', 'in', [...jobIds]))
      .where(({ not, exists, selectFrom }) =>
        not(exists(selectFrom('executions').select('executions.id').whereRef('executions.job_id', '=', 'jobs.id'))),
      )
      .execute();
  }

  /** Which jobs ran in which environments. @param jobIds only of these, if there are any */
  async listJobEnvironments(accountId: number, jobIds: readonly number[]) {
    return await this.db
      .selectFrom('executions')
      .select(['job_id as jobId', 'environment_id as environmentId'])
      .distinct()
      .where('account_id', '=', accountId)
      .$if(jobIds.length > 0, (query) => query.where('job_id', 'in', [...jobIds]))
      .execute();
  }

  /** What the last successful runs of a job in an environment and project took, in milliseconds. */
  async lengthsOf(
    {
      jobId,
      environmentId,
      projectId,
    }: { readonly jobId: number; readonly environmentId: number; readonly projectId: number },
    limit: number,
  ): Promise<readonly { readonly id: number; readonly lengthMs: number }[]> {
    const rows = await this.db
      .selectFrom('executions')
      .select(['id', 'started_unix_ms', 'ended_unix_ms'])
      .where('job_id', '=', jobId)
      .where('environment_id', '=', environmentId)
      .where('project_id', '=', projectId)
      .where('status', '=', RUN_STATUS.success)
      .where('ended_unix_ms', 'is not', null)
      .orderBy('created_unix_ms', 'desc')
      .limit(limit)
      .execute();
    return rows.map((row) => ({ id: row.id, lengthMs: Number(row.ended_unix_ms) - row.started_unix_ms }));
  }

  /** The last run of a job, however it was started. */
  async latestRunOf(
    accountId: number,
    job: string,
  ): Promise<{ readonly runId: number; readonly status: RunStatus } | undefined> {
    const row = await this.db
      .selectFrom('jobs')
      .innerJoin('executions as run', (join) =>
        join.onRef('run.account_id', '=', 'jobs.account_id').onRef('run.job_id', '=', 'jobs.id'),
      )
      .select(['run.id', 'run.status'])
      .where('jobs.account_id', '=', accountId)
      .where('jobs.name', '=', job)
      .orderBy('run.id', 'desc')
      .limit(1)
      .executeTakeFirst();
    return row && { runId: row.id, status: row.status };
  }

  private async withInvocations(rows: readonly StepColumns[]): Promise<CatalogStep[]> {
    if (rows.length === 0) return [];
    const invocations = await this.db
      .selectFrom('invocations')
      .selectAll()
      .where(
        'step_id',
        'in',
        rows.map(({ step_id }) => step_id),
      )
      .orderBy('started_unix_ms')
      .orderBy('trace_id')
      .orderBy('invocation_index')
      .execute();
    return rows.map((row) =>
      toStep(
        row,
        invocations.filter(({ step_id }) => step_id === row.step_id).flatMap((one) => toInvocation(one) ?? []),
      ),
    );
  }
}

const ORDER = { id: 'run.id', created: 'run.created_unix_ms', finished: 'run.finished_unix_ms' } as const;
const JOB_ORDER = { id: 'id', name: 'name', created: 'created_unix_ms', updated: 'updated_unix_ms' } as const;

function matches(
  where: ExpressionBuilder<StateTables & { run: StateTables['executions'] }, 'run'>,
  accountId: number,
  query: RunQuery,
) {
  const { and, eb } = where;
  const { textContains } = query;
  const { ids, statuses, jobId, environmentId, projectIds, idAbove, createdRange, finishedRange, engineVersions } =
    query;
  return and([
    eb('run.account_id', '=', accountId),
    ...(ids === undefined ? [] : [inAny(eb('run.id', 'in', ids), ids)]),
    ...(engineVersions === undefined ? [] : [inAny(eb('run.engine_version', 'in', engineVersions), engineVersions)]),
    ...(statuses === undefined ? [] : [inAny(eb(sql<number>`run.status`, 'in', statuses), statuses)]),
    ...(jobId === undefined ? [] : [eb('run.job_id', '=', jobId)]),
    ...(environmentId === undefined ? [] : [eb('run.environment_id', '=', environmentId)]),
    ...(projectIds === undefined ? [] : [inAny(eb('run.project_id', 'in', projectIds), projectIds)]),
    ...NAMED.flatMap(([key, table, column]) => {
      const name = query[key];
      const having = (it: string) =>
        where.selectFrom(table).select('id').where('account_id', '=', accountId).where('name', '=', it);
      return name === undefined ? [] : [eb(column, 'in', having(name))];
    }),
    ...(idAbove === undefined ? [] : [eb('run.id', '>', idAbove)]),
    ...(createdRange === undefined ? [] : [eb.between('run.created_unix_ms', createdRange[0], createdRange[1])]),
    ...(finishedRange === undefined
      ? []
      : [eb.between('run.finished_unix_ms', finishedRange[0], Math.min(finishedRange[1], NOT_FINISHED - 1))]),
    ...(textContains === undefined ? [] : [hasText(where, accountId, textContains, query.errorTexts ?? 'none')]),
  ]);
}

const NAMED = [
  ['jobName', 'jobs', 'run.job_id'],
  ['environmentName', 'environments', 'run.environment_id'],
  ['projectName', 'projects', 'run.project_id'],
] as const;

/** By an index that has the runs of each job: those that are under way are passed over. */
const JOB_ENGINE_VERSION = sql<string | null>`(
  select run.engine_version from executions as run
  where run.account_id = jobs.account_id and run.job_id = jobs.id and run.status >= 10
  order by run.id desc limit 1)`;

/** The last that is known of an environment's last 1,000 that ended: runs that were imported as JSONL do not say it. */
const ENVIRONMENT_ENGINE_VERSION = sql<string | null>`(
  select engine_version from (
    select run.id, run.engine_version from executions as run
    where run.account_id = environments.account_id and run.environment_id = environments.id and run.status >= 10
    order by run.id desc limit 1000) as ended
  where engine_version is not null order by id desc limit 1)`;

const LATEST_RUN = sql<number | null>`(
  select run.id from executions as run
  where run.account_id = jobs.account_id and run.job_id = jobs.id order by run.id desc limit 1)`;
const LATEST_COMPLETED_RUN = sql<number | null>`(
  select run.id from executions as run
  where run.account_id = jobs.account_id and run.job_id = jobs.id and run.status >= 10 order by run.id desc limit 1)`;

/** Names and errors are looked for in the tables that have few rows, so that runs are found by their numbers. */
function hasText(
  { eb, or, selectFrom }: ExpressionBuilder<StateTables & { run: StateTables['executions'] }, 'run'>,
  accountId: number,
  text: string,
  errorTexts: ErrorTexts,
) {
  const isLike = (column: RawBuilder<string | null>) =>
    sql<boolean>`lower(${column}) like ${likePattern(text)} escape '!'`;
  const named = (table: 'jobs' | 'environments' | 'projects') =>
    selectFrom(table)
      .select(`${table}.id`)
      .where(`${table}.account_id`, '=', accountId)
      .where(isLike(sql<string>`${sql.ref(`${table}.name`)}`));
  const failed = (column: RawBuilder<string>) =>
    selectFrom('command_errors as wrong')
      .innerJoin('invocations as command', (join) =>
        join
          .onRef('command.trace_id', '=', 'wrong.trace_id')
          .onRef('command.invocation_index', '=', 'wrong.command_index'),
      )
      .innerJoin('execution_steps as step', 'step.step_id', 'command.step_id')
      .select('step.execution_id')
      .where(isLike(column));
  const runId = parseRunNumber(text);
  return or([
    eb('run.job_id', 'in', named('jobs')),
    eb('run.environment_id', 'in', named('environments')),
    eb('run.project_id', 'in', named('projects')),
    isLike(sql<string | null>`run.run_key`),
    isLike(sql<string | null>`run.git_branch`),
    ...(errorTexts === 'none' ? [] : [eb('run.id', 'in', failed(ERROR_COLUMN[errorTexts]))]),
    ...(runId === undefined ? [] : [eb('run.id', '=', runId)]),
  ]);
}

const ERROR_COLUMN = { whole: sql<string>`wrong.error_text`, redacted: sql<string>`wrong.redacted_text` } as const;

/** An empty list matches nothing, and is not valid SQL. */
function inAny<Expression>(expression: Expression, list: readonly unknown[]) {
  return list.length === 0 ? sql<boolean>`1 = 0` : expression;
}

/** Whether the column `name` contains a text, ignoring case. */
function isNameLike(text: string) {
  return sql<boolean>`lower(name) like ${likePattern(text)} escape '!'`;
}

function likePattern(text: string): string {
  return `%${text.toLowerCase().replaceAll(/[!%_]/g, (character) => `!${character}`)}%`;
}

const MISSING_ARTIFACT_COUNT = sql<number | string | null>`(
  select sum(artifacts.missing_count) from execution_steps as step
  inner join step_artifacts as artifacts on artifacts.step_id = step.step_id
  where step.execution_id = run.id)`.as('missing_artifact_count');

function runs(db: StateDb) {
  return db
    .selectFrom('executions as run')
    .innerJoin('projects', 'projects.id', 'run.project_id')
    .innerJoin('environments', 'environments.id', 'run.environment_id')
    .innerJoin('jobs', 'jobs.id', 'run.job_id')
    .leftJoin('job_runs as asked', 'asked.run_id', 'run.id')
    .selectAll('run')
    .select(['asked.run_id as asked_run_id', 'asked.retried_run_id', 'asked.steps_override'])
    .select(['projects.name as project_name', 'environments.name as environment_name', 'jobs.name as job_name'])
    .select(MISSING_ARTIFACT_COUNT);
}

type RunColumns = Selectable<StateTables['executions']> & {
  readonly project_name: string;
  readonly environment_name: string;
  readonly job_name: string;
  readonly asked_run_id: number | null;
  readonly retried_run_id: number | null;
  readonly steps_override: string | null;
  readonly missing_artifact_count: number | string | null;
};

function toRun(row: RunColumns): CatalogRun {
  return {
    id: row.id,
    accountId: row.account_id,
    project: { id: row.project_id, name: row.project_name },
    environment: { id: row.environment_id, name: row.environment_name },
    job: { id: row.job_id, name: row.job_name },
    runKey: row.run_key,
    reason: row.reason,
    isAskedFor: row.asked_run_id !== null,
    retriedRunId: row.retried_run_id,
    stepsOverride: parseLines(row.steps_override),
    status: row.status,
    statusMessage: row.status_message,
    createdUnixMs: row.created_unix_ms,
    updatedUnixMs: row.updated_unix_ms,
    dequeuedUnixMs: row.step_count === 0 ? null : row.started_unix_ms,
    startedUnixMs: row.seen_unix_ms,
    finishedUnixMs: row.finished_unix_ms === NOT_FINISHED ? null : row.finished_unix_ms,
    engineVersion: row.engine_version,
    gitBranch: row.git_branch,
    gitSha: row.git_sha,
    stepCount: row.step_count,
    missingArtifactCount: Number(row.missing_artifact_count ?? 0),
  };
}

/** Reads the column of a run's own steps. Only the stores write it, from a list of texts. */
export function parseLines(text: string | null): readonly string[] | null {
  return text === null ? null : (JSON.parse(text) as readonly string[]);
}

function steps(db: StateDb, accountId: number) {
  return (
    db
      .selectFrom('execution_steps as step')
      .innerJoin('executions as run', 'run.id', 'step.execution_id')
      .leftJoin('step_artifacts as artifacts', 'artifacts.step_id', 'step.step_id')
      .where('run.account_id', '=', accountId)
      .selectAll('step')
      .select(['run.account_id', 'artifacts.state as artifacts_state', 'artifacts.expected_count', 'artifacts.reason'])
      // While they are uploaded it is asked for each of them.
      .select(sql<string | null>`case when artifacts.state = 'missing' then artifacts.paths end`.as('missing_paths'))
  );
}

type StepColumns = Selectable<StateTables['execution_steps']> & {
  readonly account_id: number;
  readonly artifacts_state: 'expected' | 'missing' | null;
  readonly expected_count: number | null;
  readonly reason: string | null;
  readonly missing_paths: string | null;
};

function toStep(row: StepColumns, invocations: readonly CatalogInvocation[]): CatalogStep {
  return {
    id: row.id,
    stepId: row.step_id,
    runId: row.execution_id,
    accountId: row.account_id,
    index: row.step_index,
    status: row.status,
    statusMessage: row.status_message,
    // Only the stores write the column, from a list of texts.
    command: JSON.parse(row.command) as readonly string[],
    createdUnixMs: row.started_unix_ms,
    updatedUnixMs: row.updated_unix_ms,
    startedUnixMs: row.seen_unix_ms,
    finishedUnixMs: row.ended_unix_ms,
    artifacts: toArtifacts(row),
    invocations,
  };
}

function toArtifacts(row: StepColumns): CatalogArtifacts | null {
  if (row.artifacts_state === null) return null;
  return {
    state: row.artifacts_state === 'missing' ? 'incomplete' : 'uploading',
    expectedCount: row.expected_count ?? 0,
    // Only the stores write the column, from a list of texts.
    missing: JSON.parse(row.missing_paths ?? '[]') as readonly string[],
    reason: row.reason,
  };
}

function toInvocation(row: StateTables['invocations']): CatalogInvocation | undefined {
  const traceId = parseTraceId(row.trace_id);
  if (traceId === undefined) return undefined;
  return {
    traceId,
    index: row.invocation_index,
    command: row.command,
    verdict: row.verdict,
    parquetFile: row.parquet_file,
    isSaved: row.is_saved !== 0,
  };
}

function toProject(row: StateTables['projects']): CatalogProject {
  return {
    id: row.id,
    name: row.name,
    accountId: row.account_id,
    createdUnixMs: row.created_unix_ms,
    updatedUnixMs: row.updated_unix_ms,
  };
}

function toJob(row: StateTables['jobs'] & { readonly engine_version: string | null }): CatalogJob {
  return {
    id: row.id,
    name: row.name,
    accountId: row.account_id,
    projectId: row.project_id,
    environmentId: row.environment_id,
    engineVersion: row.engine_version,
    createdUnixMs: row.created_unix_ms,
    updatedUnixMs: row.updated_unix_ms,
  };
}

/** A run of one engine command without a registered step, and its place. */
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
export interface RunOrigin {
  readonly stepId: string;
  readonly runId: number;
  readonly job: string;
  readonly environment: string | null;
}

/** Traces as accounts see them, from an SQL database. */
export class TraceCatalog {
  constructor(private readonly db: StateDb) {}

  /** Runs that the trace holds commands of, the earliest first. */
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

  /** The traces that hold commands of a run. */
  async tracesOf(runId: number): Promise<readonly TraceId[]> {
    const rows = await this.stepTraces().where('run.id', '=', runId).select('invocation.trace_id').distinct().execute();
    return rows.flatMap(({ trace_id }) => parseTraceId(trace_id) ?? []);
  }

  /** The runs whose commands the trace holds, of any account. */
  async originsOf(traceId: TraceId): Promise<readonly RunOrigin[]> {
    return await this.stepTraces()
      .where('invocation.trace_id', '=', traceId)
      .select(['step.step_id as stepId', 'run.id as runId', 'run.job', 'run.environment'])
      .distinct()
      .execute();
  }

  /** All traces of the account's runs, but none that holds a command of another account's run as well. */
  async listTraces(accountId: number): Promise<readonly TraceId[]> {
    const rows = await this.stepTraces()
      .select('invocation.trace_id')
      .groupBy('invocation.trace_id')
      .having(({ fn }) => fn.min('run.account_id'), '=', accountId)
      .having(({ fn }) => fn.max('run.account_id'), '=', accountId)
      .execute();
    return rows.flatMap(({ trace_id }) => parseTraceId(trace_id) ?? []);
  }

  /** Runs without a registered step whose id is in no file. @param accountId if left out: of all accounts */
  async listUnnamed(accountId?: number): Promise<readonly UnnamedRun[]> {
    const unnamed = this.stepTraces().where('step.reporter', '=', 'nobody');
    const own = accountId === undefined ? unnamed : unnamed.where('run.account_id', '=', accountId);
    const rows = await own
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
