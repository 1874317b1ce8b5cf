import { type Kysely, Migrator, sql } from 'kysely';
import { SCHEMA_STEPS, type SchemaSteps } from './schema.js';
import { StoreError } from './store-error.js';

/** The database to migrate, and the target. */
export interface SchemaChange {
  /** The database, for messages. */
  readonly where: string;
  /** Which of its namespaces the tables are in, where it has several. */
  readonly schema?: string | undefined;
  /** Default: all that this program knows. */
  readonly steps?: SchemaSteps | undefined;
}

/**
 * Migrates the state's schema to this version, under a lock: concurrent migrations wait.
 * All missing steps are one transaction: if the process is killed, the next start finds the previous schema.
 * @param db with a dialect of transactional schema changes
 * @throws StoreError `newer` if a later version was used, `unavailable` if a step fails.
 */
export async function migrateToLatest<Tables>(db: Kysely<Tables>, change: SchemaChange): Promise<void> {
  const { where, schema, steps = SCHEMA_STEPS } = change;
  await refuseNewer(db, change);
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => ({ ...steps }) },
    // Steps are identified by their names. By the time they were applied, a clock that was set back would stop every start.
    allowUnorderedMigrations: true,
    ...(schema === undefined ? {} : { migrationTableSchema: schema }),
  });
  const { error, results } = await migrator.migrateToLatest();
  if (error === undefined) return;
  // A newer program may have migrated while this one waited for the lock.
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
