import type { WebhookAttempt, WebhookEvent } from '../../store/webhook/webhook-event.js';
import type { WebhookSubscription } from '../../store/webhook/webhook-subscription.js';
import type { StoryTeller } from '../../webhook/message/run-story.js';
import { payloadOf } from '../../webhook/payload.js';
import { microseconds } from './subscription-document.js';

/** An event as the hosted platform's delivery log has it: texts only. */
export async function eventDocument(
  subscription: WebhookSubscription,
  event: WebhookEvent,
  stories: Pick<StoryTeller, 'statusMessage'>,
) {
  const accountId = String(subscription.accountId);
  return {
    id: event.id,
    subscription_id: subscription.id,
    account_identifier: accountId,
    account_id: accountId,
    job_id: String(event.facts.jobId),
    run_id: String(event.facts.runId),
    trigger_event_type: event.eventType,
    payload: JSON.stringify(await payloadOf(subscription, event, stories)),
    http_status_code: String(event.httpStatusCode ?? 0),
    state: event.state,
    attempt_count: String(event.attemptCount),
    created_at: microseconds(event.createdUnixMs),
  };
}

/** One attempt as the hosted platform's receipts have it. */
export function receiptDocument(subscriptionId: string, attempt: WebhookAttempt) {
  return {
    id: `${attempt.eventId}.${attempt.index}`,
    event_id: attempt.eventId,
    subscription_id: subscriptionId,
    dispatched_at: microseconds(attempt.startedUnixMs),
    duration_ms: attempt.durationMs,
    http_status_code: String(attempt.httpStatusCode ?? 0),
    error_info: attempt.error,
    request_body: attempt.requestBody,
    request_headers: attempt.requestHeaders,
    response_headers: attempt.responseHeaders,
    response_body: attempt.responseBody,
    resent_after: attempt.resentAfter,
  };
}
