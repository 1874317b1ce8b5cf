import type { Page } from '../run-catalog.js';
import type { WebhookSettings, WebhookSubscription } from './webhook-subscription.js';

/** A subscription to add. */
export type NewWebhookSubscription = WebhookSettings & Pick<WebhookSubscription, 'id' | 'accountId' | 'createdUnixMs'>;

/** Webhook subscriptions; another account's are as if they were not there. */
export interface SubscriptionStore {
  add(subscription: NewWebhookSubscription): Promise<WebhookSubscription>;
  find(accountId: number, id: string): Promise<WebhookSubscription | undefined>;
  /** Oldest first. */
  list(
    accountId: number,
    part: { readonly limit: number; readonly offset: number },
  ): Promise<Page<WebhookSubscription>>;
  /**
   * Changes what was decided, by what it is now, in one transaction. One that becomes active, or gets another `sealedUrl`, starts with
   * a clean standing; what failed at the old URL and is still to be tried is due at once, with all attempts before it. What
   * waits for one that becomes inactive is skipped.
   * @param change what it throws is thrown, and nothing is changed
   * @returns what it is now; `undefined` where it is not there
   */
  change(
    accountId: number,
    id: string,
    change: (current: WebhookSubscription) => Partial<WebhookSettings>,
    nowUnixMs: number,
  ): Promise<WebhookSubscription | undefined>;
  /** Removes it with its events and its log. @returns whether it was there */
  remove(accountId: number, id: string): Promise<boolean>;
  /** Whether there is any, of whatever account. */
  hasAny(): Promise<boolean>;
}
