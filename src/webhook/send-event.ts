import { reasonOf } from '../component/reason-of.js';
import type { WebhookKind, WebhookSubscription } from '../store/webhook/webhook-subscription.js';
import type { EventSender, OutgoingEvent, Sent } from './event-sender.js';

const NOTHING_SENT: Sent = {
  ...{ isDelivered: false, isGone: false, retryAfterMs: null, httpStatusCode: null, error: null },
  ...{ requestHeaders: {}, requestBody: '', responseHeaders: {}, responseBody: '', resentAfter: null },
};

/**
 * One attempt, in the way of the subscription; never rejects. What cannot even be tried (a message that cannot be made, a
 * secret that cannot be opened) is told like other failures.
 */
export async function sendEvent(
  senders: Readonly<Record<WebhookKind, EventSender>>,
  subscription: WebhookSubscription,
  event: OutgoingEvent,
  signal: AbortSignal,
): Promise<Sent> {
  try {
    return await senders[subscription.kind].send(subscription, event, signal);
  } catch (error) {
    return { ...NOTHING_SENT, error: reasonOf(error) };
  }
}
