import type { Page } from '../run-catalog.js';
import type { ArchivedSubscription, AttemptResult, WebhookAttempt, WebhookEvent } from './webhook-event.js';
import type { WebhookStanding, WebhookSubscription } from './webhook-subscription.js';

/** How a subscription's standing changes with attempts, and why it is archived, if it is. */
export type StandingRule = (
  before: WebhookStanding,
  attempts: readonly AttemptResult[],
) => { readonly standing: WebhookStanding; readonly archiveReason: string | null };

/** Who delivers, and until when it is known to be at work. */
export interface Claim {
  /** Unique among processes. */
  readonly holder: string;
  readonly nowUnixMs: number;
  readonly leaseUntilUnixMs: number;
}

/** Which events are to be delivered anew. */
export type ReplayScope =
  | { readonly eventId: string }
  /** All that failed or were skipped since then, of one subscription or of all of the account. */
  | { readonly sinceUnixMs: number; readonly subscriptionId?: string };

/** The outbox: what subscriptions are to be told, and the log of attempts. Events are added by whatever changes a run. */
export interface WebhookEventStore {
  /** Subscriptions that are not paused and have an event that can be claimed; leaves out the given ones. */
  listReady(nowUnixMs: number, without: readonly string[], limit: number): Promise<readonly WebhookSubscription[]>;
  /**
   * Takes events of a subscription, oldest first: due ones that nobody has, and whose earlier ones of the same job were
   * tried. Each is had by one holder at a time. A subscription with a rate cap gives one, if it is its time.
   */
  claim(
    subscription: Pick<WebhookSubscription, 'id' | 'maxPerMinute'>,
    limit: number,
    claim: Claim,
  ): Promise<readonly WebhookEvent[]>;
  /**
   * Writes down what attempts came to, in one transaction. What another holder has taken over meanwhile is logged, and
   * changes nothing else. What did not arrive at a URL that the subscription no longer has is due at once, with all
   * attempts before it, and says nothing of the subscription. What waits for a subscription that is archived is skipped.
   */
  finish(
    results: readonly AttemptResult[],
    holder: string,
    rule: StandingRule,
  ): Promise<readonly ArchivedSubscription[]>;
  /** Gives back what was claimed and not finished. @param holder whose: all holders that begin with it; all that anybody has when left out */
  release(holder?: string): Promise<void>;
  /** Newest first. */
  list(
    accountId: number,
    subscriptionId: string,
    part: { readonly limit: number; readonly offset: number },
  ): Promise<Page<WebhookEvent>>;
  find(accountId: number, subscriptionId: string, eventId: string): Promise<WebhookEvent | undefined>;
  /** Attempts of an event, oldest first. */
  attemptsOf(eventId: string): Promise<readonly WebhookAttempt[]>;
  /** The same of each of these events; those that have none are left out. @param eventIds as many as a page shows */
  attemptsOfEach(eventIds: readonly string[]): Promise<ReadonlyMap<string, readonly WebhookAttempt[]>>;
  /**
   * Makes events due again, with all attempts before them, also where their subscription is not active; pending ones stay
   * as they are. @returns how many
   */
  replay(accountId: number, scope: ReplayScope, nowUnixMs: number): Promise<number>;
  countPending(): Promise<number>;
  /** The same of each of these subscriptions; those that have none are left out. */
  countPendingOf(subscriptionIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
}
