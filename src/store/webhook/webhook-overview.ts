import type { WebhookState, WebhookSubscription } from './webhook-subscription.js';

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
  /** When the first of them came to be; `null` where there is none. */
  readonly oldestPendingUnixMs: number | null;
}

/** How subscriptions of all accounts stand. */
export interface WebhookOverview {
  readonly countByState: Readonly<Record<WebhookState, number>>;
  /** Archived ones first, then those that have failed most often in a row, then the oldest. */
  readonly subscriptions: readonly SubscriptionOverview[];
}

/** Looks at all subscriptions at once, for whoever watches over the bridge. */
export interface WebhookOverviewStore {
  /** @param limit so many subscriptions at most. @throws StoreError */
  read(limit: number): Promise<WebhookOverview>;
}
