import type { Kysely } from 'kysely';

/** URLs of webhooks are sealed, since they may hold credentials; what anybody may see of one stands beside it. */
export async function sealWebhookUrls(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('webhook_subscriptions').renameColumn('client_url', 'sealed_url').execute();
  await db.schema
    .alterTable('webhook_subscriptions')
    .addColumn('shown_url', 'text', (column) => column.notNull().defaultTo(''))
    .execute();
}
