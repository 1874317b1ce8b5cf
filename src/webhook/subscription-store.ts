import { sql } from 'kysely';
import { camelCased } from '../core/snake-case.js';
import type { Page } from '../storage/database.js';
import type { StateDb } from '../storage/state-tables.js';
import { skipPending } from './event-store.js';
import { FRESH_STANDING, type WebhookSettings, type WebhookState, type WebhookSubscription } from './subscription.js';
import {
  changeWebhooks,
  SUBSCRIPTION_ROWS,
  type WebhookDb,
  type WebhookTables,
  type WebhookTransaction,
} from './tables.js';

/** Webhook subscriptions; another account's are as if they were not there. */
export class SubscriptionStore {
  private readonly db: WebhookDb;

  constructor(db: StateDb) {
    this.db = db.withTables<WebhookTables>();
  }

  async add(added: NewWebhookSubscription): Promise<WebhookSubscription> {
    const subscription: WebhookSubscription = {
      ...{ ...added, ...FRESH_STANDING },
      ...{ updatedUnixMs: added.createdUnixMs, urlVersion: 1, nextSlotUnixMs: 0 },
    };
    const row = await this.db
      .insertInto('webhook_subscriptions')
      .values(SUBSCRIPTION_ROWS.toRow(subscription))
      .returningAll()
      .executeTakeFirstOrThrow();
    return SUBSCRIPTION_ROWS.toItem(row);
  }

  async find(accountId: number, id: string): Promise<WebhookSubscription | undefined> {
    const row = await findRow(this.db, accountId, id);
    return row && SUBSCRIPTION_ROWS.toItem(row);
  }

  /** Finds the one that sends mail to these addresses, if there is one. @param url `mailto:` and addresses, which are not masked */
  async findMail(accountId: number, url: string): Promise<WebhookSubscription | undefined> {
    const row = await this.db
      .selectFrom('webhook_subscriptions')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('kind', '=', 'email')
      .where('shown_url', '=', url)
      .orderBy('created_unix_ms')
      .executeTakeFirst();
    return row && SUBSCRIPTION_ROWS.toItem(row);
  }

  /** Lists subscriptions, the oldest first. */
  async list(
    accountId: number,
    { limit, offset }: { limit: number; offset: number },
  ): Promise<Page<WebhookSubscription>> {
    const ofAccount = this.db.selectFrom('webhook_subscriptions').where('account_id', '=', accountId);
    const rows = await ofAccount
      .selectAll()
      .orderBy('created_unix_ms')
      .orderBy('id')
      .limit(limit)
      .offset(offset)
      .execute();
    const { count } = await ofAccount.select(({ fn }) => fn.countAll<number>().as('count')).executeTakeFirstOrThrow();
    return { items: rows.map((row) => SUBSCRIPTION_ROWS.toItem(row)), totalCount: Number(count) };
  }

  /**
   * Applies a change to the current state, in one transaction. A subscription that becomes active, or gets another `sealedUrl`, starts with
   * a clean standing; events that failed at the old URL and are still to be retried are due at once, with all attempts before them. Events
   * that wait for a subscription that becomes inactive are skipped.
   * @param change its exceptions are thrown, and nothing is changed
   * @returns the new state; `undefined` if it does not exist
   */
  change(
    accountId: number,
    id: string,
    change: (current: WebhookSubscription) => Partial<WebhookSettings>,
    nowUnixMs: number,
  ): Promise<WebhookSubscription | undefined> {
    return changeWebhooks(this.db, async (transaction) => {
      const row = await findRow(transaction, accountId, id);
      if (row === undefined) return undefined;
      const before = SUBSCRIPTION_ROWS.toItem(row);
      const changes = change(before);
      const { state, sealedUrl } = { ...before, ...changes };
      const isRevived = state === 'active' && before.state !== 'active';
      if (state !== 'active' && before.state === 'active') await skipPending(transaction, id);
      const isMoved = sealedUrl !== before.sealedUrl;
      if (isMoved) await startAnew(transaction, id, nowUnixMs);
      const changed = await transaction
        .updateTable('webhook_subscriptions')
        .set(
          SUBSCRIPTION_ROWS.toRow({
            ...changes,
            ...(isRevived && { failedCount: 0, failingSinceUnixMs: null, pausedUntilUnixMs: 0, archiveReason: null }),
            ...(isMoved && { ...FRESH_STANDING, urlVersion: before.urlVersion + 1 }),
            updatedUnixMs: nowUnixMs,
          }),
        )
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirstOrThrow();
      return SUBSCRIPTION_ROWS.toItem(changed);
    });
  }

