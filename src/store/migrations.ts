import { type Kysely, type Migration, Migrator, sql } from 'kysely';
import { StoreError } from './store-error.js';

/**
 * Every step of the state's schema, oldest first. A step that was released is never changed; a new one is added after it.
 * They are written for SQLite and PostgreSQL alike.
 */
const MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001-runs-and-cursors': { up: createRunsAndCursors },
  '0002-executions': { up: createExecutions },
  '0003-hosted-runs': { up: createHostedRuns },
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

async function createExecutions(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('last_ids')
    .addColumn('kind', 'text', (column) => column.primaryKey())
    .addColumn('last_id', 'bigint', (column) => column.notNull())
    .execute();
  await sql`insert into last_ids (kind, last_id) values ('execution', 0)`.execute(db);
  await db.schema
    .createTable('executions')
    .addColumn('id', 'bigint', (column) => column.primaryKey())
    .addColumn('run_key', 'text')
    .addColumn('job', 'text', (column) => column.notNull())
    .addColumn('environment', 'text')
    .addColumn('project', 'text')
    .addColumn('reason', 'text')
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('started_unix_ms', 'bigint', (column) => column.notNull())
    .addColumn('ended_unix_ms', 'bigint')
    .addColumn('step_count', 'integer', (column) => column.notNull())
    .execute();
  // A run's name may be given again once the run takes no more steps.
  await db.schema
    .createIndex('executions_open_by_key')
    .on('executions')
    .column('run_key')
    .unique()
    .where(sql<boolean>`state = 'open' and run_key is not null`)
    .execute();
  await db.schema.createIndex('executions_by_key').on('executions').columns(['run_key', 'id']).execute();
  await db.schema
    .createTable('execution_steps')
    .addColumn('step_id', 'text', (column) => column.primaryKey())
    .addColumn('execution_id', 'bigint', (column) => column.notNull())
    .addColumn('step_index', 'integer', (column) => column.notNull())
    .addColumn('command', 'text', (column) => column.notNull())
    .addColumn('teller', 'text', (column) => column.notNull())
    .addColumn('is_last', 'integer', (column) => column.notNull())
    .addColumn('started_unix_ms', 'bigint', (column) => column.notNull())
    .addColumn('ended_unix_ms', 'bigint')
    .addColumn('ending', 'text')
    .addColumn('exit_code', 'integer')
    .addColumn('ending_detail', 'text')
    .addUniqueConstraint('execution_steps_place', ['execution_id', 'step_index'])
    .execute();
  await db.schema
    .createIndex('execution_steps_running')
    .on('execution_steps')
    .column('execution_id')
    .where(sql<boolean>`ending is null`)
    .execute();
  await db.schema
    .createTable('step_traces')
    .addColumn('trace_id', 'text', (column) => column.notNull())
    .addColumn('step_id', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('step_traces_key', ['trace_id', 'step_id'])
    .execute();
  await db.schema.createIndex('step_traces_by_step').on('step_traces').column('step_id').execute();
}

async function createHostedRuns(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('hosted_runs')
    .addColumn('platform', 'text', (column) => column.notNull())
    .addColumn('account_id', 'text', (column) => column.notNull())
    .addColumn('run_id', 'text', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('noted_unix_ms', 'bigint', (column) => column.notNull())
    .addColumn('due_unix_ms', 'bigint', (column) => column.notNull())
    .addColumn('attempt_count', 'integer', (column) => column.notNull())
    .addColumn('done_steps', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('hosted_runs_key', ['platform', 'account_id', 'run_id'])
    .execute();
  await db.schema
    .createIndex('hosted_runs_waiting')
    .on('hosted_runs')
    .columns(['platform', 'due_unix_ms'])
    .where(sql<boolean>`state = 'waiting'`)
    .execute();
  await db.schema
    .createTable('watch_cursors')
    .addColumn('platform', 'text', (column) => column.notNull())
    .addColumn('account_id', 'text', (column) => column.notNull())
    .addColumn('job_id', 'text', (column) => column.notNull())
    .addColumn('created_unix_ms', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('watch_cursors_key', ['platform', 'account_id', 'job_id'])
    .execute();
}
