import { type Kysely, type Migration, Migrator, sql } from 'kysely';
import { StoreError } from './store-error.js';

/**
 * Every step of the state's schema, oldest first. A step that was released is never changed; a new one is added after it.
 * They are written for SQLite and PostgreSQL alike.
 */
const MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001-runs-and-cursors': { up: createRunsAndCursors },
};

/**
 * Brings the state's schema forward to what this program knows.
 * @throws StoreError `newer` when a later version of the program has been here, `unavailable` when a step fails.
 */
export async function migrateToLatest<Tables>(db: Kysely<Tables>, where: string): Promise<void> {
  await refuseNewer(db, where);
  const migrator = new Migrator({ db, provider: { getMigrations: async () => ({ ...MIGRATIONS }) } });
  const { error, results } = await migrator.migrateToLatest();
  if (error === undefined) return;
  if (error instanceof StoreError) throw error;
  const failed = results?.find((result) => result.status === 'Error')?.migrationName ?? 'unknown';
  throw new StoreError('unavailable', `${where}: the schema step ${failed} failed; nothing was changed`, {
    cause: error,
  });
}

async function refuseNewer<Tables>(db: Kysely<Tables>, where: string): Promise<void> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some((table) => table.name === 'kysely_migration')) return;
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db);
  const unknown = rows.filter((row) => !Object.hasOwn(MIGRATIONS, row.name)).map((row) => row.name);
  if (unknown.length === 0) return;
  throw new StoreError(
    'newer',
    `${where}: written by a newer version of run-bridge (schema step ${unknown.join(', ')}); install that version or pass another --data-dir`,
  );
}

async function createRunsAndCursors(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('runs')
    .addColumn('trace_id', 'text', (column) => column.primaryKey())
    .addColumn('first_seen_unix_ms', 'bigint', (column) => column.notNull())
    .addColumn('last_seen_unix_ms', 'bigint', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('log_bytes', 'bigint', (column) => column.notNull())
    .addColumn('summary', 'text', (column) => column.notNull())
    .addColumn('parquet_bytes', 'bigint')
    .execute();
  // Covers what `listPending` reads of a run, so that it never touches the summaries.
  await db.schema
    .createIndex('runs_by_first_seen')
    .on('runs')
    .columns(['first_seen_unix_ms', 'trace_id', 'log_bytes'])
    .execute();
  await db.schema
    .createIndex('runs_unfinished')
    .on('runs')
    .columns(['first_seen_unix_ms'])
    .where(sql<boolean>`state = 'open' or parquet_bytes is null or parquet_bytes <> log_bytes`)
    .execute();
  await db.schema
    .createTable('destinations')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('since_unix_ms', 'bigint', (column) => column.notNull())
    .addColumn('foreign_segment', 'text')
    .addColumn('foreign_offset', 'bigint')
    .execute();
  await db.schema
    .createTable('export_cursors')
    .addColumn('destination', 'text', (column) => column.notNull())
    .addColumn('trace_id', 'text', (column) => column.notNull())
    .addColumn('traces_offset', 'bigint', (column) => column.notNull())
    .addColumn('logs_offset', 'bigint', (column) => column.notNull())
    .addColumn('finished_at_bytes', 'bigint')
    .addPrimaryKeyConstraint('export_cursors_key', ['destination', 'trace_id'])
    .execute();
}
