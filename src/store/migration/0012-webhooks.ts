import { type Kysely, sql } from 'kysely';

/** Webhook subscriptions, the outbox of what they are to be told, and what became of each attempt. */
export async function createWebhooks(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('webhook_subscriptions')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'bigint', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('description', 'text', (column) => column.notNull())
    .addColumn('client_url', 'text', (column) => column.notNull())
    .addColumn('event_types', 'text', (column) => column.notNull())
    .addColumn('job_ids', 'text', (column) => column.notNull())
    .addColumn('filter', 'text', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('archive_reason', 'text')
    .addColumn('has_authorization', 'integer', (column) => column.notNull())
    .addColumn('has_standard_headers', 'integer', (column) => column.notNull())
    .addColumn('max_per_minute', 'integer')
    .addColumn('sealed_secret', 'text', (column) => column.notNull())
    .addColumn('sealed_old_secret', 'text')
    .addColumn('old_secret_until_unix_ms', 'bigint')
    .addColumn('sealed_headers', 'text')
    .addColumn('created_unix_ms', 'bigint', (column) => column.notNull())
    .addColumn('updated_unix_ms', 'bigint', (column) => column.notNull())
    .addColumn('dispatched_unix_ms', 'bigint')
    .addColumn('http_status_code', 'integer', (column) => column.notNull())
    .addColumn('failed_count', 'integer', (column) => column.notNull())
    .addColumn('failing_since_unix_ms', 'bigint')
    .addColumn('paused_until_unix_ms', 'bigint', (column) => column.notNull())
    .addColumn('next_slot_unix_ms', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema
    .createIndex('webhook_subscriptions_by_account')
    .on('webhook_subscriptions')
    .columns(['account_id', 'created_unix_ms', 'id'])
    .execute();
  await sql`insert into last_ids (kind, last_id) values ('webhook', 0)`.execute(db);
  await db.schema
    .createTable('webhook_events')
    .addColumn('seq', 'bigint', (column) => column.primaryKey())
    .addColumn('id', 'text', (column) => column.notNull().unique())
    .addColumn('subscription_id', 'text', (column) => column.notNull())
    .addColumn('job_id', 'bigint', (column) => column.notNull())
    .addColumn('run_id', 'bigint', (column) => column.notNull())
    .addColumn('event_type', 'text', (column) => column.notNull())
    .addColumn('facts', 'text', (column) => column.notNull())
    .addColumn('created_unix_ms', 'bigint', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('is_tried', 'integer', (column) => column.notNull())
    .addColumn('is_forced', 'integer', (column) => column.notNull())
    .addColumn('round_count', 'integer', (column) => column.notNull())
    .addColumn('attempt_count', 'integer', (column) => column.notNull())
    .addColumn('due_unix_ms', 'bigint', (column) => column.notNull())
    .addColumn('lease_until_unix_ms', 'bigint', (column) => column.notNull())
    .addColumn('lease_holder', 'text')
    .addColumn('http_status_code', 'integer')
    .execute();
  await db.schema
    .createIndex('webhook_events_pending')
    .on('webhook_events')
    .columns(['subscription_id', 'due_unix_ms', 'seq'])
    .where(sql<boolean>`state = 'pending'`)
    .execute();
  await db.schema
    .createIndex('webhook_events_untried')
    .on('webhook_events')
    .columns(['subscription_id', 'job_id', 'seq'])
    .where(sql<boolean>`state = 'pending' and is_tried = 0`)
    .execute();
  await db.schema
    .createIndex('webhook_events_by_subscription')
    .on('webhook_events')
    .columns(['subscription_id', 'seq'])
    .execute();
  await db.schema.createIndex('webhook_events_by_age').on('webhook_events').column('created_unix_ms').execute();
  await db.schema
    .createTable('webhook_attempts')
    .addColumn('event_id', 'text', (column) => column.notNull())
    .addColumn('attempt_index', 'integer', (column) => column.notNull())
    .addColumn('subscription_id', 'text', (column) => column.notNull())
    .addColumn('started_unix_ms', 'bigint', (column) => column.notNull())
    .addColumn('duration_ms', 'integer', (column) => column.notNull())
    .addColumn('http_status_code', 'integer')
    .addColumn('error', 'text')
    .addColumn('request_headers', 'text', (column) => column.notNull())
    .addColumn('request_body', 'text', (column) => column.notNull())
    .addColumn('response_headers', 'text', (column) => column.notNull())
    .addColumn('response_body', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('webhook_attempts_pk', ['event_id', 'attempt_index'])
    .execute();
  await db.schema.createIndex('webhook_attempts_by_age').on('webhook_attempts').column('started_unix_ms').execute();
  await db.schema
    .createIndex('webhook_attempts_by_subscription')
    .on('webhook_attempts')
    .column('subscription_id')
    .execute();
  await db.schema
    .alterTable('executions')
    .addColumn('told', 'integer', (column) => column.notNull().defaultTo(0))
    .execute();
  // What happened before there were webhooks is nobody's news.
  await sql`update executions set told = case when status >= 10 then 7 else 1 end`.execute(db);
}
