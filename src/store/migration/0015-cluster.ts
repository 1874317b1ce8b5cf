import { type Kysely, sql } from 'kysely';

/** What several processes on one database share: who is there, which process has which trace, and the journal of what was accepted. */
export async function createCluster(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('cluster_processes')
    .addColumn('process_id', 'text', (column) => column.primaryKey())
    .addColumn('expires_unix_ms', 'bigint', (column) => column.notNull())
    .addColumn('is_dead', 'integer', (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('cluster_traces')
    .addColumn('trace_id', 'text', (column) => column.primaryKey())
    .addColumn('owner', 'text')
    .addColumn('generation', 'bigint', (column) => column.notNull())
    .addColumn('last_part', 'bigint', (column) => column.notNull())
    .addColumn('stored_part', 'bigint', (column) => column.notNull())
    .addColumn('step_version', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema
    .createIndex('cluster_traces_held')
    .on('cluster_traces')
    .columns(['owner', 'trace_id'])
    .where(sql<boolean>`owner is not null`)
    .execute();
  await db.schema
    .createTable('cluster_parts')
    .addColumn('trace_id', 'text', (column) => column.notNull())
    .addColumn('part', 'bigint', (column) => column.notNull())
    .addColumn('object_key', 'text')
    .addColumn('from_byte', 'bigint', (column) => column.notNull())
    .addColumn('to_byte', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('cluster_parts_key', ['trace_id', 'part'])
    .execute();
  await db.schema.createIndex('cluster_parts_by_object').on('cluster_parts').column('object_key').execute();
  await db.schema
    .createTable('cluster_objects')
    .addColumn('object_key', 'text', (column) => column.primaryKey())
    .execute();
  await db.schema
    .createTable('cluster_files')
    .addColumn('trace_id', 'text', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('object_key', 'text', (column) => column.notNull())
    .addColumn('size_bytes', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('cluster_files_key', ['trace_id', 'name'])
    .execute();
  await db.schema.alterTable('job_runs').addColumn('process_id', 'text').execute();
  await db.schema.alterTable('execution_steps').addColumn('heard_unix_ms', 'bigint').execute();
}
