import { type Kysely, sql } from 'kysely';

/** Runs as executions of a job, their steps, and the traces of the steps. */
export async function createExecutions(db: Kysely<unknown>): Promise<void> {
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
