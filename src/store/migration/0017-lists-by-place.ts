import type { Kysely } from 'kysely';

/** Lists of the runs of an environment or a project: PostgreSQL reads the whole table for them where it has no index of its own. */
export async function indexPlaces(db: Kysely<unknown>): Promise<void> {
  for (const place of ['environment_id', 'project_id'] as const) {
    await db.schema
      .createIndex(`executions_by_${place}`)
      .on('executions')
      .columns(['account_id', place, 'id'])
      .execute();
  }
}
