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
import { addResentWebhooks } from './migration/0018-resent-webhooks.js';
import { addWebhookUrls } from './migration/0019-webhook-urls.js';
import { createStepArtifacts } from './migration/0021-step-artifacts.js';
import { sealWebhookUrls } from './migration/0022-sealed-webhook-urls.js';
import { StoreError } from './store-error.js';

/** Steps of a schema by their names, whose alphabetical order is that of the steps. */
export type SchemaSteps = Readonly<Record<string, Migration>>;

/**
 * Every step of the state's schema, oldest first. A step that was released is never changed; a new one is added after it.
 * They are written for SQLite and PostgreSQL alike.
 */
const SCHEMA_STEPS: SchemaSteps = {
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
  '0018-resent-webhooks': { up: addResentWebhooks },
  '0019-webhook-urls': { up: addWebhookUrls },
  '0021-step-artifacts': { up: createStepArtifacts },
  '0022-sealed-webhook-urls': { up: sealWebhookUrls },
};

/** Which database's schema is brought forward, and to what. */
export interface SchemaChange {
  /** The database, for messages. */
  readonly where: string;
  /** Which of its namespaces the tables are in, where it has several. */
  readonly schema?: string | undefined;
  /** Default: all that this program knows. */
  readonly steps?: SchemaSteps | undefined;
}

/**
 * Brings the state's schema forward to what this program knows, under a lock: others that do so at the same time wait.
 * All steps that are missing are one transaction: whenever the process is killed, the next start finds the schema of before.
 * @param db whose dialect has schemas change in transactions
 * @throws StoreError `newer` when a later version of the program has been here, `unavailable` when a step fails.
 */
export async function migrateToLatest<Tables>(db: Kysely<Tables>, change: SchemaChange): Promise<void> {
  const { where, schema, steps = SCHEMA_STEPS } = change;
  await refuseNewer(db, change);
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => ({ ...steps }) },
    // Steps are told by their names. By the times at which they were taken, a clock that was set back would stop every start.
    allowUnorderedMigrations: true,
    ...(schema === undefined ? {} : { migrationTableSchema: schema }),
  });
  const { error, results } = await migrator.migrateToLatest();
  if (error === undefined) return;
  // A newer program may have come first while this one waited for its turn.
  await refuseNewer(db, change);
  if (error instanceof StoreError) throw error;
  const failed = results?.find((result) => result.status === 'Error')?.migrationName ?? 'unknown';
  throw new StoreError('unavailable', `${where}: the schema step ${failed} failed; nothing was changed`, {
    cause: error,
  });
}

async function refuseNewer<Tables>(
  db: Kysely<Tables>,
  { where, schema, steps = SCHEMA_STEPS }: SchemaChange,
): Promise<void> {
  const tables = (await db.introspection.getTables({ withInternalKyselyTables: true })).filter(
    (table) => schema === undefined || table.schema === schema,
  );
  if (!tables.some((table) => table.name === 'kysely_migration')) return;
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db);
  const unknown = rows.filter((row) => !Object.hasOwn(steps, row.name)).map((row) => row.name);
  if (unknown.length === 0) return;
  throw new StoreError(
    'newer',
    `${where}: written by a newer version of run-bridge (schema step ${unknown.join(', ')}); install that version or pass another --data-dir`,
  );
}
