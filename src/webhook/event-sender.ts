import type { WebhookEvent } from '../store/webhook/webhook-event.js';
import type { WebhookSubscription } from '../store/webhook/webhook-subscription.js';

/** An event as it is sent: one of the outbox, or a test. */
export interface OutgoingEvent extends Pick<WebhookEvent, 'id' | 'eventType' | 'facts' | 'createdUnixMs'> {
  /** Somebody tries the subscription: nothing has happened. Events of the outbox do not have it. */
  readonly isTest?: true;
}

/** Goes with each test, whatever the subscription's kind and its signatures. */
export const TEST_HEADER = { 'webhook-test': 'true' } as const;

/** What came of one attempt to bring an event to where a subscription wants it. */
export interface Sent {
  readonly isDelivered: boolean;
  /** The endpoint wants nothing more, ever. */
  readonly isGone: boolean;
  /** What it asked to wait, in milliseconds; `null` where it did not. */
  readonly retryAfterMs: number | null;
  /** `null` where nothing was answered. */
  readonly httpStatusCode: number | null;
  /** Why it was not delivered, in words. */
  readonly error: string | null;
  /** For the log: values that may be secret are masked. */
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly requestBody: string;
  readonly responseHeaders: Readonly<Record<string, string>>;
  /** Its first 4 KiB. */
  readonly responseBody: string;
  /** What ended the kept connection on which it was sent first, where it was sent once more on a new one; else `null`. */
  readonly resentAfter: string | null;
}

/** Brings events in one way. */
export interface EventSender {
  /** One attempt; never rejects for what the other side does. @param signal ends it early */
  send(subscription: WebhookSubscription, event: OutgoingEvent, signal: AbortSignal): Promise<Sent>;
}
