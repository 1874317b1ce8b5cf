import type { SqlDatabase } from './sql-database.js';
import { StoreError } from './store-error.js';

/**
 * Every step of the state's schema, oldest first. A step that was released is never changed; a new one is added after it.
 * They are written for SQLite and PostgreSQL alike.
 */
const MIGRATIONS: Readonly<Record<string, readonly string[]>> = {
  '0001-runs-and-cursors': [
    `create table runs (
      trace_id text primary key,
      first_seen_unix_ms bigint not null,
      last_seen_unix_ms bigint not null,
      state text not null,
      log_bytes bigint not null,
      summary text not null,
      parquet_bytes bigint)`,
    // Covers what `listPending` reads of a run, so that it never touches the summaries.
    'create index runs_by_first_seen on runs (first_seen_unix_ms, trace_id, log_bytes)',
    `create index runs_unfinished on runs (first_seen_unix_ms)
      where state = 'open' or parquet_bytes is null or parquet_bytes <> log_bytes`,
    `create table destinations (
      name text primary key,
      since_unix_ms bigint not null,
      foreign_segment text,
      foreign_offset bigint)`,
    `create table export_cursors (
      destination text not null,
      trace_id text not null,
      traces_offset bigint not null,
      logs_offset bigint not null,
      finished_at_bytes bigint,
      constraint export_cursors_key primary key (destination, trace_id))`,
  ],
};

/** Which steps were taken. The first databases were made through Kysely, a query builder; its table is kept. */
const CREATE_STEPS = 'create table kysely_migration (name varchar(255) primary key, timestamp varchar(255) not null)';

/**
 * Brings the state's schema forward to what this program knows; writes nothing where it is there already.
 * @param where the database, for messages.
 * @throws StoreError `newer` when a later version of the program has been here, `unavailable` when a step fails.
 */
export function migrateToLatest(database: SqlDatabase, where: string): void {
  const hasSteps = database.all(`select name from sqlite_master where name = 'kysely_migration'`).length > 0;
  const taken = hasSteps ? database.all<{ name: string }>('select name from kysely_migration order by name') : [];
  refuseNewer(
    taken.map(({ name }) => name),
    where,
  );
  if (!hasSteps) database.run(CREATE_STEPS);
  const isTaken = new Set(taken.map(({ name }) => name));
  for (const [name, statements] of Object.entries(MIGRATIONS)) {
    if (!isTaken.has(name)) takeStep(database, where, name, statements);
  }
}

function refuseNewer(taken: readonly string[], where: string): void {
  const unknown = taken.filter((name) => !Object.hasOwn(MIGRATIONS, name));
  if (unknown.length === 0) return;
  throw new StoreError(
    'newer',
    `${where}: written by a newer version of run-bridge (schema step ${unknown.join(', ')}); install that version or pass another --data-dir`,
  );
}

function takeStep(database: SqlDatabase, where: string, name: string, statements: readonly string[]): void {
  try {
    database.transaction(() => {
      for (const statement of statements) database.run(statement);
      database.run('insert into kysely_migration values (?, current_timestamp)', [name]);
    });
  } catch (cause) {
    if (cause instanceof StoreError && cause.code !== 'unavailable') throw cause;
    throw new StoreError('unavailable', `${where}: the schema step ${name} failed; nothing was changed`, { cause });
  }
}
