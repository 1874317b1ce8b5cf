import { sql } from 'kysely';
import type { StateDb } from '../state-tables.js';
import type { SubscriptionOverview, WebhookOverview, WebhookOverviewStore } from './webhook-overview.js';
import type { WebhookState } from './webhook-subscription.js';

/** Looks at webhook subscriptions in an SQL database, in two statements that go by indexes. */
export class SqlWebhookOverviewStore implements WebhookOverviewStore {
  constructor(private readonly db: StateDb) {}

  async read(limit: number): Promise<WebhookOverview> {
    const countByState: Record<WebhookState, number> = { active: 0, inactive: 0, archived: 0 };
    const counted = await this.db
      .selectFrom('webhook_subscriptions')
      .select(['state', ({ fn }) => fn.countAll<number>().as('count')])
      .groupBy('state')
      .execute();
    for (const { state, count } of counted) countByState[state] = Number(count);
    return { countByState, subscriptions: counted.length === 0 ? [] : await this.readStanding(limit) };
  }

  private async readStanding(limit: number): Promise<readonly SubscriptionOverview[]> {
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
    return rows.map((row) => ({
      ...{ id: row.id, accountId: row.account_id, name: row.name, kind: row.kind, state: row.state },
      ...{ archiveReason: row.archive_reason, failedCount: row.failed_count },
      ...{ failingSinceUnixMs: row.failing_since_unix_ms, pausedUntilUnixMs: row.paused_until_unix_ms },
      ...{ pendingCount: Number(row.pending_count ?? 0), oldestPendingUnixMs: row.first_unix_ms },
    }));
  }
}
