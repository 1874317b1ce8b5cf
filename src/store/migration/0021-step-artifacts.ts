import type { Kysely } from 'kysely';

/** Artifacts that a step is to have: those that are being uploaded, and those that never came. */
export async function createStepArtifacts(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('step_artifacts')
    .addColumn('step_id', 'text', (column) => column.primaryKey())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('expected_count', 'integer', (column) => column.notNull())
    .addColumn('missing_count', 'integer', (column) => column.notNull())
    .addColumn('paths', 'text', (column) => column.notNull())
    .addColumn('reason', 'text')
    .execute();
}
