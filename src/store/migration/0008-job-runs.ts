import { type Kysely, sql } from 'kysely';

/** Runs that were started over the API, and what the commands of runs wrote. */
export async function createJobRuns(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('job_runs')
    .addColumn('run_id', 'bigint', (column) => column.primaryKey())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('first_command', 'integer', (column) => column.notNull())
    .addColumn('commands_digest', 'text', (column) => column.notNull())
    .addColumn('stopped_at', 'integer')
    .addColumn('failure', 'text')
    .addColumn('pid', 'bigint')
    .execute();
  await db.schema
    .createIndex('job_runs_not_ended')
    .on('job_runs')
    .column('run_id')
    .where(sql<boolean>`state <> 'ended'`)
    .execute();
  await db.schema
    .createTable('step_outputs')
    .addColumn('step_id', 'text', (column) => column.primaryKey())
    .addColumn('output', 'text', (column) => column.notNull())
    .addColumn('dropped_bytes', 'bigint', (column) => column.notNull())
    .execute();
}
