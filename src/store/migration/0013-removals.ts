import { type Kysely, sql } from 'kysely';

/** What is being removed, so that a start ends what a crash left half; and which runs have had their artifacts removed. */
export async function createRemovals(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('removals')
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('noted_unix_ms', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('removals_key', ['kind', 'id'])
    .execute();
  await db.schema.alterTable('executions').addColumn('artifacts_removed_unix_ms', 'bigint').execute();
  await db.schema
    .createIndex('executions_by_end')
    .on('executions')
    .columns(['finished_unix_ms', 'id'])
    .where(sql<boolean>`status >= 10`)
    .execute();
  await db.schema
    .createIndex('executions_with_artifacts')
    .on('executions')
    .columns(['finished_unix_ms', 'id'])
    .where(sql<boolean>`status >= 10 and artifacts_removed_unix_ms is null`)
    .execute();
}
