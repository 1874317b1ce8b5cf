import { type Kysely, type Migration, Migrator, sql } from 'kysely';
import { createRunsAndCursors } from './migration/0001-runs-and-cursors.js';
import { createExecutions } from './migration/0002-executions.js';
import { createHostedRuns } from './migration/0003-hosted-runs.js';
import { createAccountsAndTokens } from './migration/0004-accounts-and-tokens.js';
import { createJobs } from './migration/0005-jobs.js';
import { createJobRuns } from './migration/0008-job-runs.js';
import { createLeases } from './migration/0009-leases.js';
import { createWebhooks } from './migration/0012-webhooks.js';
import { createRemovals } from './migration/0013-removals.js';
import { createKeptRows } from './migration/0014-kept-rows.js';
import { createCluster } from './migration/0015-cluster.js';
import { addLivesOfTraces } from './migration/0016-lives-of-traces.js';
import { indexPlaces } from './migration/0017-lists-by-place.js';
import { StoreError } from './store-error.js';

/**
 * Every step of the state's schema, oldest first. A step that was released is never changed; a new one is added after it.
 * They are written for SQLite and PostgreSQL alike.
 */
const MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001-runs-and-cursors': { up: createRunsAndCursors },
  '0002-executions': { up: createExecutions },
  '0003-hosted-runs': { up: createHostedRuns },
  '0004-accounts-and-tokens': { up: createAccountsAndTokens },
  '0005-jobs': { up: createJobs },
  '0008-job-runs': { up: createJobRuns },
  '0009-leases': { up: createLeases },
  '0012-webhooks': { up: createWebhooks },
  '0013-removals': { up: createRemovals },
  '0014-kept-rows': { up: createKeptRows },
  '0015-cluster': { up: createCluster },
  '0016-lives-of-traces': { up: addLivesOfTraces },
  '0017-lists-by-place': { up: indexPlaces },
};

/**
 * Brings the state's schema forward to what this program knows, under a lock: others that do so at the same time wait.
 * @param schema which of the database's namespaces the tables are in, where it has several.
 * @throws StoreError `newer` when a later version of the program has been here, `unavailable` when a step fails.
 */
export async function migrateToLatest<Tables>(db: Kysely<Tables>, where: string, schema?: string): Promise<void> {
  await refuseNewer(db, where, schema);
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => ({ ...MIGRATIONS }) },
    ...(schema === undefined ? {} : { migrationTableSchema: schema }),
  });
  const { error, results } = await migrator.migrateToLatest();
  if (error === undefined) return;
  // A newer program may have come first while this one waited for its turn.
  await refuseNewer(db, where, schema);
  if (error instanceof StoreError) throw error;
  const failed = results?.find((result) => result.status === 'Error')?.migrationName ?? 'unknown';
  throw new StoreError('unavailable', `${where}: the schema step ${failed} failed; nothing was changed`, {
    cause: error,
  });
}

async function refuseNewer<Tables>(db: Kysely<Tables>, where: string, schema?: string): Promise<void> {
  const tables = (await db.introspection.getTables({ withInternalKyselyTables: true })).filter(
    (table) => schema === undefined || table.schema === schema,
  );
  if (!tables.some((table) => table.name === 'kysely_migration')) return;
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db);
  const unknown = rows.filter((row) => !Object.hasOwn(MIGRATIONS, row.name)).map((row) => row.name);
  if (unknown.length === 0) return;
  throw new StoreError(
    'newer',
    `${where}: written by a newer version of run-bridge (schema step ${unknown.join(', ')}); install that version or pass another --data-dir`,
  );
}