  /** Removes it with its events and its log. @returns whether it was there */
  remove(accountId: number, id: string): Promise<boolean> {
    return changeWebhooks(this.db, async (transaction) => {
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
    });
  }

  /** Returns whether any subscription exists, of any account. */
  async hasAny(): Promise<boolean> {
    return (await this.db.selectFrom('webhook_subscriptions').select('id').limit(1).executeTakeFirst()) !== undefined;
  }

  /**
   * Reads how subscriptions of all accounts stand, in two statements that go by indexes.
   * @param limit of subscriptions
   * @throws StoreError
   */
  async readOverview(limit: number): Promise<WebhookOverview> {
    const countByState: Record<WebhookState, number> = { active: 0, inactive: 0, archived: 0 };
    const counted = await this.db
      .selectFrom('webhook_subscriptions')
      .select(['state', ({ fn }) => fn.countAll<number>().as('count')])
      .groupBy('state')
      .execute();
    for (const { state, count } of counted) countByState[state] = Number(count);
    return { countByState, subscriptions: counted.length === 0 ? [] : await this.readStandings(limit) };
  }

  private async readStandings(limit: number): Promise<readonly SubscriptionOverview[]> {
    const rows = await this.db
      .selectFrom('webhook_subscriptions as subscription')
      .leftJoin(
        // Count and first number are in the index of pending events: no event is read for them.
        ({ selectFrom }) =>
          selectFrom('webhook_events as event')
            .select(['event.subscription_id', ({ fn }) => fn.countAll<number>().as('count')])
            .select(({ fn }) => fn.min('event.seq').as('first_seq'))
            .where(sql<boolean>`event.state = 'pending'`)
            .groupBy('event.subscription_id')
            .as('pending'),
        (join) => join.onRef('pending.subscription_id', '=', 'subscription.id'),
      )
      .leftJoin('webhook_events as first', 'first.seq', 'pending.first_seq')
      .select(['subscription.id', 'account_id', 'name', 'kind', 'subscription.state', 'archive_reason'])
      .select(['failed_count', 'failing_since_unix_ms', 'paused_until_unix_ms'])
      .select(['pending.count as pending_count', 'first.created_unix_ms as first_unix_ms'])
      .orderBy(sql`case when subscription.state = 'archived' then 0 else 1 end`)
      .orderBy('failed_count', 'desc')
      .orderBy('subscription.created_unix_ms')
      .orderBy('subscription.id')
      .limit(limit)
      .execute();
    return rows.map(({ pending_count, first_unix_ms, ...row }) => ({
      ...camelCased(row),
      ...{ pendingCount: Number(pending_count ?? 0), oldestPendingUnixMs: first_unix_ms },
    }));
  }
}

/** Gives events that an old URL did not take all attempts at the new one. */
async function startAnew(transaction: WebhookTransaction, id: string, nowUnixMs: number): Promise<void> {
  await transaction
    .updateTable('webhook_events')
    .set({ round_count: 0, due_unix_ms: nowUnixMs })
    .where('subscription_id', '=', id)
    .where('state', '=', 'pending')
    .where('is_tried', '=', 1)
    .execute();
}

function findRow(db: WebhookDb | WebhookTransaction, accountId: number, id: string) {
  return db
    .selectFrom('webhook_subscriptions')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .executeTakeFirst();
}

/** A subscription to add. */
export type NewWebhookSubscription = WebhookSettings & Pick<WebhookSubscription, 'id' | 'accountId' | 'createdUnixMs'>;

/** How one subscription stands, and what waits for it. */
export interface SubscriptionOverview
  extends Pick<
    WebhookSubscription,
    | 'id'
    | 'accountId'
    | 'name'
    | 'kind'
    | 'state'
    | 'archiveReason'
    | 'failedCount'
    | 'failingSinceUnixMs'
    | 'pausedUntilUnixMs'
  > {
  /** Events that are still to be delivered. */
  readonly pendingCount: number;
  /** When the first one was created; `null` if none exists. */
  readonly oldestPendingUnixMs: number | null;
}

/** How subscriptions of all accounts stand. */
export interface WebhookOverview {
  readonly countByState: Readonly<Record<WebhookState, number>>;
  /** Archived ones first, then those that have failed most often in a row, then the oldest. */
  readonly subscriptions: readonly SubscriptionOverview[];
}
