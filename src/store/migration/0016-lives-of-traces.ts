import type { Kysely } from 'kysely';

/** When a trace that processes share came to be: one that was removed and has come anew is told from what it was. */
export async function addLivesOfTraces(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('cluster_traces')
    .addColumn('born_unix_ms', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute();
}
