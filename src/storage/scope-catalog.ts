import { sql } from 'kysely';
import { slices } from '../core/lists.js';
import { among, containsText, given, IDS_PER_STATEMENT, type Page } from './database.js';
import type { NamedColumns, StateDb } from './state-tables.js';

// Jobs, environments and projects as accounts see them.

/** Something with a number and a name that runs belong to. */
export interface NamedThing {
  readonly id: number;
  readonly name: string;
}

/** A project. Times are Unix milliseconds. */
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

/** A job; its project and environment are those of its first run, or the declared ones. */
export interface CatalogJob extends CatalogEnvironment {
  readonly environmentId: number;
}

/** Which jobs, environments or projects, in which order. What is left out filters nothing. */
export interface ScopeQuery {
  readonly ids?: readonly number[] | undefined;
  readonly idAbove?: number | undefined;
  readonly name?: string | undefined;
  /** Part of the name, ignoring case. */
  readonly nameContains?: string | undefined;
  readonly orderBy: keyof typeof ORDER;
  readonly isDescending: boolean;
  readonly limit: number;
  readonly offset: number;
}

/** The same of what belongs to a project. */
export interface EnvironmentQuery extends ScopeQuery {
  readonly projectIds?: readonly number[] | undefined;
  readonly engineVersions?: readonly string[] | undefined;
}

/** The same of what belongs to an environment, too. */
export interface JobQuery extends EnvironmentQuery {
  readonly environmentId?: number | undefined;
}

/** Ids of a job's latest run, and of the latest one that is over; `null` where there is none. */
export interface LatestRuns {
  readonly latest: number | null;
  readonly completed: number | null;
}

const ORDER = { id: 'id', name: 'name', created: 'created_unix_ms', updated: 'updated_unix_ms' } as const;

/** Found by an index that has the runs of each job: those that are under way are passed over. */
const JOB_ENGINE_VERSION = sql<string | null>`(
  select run.engine_version from executions as run
  where run.account_id = scope.account_id and run.job_id = scope.id and run.status >= 10
  order by run.id desc limit 1)`;

/** The last that is known of an environment's last 1,000 that ended: runs that were imported as JSONL do not say it. */
const ENVIRONMENT_ENGINE_VERSION = sql<string | null>`(
  select engine_version from (
    select run.id, run.engine_version from executions as run
    where run.account_id = scope.account_id and run.environment_id = scope.id and run.status >= 10
    order by run.id desc limit 1000) as ended
  where engine_version is not null order by id desc limit 1)`;

const LATEST_RUN = sql<number | null>`(
  select run.id from executions as run
  where run.account_id = scope.account_id and run.job_id = scope.id order by run.id desc limit 1)`;
const LATEST_COMPLETED_RUN = sql<number | null>`(
  select run.id from executions as run
  where run.account_id = scope.account_id and run.job_id = scope.id and run.status >= 10 order by run.id desc limit 1)`;

/** The columns of a job; environments and projects have those that their items have. */
interface ScopeColumns extends NamedColumns {
  readonly project_id: number;
  readonly environment_id: number;
}

type ScopeRow = ScopeColumns & { readonly engine_version: string | null };

/** What a table has of jobs, environments or projects, and how a row of it is shown. */
interface ScopeKind<Item> {
  readonly table: 'jobs' | 'environments' | 'projects';
  readonly engineVersion: typeof JOB_ENGINE_VERSION;
  readonly toItem: (row: ScopeRow) => Item;
}

/** Projects, for `listScopes`. */
export const PROJECTS: ScopeKind<CatalogProject> = {
  table: 'projects',
  engineVersion: sql<string | null>`null`,
  toItem: toProject,
};

/** Environments, for `listScopes`. */
export const ENVIRONMENTS: ScopeKind<CatalogEnvironment> = {
  table: 'environments',
  engineVersion: ENVIRONMENT_ENGINE_VERSION,
  toItem: toEnvironment,
};

/** Jobs, for `listScopes`. */
export const JOBS: ScopeKind<CatalogJob> = {
  table: 'jobs',
  engineVersion: JOB_ENGINE_VERSION,
  toItem: (row) => ({ ...toEnvironment(row), environmentId: row.environment_id }),
};

function toProject(row: ScopeRow): CatalogProject {
  const { id, name, account_id: accountId, created_unix_ms: createdUnixMs, updated_unix_ms: updatedUnixMs } = row;
  return { id, name, accountId, createdUnixMs, updatedUnixMs };
}

function toEnvironment(row: ScopeRow): CatalogEnvironment {
  return { ...toProject(row), projectId: row.project_id, engineVersion: row.engine_version };
}

function selectScopes(db: StateDb, { table }: Pick<ScopeKind<unknown>, 'table'>, accountId: number) {
  return db.selectFrom(sql<ScopeColumns>`${sql.table(table)}`.as('scope')).where('scope.account_id', '=', accountId);
}

/** Lists jobs, environments or projects of an account. */
export async function listScopes<Item>(
  db: StateDb,
  kind: ScopeKind<Item>,
  accountId: number,
  query: JobQuery,
): Promise<Page<Item>> {
  const { ids, idAbove, name, nameContains, projectIds, environmentId, engineVersions } = query;
  const matching = selectScopes(db, kind, accountId).where(({ and, eb }) =>
    and([
      ...among('scope.id', ids),
      ...given(idAbove, (id) => eb('scope.id', '>', id)),
      ...given(name, (text) => eb('scope.name', '=', text)),
      ...given(nameContains, (text) => containsText('scope.name', text)),
      ...among('scope.project_id', projectIds),
      ...given(environmentId, (id) => eb('scope.environment_id', '=', id)),
      ...among(kind.engineVersion, engineVersions),
    ]),
  );
  const direction = query.isDescending ? 'desc' : 'asc';
  const rows = await matching
    .selectAll()
    .select(kind.engineVersion.as('engine_version'))
    .orderBy(`scope.${ORDER[query.orderBy]}`, direction)
    .orderBy('scope.id', direction)
    .limit(query.limit)
    .offset(query.offset)
    .execute();
  const { count } = await matching.select(({ fn }) => fn.countAll<number>().as('count')).executeTakeFirstOrThrow();
  return { items: rows.map(kind.toItem), totalCount: Number(count) };
}

/** Finds those of the jobs of an account that there are. */
export async function findJobs(db: StateDb, accountId: number, ids: readonly number[]): Promise<readonly CatalogJob[]> {
  if (ids.length === 0) return [];
  const rows = await selectScopes(db, JOBS, accountId)
    .selectAll()
    .select(JOB_ENGINE_VERSION.as('engine_version'))
    .where('scope.id', 'in', ids)
    .execute();
  return rows.map(JOBS.toItem);
}

/** Finds the latest runs of jobs, by the ids of the jobs. */
export async function latestRunsOf(
  db: StateDb,
  accountId: number,
  jobIds: readonly number[],
): Promise<ReadonlyMap<number, LatestRuns>> {
  const found = new Map<number, LatestRuns>();
  for (const some of slices(jobIds, IDS_PER_STATEMENT)) {
    const rows = await selectScopes(db, JOBS, accountId)
      .select(['scope.id', LATEST_RUN.as('latest'), LATEST_COMPLETED_RUN.as('completed')])
      .where('scope.id', 'in', some)
      .execute();
    for (const { id, latest, completed } of rows) found.set(id, { latest, completed });
  }
  return found;
}
