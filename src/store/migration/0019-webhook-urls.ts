import type { Kysely } from 'kysely';

/** Which of its URLs a subscription has: what came of an attempt says nothing of another one. */
export async function addWebhookUrls(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('webhook_subscriptions')
    .addColumn('url_version', 'integer', (column) => column.notNull().defaultTo(1))
    .execute();
}
