import type { StateTables } from '../state-tables.js';
import type {
  WebhookEventType,
  WebhookFilter,
  WebhookSettings,
  WebhookStanding,
  WebhookSubscription,
} from './webhook-subscription.js';

type Columns = StateTables['webhook_subscriptions'];

/** What was decided, as columns. */
export function fromSettings(settings: WebhookSettings) {
  return {
    kind: settings.kind,
    name: settings.name,
    description: settings.description,
    sealed_url: settings.sealedUrl,
    shown_url: settings.shownUrl,
    event_types: JSON.stringify(settings.eventTypes),
    job_ids: JSON.stringify(settings.jobIds),
    filter: JSON.stringify(settings.filter),
    state: settings.state,
    archive_reason: settings.archiveReason,
    has_authorization: settings.hasAuthorization ? 1 : 0,
    has_standard_headers: settings.hasStandardHeaders ? 1 : 0,
    max_per_minute: settings.maxPerMinute,
    sealed_secret: settings.sealedSecret,
    sealed_old_secret: settings.sealedOldSecret,
    old_secret_until_unix_ms: settings.oldSecretUntilUnixMs,
    sealed_headers: settings.sealedHeaders,
  } satisfies Partial<Columns>;
}

/** How deliveries have gone, as columns. */
export function fromStanding(standing: WebhookStanding) {
  return {
    dispatched_unix_ms: standing.dispatchedUnixMs,
    http_status_code: standing.httpStatusCode,
    failed_count: standing.failedCount,
    failing_since_unix_ms: standing.failingSinceUnixMs,
    paused_until_unix_ms: standing.pausedUntilUnixMs,
  } satisfies Partial<Columns>;
}

/** A subscription of its row. */
export function toSubscription(row: Columns): WebhookSubscription {
  // Only `fromSettings` writes the three columns of JSON.
  const filter = JSON.parse(row.filter) as WebhookFilter;
  return {
    id: row.id,
    accountId: row.account_id,
    kind: row.kind,
    name: row.name,
    description: row.description,
    sealedUrl: row.sealed_url,
    shownUrl: row.shown_url,
    urlVersion: row.url_version,
    eventTypes: JSON.parse(row.event_types) as readonly WebhookEventType[],
    jobIds: JSON.parse(row.job_ids) as readonly number[],
    filter,
    state: row.state,
    archiveReason: row.archive_reason,
    hasAuthorization: row.has_authorization !== 0,
    hasStandardHeaders: row.has_standard_headers !== 0,
    maxPerMinute: row.max_per_minute,
    sealedSecret: row.sealed_secret,
    sealedOldSecret: row.sealed_old_secret,
    oldSecretUntilUnixMs: row.old_secret_until_unix_ms,
    sealedHeaders: row.sealed_headers,
    createdUnixMs: row.created_unix_ms,
    updatedUnixMs: row.updated_unix_ms,
    dispatchedUnixMs: row.dispatched_unix_ms,
    httpStatusCode: row.http_status_code,
    failedCount: row.failed_count,
    failingSinceUnixMs: row.failing_since_unix_ms,
    pausedUntilUnixMs: row.paused_until_unix_ms,
  };
}
