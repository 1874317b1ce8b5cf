import { type Kysely, sql } from 'kysely';

/** Traces, destinations, and how far each destination got with each trace. */
export async function createRunsAndCursors(db: Kysely<unknown>): Promise<void> {
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
