import { type ExpressionBuilder, type Selectable, sql } from 'kysely';
import { groupBy, slices } from '../core/lists.js';
import { parseTraceId, type TraceId } from '../record/telemetry-record.js';
import { among, containsText, given, IDS_PER_STATEMENT, type Page } from './database.js';
import {
  type CatalogEnvironment,
  type CatalogJob,
  type CatalogProject,
  ENVIRONMENTS,
  type EnvironmentQuery,
  findJobs,
  JOBS,
  type JobQuery,
  type LatestRuns,
  latestRunsOf,
  listScopes,
  type NamedThing,
  PROJECTS,
  type ScopeQuery,
} from './scope-catalog.js';
import {
  NOT_FINISHED,
  parseRunNumber,
  RUN_STATUS,
  type RunStatus,
  type StateDb,
  type StateTables,
} from './state-tables.js';

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

/** Returns the command lines of a run's steps: those of its engine commands, else of what was started. */
export function commandLinesOf(steps: readonly Pick<CatalogStep, 'command' | 'invocations'>[]): readonly string[] {
  return steps.flatMap(({ command, invocations }) =>
    invocations.length === 0 ? [command.join(' ')] : invocations.map((one) => one.command ?? command.join(' ')),
  );
}

/** Returns the command lines of runs of an account, by their ids; none of one that is not there. */
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

/** The first command of a run that errored. */
export interface RunError {
  /** The reason; `null` if unknown. */
  readonly message: string | null;
  /** When it ended; `null` if unknown. */
  readonly erroredUnixMs: number | null;
}

/** The runs of a job beside one of them, by their start. */
export interface RunNeighbours {
  readonly before: number | null;
  readonly after: number | null;
}

/** From and to, both included, in Unix milliseconds. */
export type TimeRange = readonly [fromUnixMs: number, toUnixMs: number];

/** Texts of errors: as they were sent, without literals, or none. */
export type ErrorTexts = 'whole' | 'redacted' | 'none';

