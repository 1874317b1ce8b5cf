import type { Transaction } from 'kysely';
import { FIRST_ACCOUNT_ID } from './account-store.js';
import { changeState, nextIds, raiseLastId } from './database.js';
import type { StateDb, StateTables } from './state-tables.js';

/** Something that the configuration declares by name, and perhaps by number. */
export interface DeclaredName {
  readonly name: string;
  readonly id: number | null;
}

/** The declarations of the configuration; names of projects and environments are `null` if missing. */
export interface DeclaredNames {
  readonly projects: readonly DeclaredName[];
  readonly environments: readonly (DeclaredName & { readonly project: string | null })[];
  readonly jobs: readonly (DeclaredName & { readonly project: string | null; readonly environment: string | null })[];
}

const KINDS = { projects: 'project', environments: 'environment', jobs: 'job' } as const;
type Table = keyof typeof KINDS;

/** The project or environment; `undefined` if not given. */
interface Owners {
  readonly project_id?: number | undefined;
  readonly environment_id?: number | undefined;
}

/** Ends a transaction whose changes are not wanted. */
class Refused extends Error {}

/** Rows of projects, environments and jobs that the configuration declares, in an SQL database. */
export class ScopeStore {
  constructor(private readonly db: StateDb) {}

  /**
   * Creates what is declared, in the first account. A configured id is permanent.
   * @returns problems with the ids, a sentence each; nothing was changed then
   */
  async declare(declared: DeclaredNames, nowUnixMs: number): Promise<readonly string[]> {
    const { projects, environments, jobs } = declared;
    if (projects.length + environments.length + jobs.length === 0) return [];
    const problems: string[] = [];
    try {
      await changeState(this.db, async (transaction) => {
        const declaring = new Declaring(transaction, nowUnixMs);
        for (const one of projects) await declaring.declare('projects', one, {});
        for (const one of environments) {
          await declaring.declare('environments', one, { project_id: await declaring.ensure('projects', one.project) });
        }
        for (const one of jobs) {
          const project_id = await declaring.ensure('projects', one.project);
          const environment_id = await declaring.ensure('environments', one.environment);
          await declaring.declare('jobs', one, { project_id, environment_id });
        }
        problems.push(...declaring.problems);
        if (problems.length > 0) throw new Refused();
      });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
    return problems;
  }
}

/** What is declared together, in its transaction. */
class Declaring {
  readonly problems: string[] = [];

  constructor(
    private readonly transaction: Transaction<StateTables>,
    private readonly nowUnixMs: number,
  ) {}

  async declare(table: Table, { name, id }: DeclaredName, owners: Owners): Promise<void> {
    const known = await this.find(table, name);
    if (known !== undefined && id !== null && id !== known) {
      const kept = `the ${KINDS[table]} has had the number ${known}, which is kept`;
      this.problems.push(`${table}.${name}.id: ${id}: ${kept}; write ${known}, or leave id out`);
    } else if (known !== undefined) {
      await this.move(table, known, owners);
    } else {
      await this.add(table, name, id, owners);
    }
  }

  /** Returns the number of a project or environment, which is added if it is unknown; `undefined` for no name. */
  async ensure(table: 'projects' | 'environments', name: string | null): Promise<number | undefined> {
    if (name === null) return undefined;
    return (await this.find(table, name)) ?? (await this.add(table, name, null, {}));
  }

  private async find(table: Table, name: string): Promise<number | undefined> {
    const row = await this.transaction
      .selectFrom(table)
      .select('id')
      .where('account_id', '=', FIRST_ACCOUNT_ID)
      .where('name', '=', name)
      .executeTakeFirst();
    return row?.id;
  }

  private async add(table: Table, name: string, wanted: number | null, owners: Owners): Promise<number> {
    if (wanted !== null) await this.reserve(table, name, wanted);
    const id = wanted ?? (await nextIds(this.transaction, KINDS[table], 1));
    const times = { created_unix_ms: this.nowUnixMs, updated_unix_ms: this.nowUnixMs };
    const row = { id, account_id: FIRST_ACCOUNT_ID, name, ...times };
    if (table === 'projects') {
      await this.insert(() => this.transaction.insertInto('projects').values(row).execute());
      return id;
    }
    const project_id = owners.project_id ?? (await this.ensure('projects', DEFAULT_NAME)) ?? 0;
    if (table === 'environments') {
      await this.insert(() =>
        this.transaction
          .insertInto('environments')
          .values({ ...row, project_id })
          .execute(),
      );
      return id;
    }
    const environment_id = owners.environment_id ?? (await this.ensure('environments', DEFAULT_NAME)) ?? 0;
    const job = { ...row, project_id, environment_id };
    await this.insert(() => this.transaction.insertInto('jobs').values(job).execute());
    return id;
  }

