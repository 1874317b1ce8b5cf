import type { Transaction } from 'kysely';
import { changeState } from '../change-state.js';
import type { Page } from '../run-catalog.js';
import type { StateDb, StateTables } from '../state-tables.js';
import { skipPending } from './skip-pending.js';
import { fromSettings, fromStanding, toSubscription } from './subscription-columns.js';
import type { NewWebhookSubscription, SubscriptionStore } from './subscription-store.js';
import { FRESH_STANDING, type WebhookSettings, type WebhookSubscription } from './webhook-subscription.js';

/** Rows of webhook subscriptions in an SQL database. */
export class SqlSubscriptionStore implements SubscriptionStore {
  constructor(private readonly db: StateDb) {}

  async add({ id, accountId, createdUnixMs, ...settings }: NewWebhookSubscription): Promise<WebhookSubscription> {
    const row = await this.db
      .insertInto('webhook_subscriptions')
      .values({
        ...{ id, account_id: accountId, created_unix_ms: createdUnixMs, updated_unix_ms: createdUnixMs },
        ...fromSettings(settings),
        ...fromStanding(FRESH_STANDING),
        ...{ next_slot_unix_ms: 0, url_version: 1 },
      })
      .returningAll()
      .executeTakeFirstOrThrow();
    return toSubscription(row);
  }

  async find(accountId: number, id: string): Promise<WebhookSubscription | undefined> {
    const row = await findRow(this.db, accountId, id);
    return row && toSubscription(row);
  }

  async list(
    accountId: number,
    { limit, offset }: { limit: number; offset: number },
  ): Promise<Page<WebhookSubscription>> {
    const own = this.db.selectFrom('webhook_subscriptions').where('account_id', '=', accountId);
    const rows = await own.selectAll().orderBy('created_unix_ms').orderBy('id').limit(limit).offset(offset).execute();
    const { count } = await own.select(({ fn }) => fn.countAll<number>().as('count')).executeTakeFirstOrThrow();
    return { items: rows.map(toSubscription), totalCount: Number(count) };
  }

  change(
    accountId: number,
    id: string,
    change: (current: WebhookSubscription) => Partial<WebhookSettings>,
    nowUnixMs: number,
  ): Promise<WebhookSubscription | undefined> {
    return changeState(
      this.db,
      async (transaction) => {
        const row = await findRow(transaction, accountId, id);
        if (row === undefined) return undefined;
        const before = toSubscription(row);
        const after = { ...before, ...change(before) };
        const isRevived = after.state === 'active' && before.state !== 'active';
        if (after.state !== 'active' && before.state === 'active') await skipPending(transaction, id);
        const isMoved = after.sealedUrl !== before.sealedUrl;
        if (isMoved) await startAnew(transaction, id, nowUnixMs);
        const changed = await transaction
          .updateTable('webhook_subscriptions')
          .set({
            ...fromSettings(after),
            ...(isRevived && { failed_count: 0, failing_since_unix_ms: null, paused_until_unix_ms: 0 }),
            ...(isRevived && { archive_reason: null }),
            ...(isMoved && { ...fromStanding(FRESH_STANDING), url_version: before.urlVersion + 1 }),
            updated_unix_ms: nowUnixMs,
          })
          .where('id', '=', id)
          .returningAll()
          .executeTakeFirstOrThrow();
        return toSubscription(changed);
      },
      'webhook',
    );
  }

  remove(accountId: number, id: string): Promise<boolean> {
    return changeState(
      this.db,
      async (transaction) => {
        const removed = await transaction
          .deleteFrom('webhook_subscriptions')
          .where('account_id', '=', accountId)
          .where('id', '=', id)
          .returning('id')
          .executeTakeFirst();
        if (removed === undefined) return false;
        await transaction.deleteFrom('webhook_events').where('subscription_id', '=', id).execute();
        await transaction.deleteFrom('webhook_attempts').where('subscription_id', '=', id).execute();
        return true;
      },
      'webhook',
    );
  }

  async hasAny(): Promise<boolean> {
    return (await this.db.selectFrom('webhook_subscriptions').select('id').limit(1).executeTakeFirst()) !== undefined;
  }
}

/** Events that an old URL did not take: the new one gets all attempts. */
async function startAnew(transaction: Transaction<StateTables>, id: string, nowUnixMs: number): Promise<void> {
  await transaction
    .updateTable('webhook_events')
    .set({ round_count: 0, due_unix_ms: nowUnixMs })
    .where('subscription_id', '=', id)
    .where('state', '=', 'pending')
    .where('is_tried', '=', 1)
    .execute();
}

function findRow(db: StateDb, accountId: number, id: string) {
  return db
    .selectFrom('webhook_subscriptions')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .executeTakeFirst();
}