/** Which runs, in which order. What is left out filters nothing. */
export interface RunQuery {
  readonly ids?: readonly number[] | undefined;
  readonly statuses?: readonly number[] | undefined;
  readonly jobId?: number | undefined;
  readonly environmentId?: number | undefined;
  readonly projectIds?: readonly number[] | undefined;
  /** Whole names; of several things of one name, the runs of all. */
  readonly jobName?: string | undefined;
  readonly environmentName?: string | undefined;
  readonly projectName?: string | undefined;
  readonly idAbove?: number | undefined;
  readonly createdRange?: TimeRange | undefined;
  readonly finishedRange?: TimeRange | undefined;
  readonly engineVersions?: readonly string[] | undefined;
  /** Bits of `executions.notified` of which none is set. */
  readonly withoutNotified?: number | undefined;
  /**
   * Part of the name of its job, environment or project, of the user's name for it, of its git branch, or of its errors as far as
   * `errorTexts` says, ignoring case; or its id.
   */
  readonly textContains?: string | undefined;
  /** Which texts of errors `textContains` is looked for in; default: none. Only runs that were measured have any. */
  readonly errorTexts?: ErrorTexts | undefined;
  /** Runs that are not over stand after all others by `finished`. */
  readonly orderBy: 'id' | 'created' | 'finished';
  readonly isDescending: boolean;
  readonly limit: number;
  readonly offset: number;
}

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
    const { count: counted } = await matching
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    const totalCount = Number(counted);
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
    const runIds = (isFromEnd ? ids.reverse() : ids).map(({ id }) => id);
    const found = await runs(this.db).where('run.id', 'in', runIds).execute();
    const byId = new Map(found.map((row) => [row.id, toRun(row)]));
    return { items: runIds.flatMap((id) => byId.get(id) ?? []), totalCount };
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

  /** Finds those of the jobs that there are. */
  findJobs(accountId: number, ids: readonly number[]): Promise<readonly CatalogJob[]> {
    return findJobs(this.db, accountId, ids);
  }

  listJobs(accountId: number, query: JobQuery): Promise<Page<CatalogJob>> {
    return listScopes(this.db, JOBS, accountId, query);
  }

  listEnvironments(accountId: number, query: EnvironmentQuery): Promise<Page<CatalogEnvironment>> {
    return listScopes(this.db, ENVIRONMENTS, accountId, query);
  }

  listProjects(accountId: number, query: ScopeQuery): Promise<Page<CatalogProject>> {
    return listScopes(this.db, PROJECTS, accountId, query);
  }

  /** Finds the latest runs of jobs, by the ids of the jobs. */
  latestRunsOf(accountId: number, jobIds: readonly number[]): Promise<ReadonlyMap<number, LatestRuns>> {
    return latestRunsOf(this.db, accountId, jobIds);
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

  /** Returns whether a registered command is running, to which telemetry without a step id may turn out to belong. */
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

  /** Returns the job's last runs that began before that one, in its project and environment, and ended well or in error; the last to begin first. */
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

  /** Returns the ids of the job's runs that began next before and next after a run; `null` where there is none. */
  async neighboursOf(run: CatalogRun): Promise<RunNeighbours> {
    const next = (operator: '<' | '>', direction: 'asc' | 'desc') =>
      this.db
        .selectFrom('executions')
        .select('id')
        .where('account_id', '=', run.accountId)
        .where('job_id', '=', run.job.id)
        .where('created_unix_ms', operator === '<' ? '<=' : '>=', run.createdUnixMs)
        .where(({ eb, or }) => or([eb('created_unix_ms', operator, run.createdUnixMs), eb('id', operator, run.id)]))
        .orderBy('created_unix_ms', direction)
        .orderBy('id', direction)
        .limit(1)
        .executeTakeFirst();
    const [before, after] = [await next('<', 'desc'), await next('>', 'asc')];
    return { before: before?.id ?? null, after: after?.id ?? null };
  }

  /**
   * Returns when the first command of a run started; if none did, when the run was created. The run's telemetry may not contain it yet.
   */
  async firstStartOf(run: Pick<CatalogRun, 'id' | 'createdUnixMs'>): Promise<number> {
    const { first } = await this.db
      .selectFrom('execution_steps')
      .select(({ fn }) => fn.min('started_unix_ms').as('first'))
      .where('execution_id', '=', run.id)
      .executeTakeFirstOrThrow();
    return first === null ? run.createdUnixMs : Number(first);
  }

  /** Lists jobs of these names that never ran, with their environments and projects. @param jobIds only of these, if there are any */
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

  /** Lists which jobs ran in which environments. @param jobIds only of these, if there are any */
  async listJobEnvironments(accountId: number, jobIds: readonly number[]) {
    return await this.db
      .selectFrom('executions')
      .select(['job_id as jobId', 'environment_id as environmentId'])
      .distinct()
      .where('account_id', '=', accountId)
      .$if(jobIds.length > 0, (query) => query.where('job_id', 'in', [...jobIds]))
      .execute();
  }

  /** Returns what the last successful runs of a job in an environment and project took, in milliseconds. */
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

  /** Finds the last run of a job, however it was started. */
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

function matches(
  where: ExpressionBuilder<StateTables & { run: StateTables['executions'] }, 'run'>,
  accountId: number,
  query: RunQuery,
) {
  const { and, eb } = where;
  const { jobId, environmentId, idAbove, createdRange, finishedRange, textContains } = query;
  return and([
    eb('run.account_id', '=', accountId),
    ...among('run.id', query.ids),
    ...among('run.engine_version', query.engineVersions),
    ...among('run.status', query.statuses),
    ...given(jobId, (id) => eb('run.job_id', '=', id)),
    ...given(environmentId, (id) => eb('run.environment_id', '=', id)),
    ...among('run.project_id', query.projectIds),
    ...NAMED.flatMap(([key, table, column]) =>
      given(query[key], (name) =>
        eb(column, 'in', ({ selectFrom }) =>
          selectFrom(table).select('id').where('account_id', '=', accountId).where('name', '=', name),
        ),
      ),
    ),
    ...given(idAbove, (id) => eb('run.id', '>', id)),
    ...given(createdRange, ([from, to]) => eb.between('run.created_unix_ms', from, to)),
    ...given(finishedRange, ([from, to]) => eb.between('run.finished_unix_ms', from, Math.min(to, NOT_FINISHED - 1))),
    ...given(query.withoutNotified, (bits) => eb(sql<number>`run.notified & ${bits}`, '=', 0)),
    ...given(textContains, (text) => hasText(where, accountId, text, query.errorTexts ?? 'none')),
  ]);
}

const NAMED = [
  ['jobName', 'jobs', 'run.job_id'],
  ['environmentName', 'environments', 'run.environment_id'],
  ['projectName', 'projects', 'run.project_id'],
] as const;

/** Names and errors are looked for in the tables that have few rows, so that runs are found by their numbers. */
function hasText(
  { eb, or, selectFrom }: ExpressionBuilder<StateTables & { run: StateTables['executions'] }, 'run'>,
  accountId: number,
  text: string,
  errorTexts: ErrorTexts,
) {
  const named = (table: 'jobs' | 'environments' | 'projects') =>
    selectFrom(table)
      .select(`${table}.id`)
      .where(`${table}.account_id`, '=', accountId)
      .where(containsText(`${table}.name`, text));
  const failed = (column: string) =>
    selectFrom('command_errors as wrong')
      .innerJoin('invocations as command', (join) =>
        join
          .onRef('command.trace_id', '=', 'wrong.trace_id')
          .onRef('command.invocation_index', '=', 'wrong.command_index'),
      )
      .innerJoin('execution_steps as step', 'step.step_id', 'command.step_id')
      .select('step.execution_id')
      .where(containsText(column, text));
  const runId = parseRunNumber(text);
  return or([
    eb('run.job_id', 'in', named('jobs')),
    eb('run.environment_id', 'in', named('environments')),
    eb('run.project_id', 'in', named('projects')),
    containsText('run.run_key', text),
    containsText('run.git_branch', text),
    ...(errorTexts === 'none' ? [] : [eb('run.id', 'in', failed(ERROR_COLUMN[errorTexts]))]),
    ...(runId === undefined ? [] : [eb('run.id', '=', runId)]),
  ]);
}

const ERROR_COLUMN = { whole: 'wrong.error_text', redacted: 'wrong.redacted_text' } as const;

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

/** Reads the column of steps that replace a job's. Only the stores write it, from a list of texts. */
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
