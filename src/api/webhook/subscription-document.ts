import type { WebhookSubscription } from '../../store/webhook/webhook-subscription.js';

/**
 * A subscription as the hosted platform shows it.
 * @param clientUrl as the caller may see it
 * @param secret shown where it was made just now
 */
export function subscriptionDocument(subscription: WebhookSubscription, clientUrl: string, secret?: string) {
  const { id, accountId, name, description, jobIds, eventTypes, state, dispatchedUnixMs } = subscription;
  return {
    id,
    account_identifier: String(accountId),
    account_id: String(accountId),
    name,
    description,
    job_ids: jobIds.map(String),
    event_types: eventTypes,
    client_url: clientUrl,
    active: state === 'active',
    archived_reason: subscription.archiveReason,
    created_at: microseconds(subscription.createdUnixMs),
    updated_at: microseconds(subscription.updatedUnixMs),
    ...(dispatchedUnixMs !== null && { dispatched_at: microseconds(dispatchedUnixMs) }),
    http_status_code: String(subscription.httpStatusCode),
    ...(secret !== undefined && { hmac_secret: secret }),
  };
}

/** Microseconds since 1970, as a text of digits. */
export function microseconds(unixMs: number): string {
  return `${unixMs}000`;
}
