import type { Transaction } from 'kysely';
import { nextIds } from './change-state.js';
import type { RunScope } from './invocation-store.js';
import type { StateTables } from './state-tables.js';

/** The numbers of a run's job, environment and project. */
export interface ScopeIds {
  readonly jobId: number;
  readonly environmentId: number;
  readonly projectId: number;
}

/** The project and the environment of runs without names. */
export const DEFAULT_NAME = 'default';

/**
 * Finds the numbers of what a run belongs to; what is named for the first time comes into being. A run that names no
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