  /** Nothing is written once something is wrong: it would be taken back. */
  private async insert(write: () => Promise<unknown>): Promise<void> {
    if (this.problems.length === 0) await write();
  }

  private async reserve(table: Table, name: string, id: number): Promise<void> {
    const other = await this.transaction.selectFrom(table).select('name').where('id', '=', id).executeTakeFirst();
    if (other !== undefined) {
      this.problems.push(`${table}.${name}.id: ${id} is the number of ${other.name}; choose another, or leave id out`);
    }
    await raiseLastId(this.transaction, KINDS[table], id);
  }

  private async move(table: Table, id: number, { project_id, environment_id }: Owners): Promise<void> {
    if (table === 'environments' && project_id !== undefined) {
      await this.transaction.updateTable('environments').set({ project_id }).where('id', '=', id).execute();
    }
    if (table !== 'jobs' || (project_id === undefined && environment_id === undefined)) return;
    await this.transaction
      .updateTable('jobs')
      .set({ ...(project_id !== undefined && { project_id }), ...(environment_id !== undefined && { environment_id }) })
      .where('id', '=', id)
      .execute();
  }
}

/** The names for an invocation without a registered step; `null` for the default. */
export interface RunScope {
  readonly job: string;
  readonly environment: string | null;
  readonly project: string | null;
}

/** The numbers of a run's job, environment and project. */
export interface ScopeIds {
  readonly jobId: number;
  readonly environmentId: number;
  readonly projectId: number;
}

/** The project and the environment of runs without names. */
export const DEFAULT_NAME = 'default';

/**
 * Finds the numbers of what a run belongs to; what is named for the first time is added. A run that names no
 * project or environment has its job's.
 */
export async function namedIds(
  transaction: Transaction<StateTables>,
  accountId: number,
  { job, environment, project }: RunScope,
  nowUnixMs: number,
): Promise<ScopeIds> {
  const known = await transaction
    .selectFrom('jobs')
    .select(['id', 'project_id', 'environment_id'])
    .where('account_id', '=', accountId)
    .where('name', '=', job)
    .executeTakeFirst();
  const times = { created_unix_ms: nowUnixMs, updated_unix_ms: nowUnixMs };
  const projectId =
    project === null && known !== undefined
      ? known.project_id
      : ((await findId(transaction, 'projects', accountId, project ?? DEFAULT_NAME)) ??
        (await add('project', (id) =>
          transaction
            .insertInto('projects')
            .values({ id, account_id: accountId, name: project ?? DEFAULT_NAME, ...times })
            .execute(),
        )));
  const environmentId =
    environment === null && known !== undefined
      ? known.environment_id
      : ((await findId(transaction, 'environments', accountId, environment ?? DEFAULT_NAME)) ??
        (await add('environment', (id) =>
          transaction
            .insertInto('environments')
            .values({
              ...{ id, account_id: accountId, name: environment ?? DEFAULT_NAME, ...times },
              project_id: projectId,
            })
            .execute(),
        )));
  const jobId =
    known?.id ??
    (await add('job', (id) =>
      transaction
        .insertInto('jobs')
        .values({
          ...{ id, account_id: accountId, name: job, ...times },
          ...{ project_id: projectId, environment_id: environmentId },
        })
        .execute(),
    ));
  return { jobId, environmentId, projectId };

  async function add(kind: 'project' | 'environment' | 'job', insert: (id: number) => Promise<unknown>) {
    const id = await nextIds(transaction, kind, 1);
    await insert(id);
    return id;
  }
}

async function findId(
  transaction: Transaction<StateTables>,
  table: 'projects' | 'environments',
  accountId: number,
  name: string,
): Promise<number | undefined> {
  const row = await transaction
    .selectFrom(table)
    .select('id')
    .where('account_id', '=', accountId)
    .where('name', '=', name)
    .executeTakeFirst();
  return row?.id;
}
