import { type Kysely, sql } from 'kysely';

/** Which state of a run's rows was written to a file of its own, from which they can be read back when the database is lost. */
export async function createKeptRows(db: Kysely<unknown>): Promise<void> {
  for (const [name, first] of [
    ['rows_revision', 1],
    ['kept_revision', 0],
  ] as const) {
    await db.schema
      .alterTable('executions')
      .addColumn(name, 'integer', (column) => column.notNull().defaultTo(first))
      .execute();
  }
  await db.schema
    .createIndex('executions_unkept')
    .on('executions')
    .column('id')
    .where(sql<boolean>`status >= 10 and rows_revision <> kept_revision`)
    .execute();
}
