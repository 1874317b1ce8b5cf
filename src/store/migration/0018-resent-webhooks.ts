import type { Kysely } from 'kysely';

/** Attempts that were sent once more on a new connection, because the kept one ended before an answer. */
export async function addResentWebhooks(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('webhook_attempts').addColumn('resent_after', 'text').execute();
}
