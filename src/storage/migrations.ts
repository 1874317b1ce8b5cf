import { type Kysely, Migrator, sql } from 'kysely';
import { SCHEMA_STEPS, type SchemaSteps } from './schema.js';
import { StoreError } from './store-error.js';

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
