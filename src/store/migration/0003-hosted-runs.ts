import { type Kysely, sql } from 'kysely';

/** Runs of a hosted platform that are to be brought in, and how far it was looked through. */
export async function createHostedRuns(db: Kysely<unknown>): Promise<void> {
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
