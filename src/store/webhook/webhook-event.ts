import type { RunFacts } from './run-facts.js';
import type { WebhookEventType, WebhookSubscription } from './webhook-subscription.js';

/**
 * Whether an event is still to be delivered, was, was not in all attempts (`failed`), or was never tried because its
 * subscription was not active (`skipped`).
 */
export type WebhookEventState = 'pending' | 'delivered' | 'failed' | 'skipped';

/** An event for one subscription. */
export interface WebhookEvent {
  /** `wev_` and a KSUID; the same over all attempts. */
  readonly id: string;
  readonly subscriptionId: string;
  readonly eventType: WebhookEventType;
  readonly facts: RunFacts;
  readonly createdUnixMs: number;
  readonly state: WebhookEventState;
  /** Attempts since it came to be, or was last replayed. */
  readonly roundCount: number;
  /** All attempts. */
  readonly attemptCount: number;
  /** When the next attempt is due. */
  readonly dueUnixMs: number;
  /** Of the last attempt; `null` where none was answered. */
  readonly httpStatusCode: number | null;
}

/** One attempt to deliver an event. */
export interface WebhookAttempt {
  readonly eventId: string;
  /** Position among the event's attempts, from 1. */
  readonly index: number;
  readonly startedUnixMs: number;
  readonly durationMs: number;
  /** `null` where nothing was answered. */
  readonly httpStatusCode: number | null;
  /** Why it failed, in words; `null` where it did not. */
  readonly error: string | null;
  /** JSON objects; values that may be secret are masked. */
  readonly requestHeaders: string;
  readonly requestBody: string;
  readonly responseHeaders: string;
  /** The first 4 KiB. */
  readonly responseBody: string;
  /**
   * What ended the kept connection on which it was sent first, where it was sent once more, on a new one; `null` where it
   * was sent once.
   */
  readonly resentAfter: string | null;
}

/** What an attempt came to, and what follows for its event. */
export interface AttemptResult {
  readonly event: WebhookEvent;
  /** Of the URL that it was sent to. */
  readonly urlVersion: number;
  readonly attempt: Omit<WebhookAttempt, 'index' | 'eventId'>;
  readonly next: { readonly state: 'delivered' | 'failed' } | { readonly state: 'pending'; readonly dueUnixMs: number };
  /** The endpoint wants nothing more, ever. */
  readonly isGone: boolean;
}

/** A subscription that was archived, and why. */
export type ArchivedSubscription = Pick<WebhookSubscription, 'id' | 'name' | 'accountId'> & {
  readonly reason: string;
  /** Events that waited for it, and are not delivered. */
  readonly skippedCount: number;
};
