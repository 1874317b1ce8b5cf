import { RUN_STATUS, type RunStatus } from '../../store/run-status.js';
import type { WebhookSubscription } from '../../store/webhook/webhook-subscription.js';
import { microseconds, subscriptionDocument } from '../webhook/subscription-document.js';

/**
 * A subscription with what the hosted platform has no place for.
 * @param clientUrl as the caller may see it
 * @param secret shown where it was made just now
 */
export function ownSubscriptionDocument(subscription: WebhookSubscription, clientUrl: string, secret?: string) {
  const { kind, state, filter, pausedUntilUnixMs } = subscription;
  return {
    ...subscriptionDocument(subscription, clientUrl, secret),
    type: kind,
    state,
    filters: { ...filter, statuses: filter.statuses.map(wordOf) },
    has_headers: subscription.sealedHeaders !== null,
    authorization: subscription.hasAuthorization,
    standard_headers: subscription.hasStandardHeaders,
    max_per_minute: subscription.maxPerMinute,
    failed_count: subscription.failedCount,
    failing_since: orNull(subscription.failingSinceUnixMs),
    paused_until: pausedUntilUnixMs === 0 ? null : microseconds(pausedUntilUnixMs),
    old_secret_until: orNull(subscription.oldSecretUntilUnixMs),
  };
}

function orNull(unixMs: number | null): string | null {
  return unixMs === null ? null : microseconds(unixMs);
}

function wordOf(status: RunStatus): string {
  if (status === RUN_STATUS.success) return 'success';
  return status === RUN_STATUS.cancelled ? 'cancelled' : 'errored';
}
