import { z } from 'zod';
import { formatExpected } from '../config/duration.js';
import { WEBHOOK_EVENT_STATES, type WebhookAttempt, type WebhookEvent } from './event.js';
import type { WebhookEventStore } from './event-store.js';
import type { RunDetailsReader } from './run-details.js';
import { payloadOf } from './senders.js';
import {
  NOTICE_TYPES,
  statusWord,
  WEBHOOK_EVENT_TYPES,
  WEBHOOK_KINDS,
  WEBHOOK_TRANSITIONS,
  WEBHOOK_VERDICTS,
  type WebhookFilter,
  type WebhookSubscription,
} from './subscription.js';

const text = z.string();
const micros = text.meta({ description: 'microseconds since 1970, as a text of digits' });

const names = z.array(z.string().min(1).max(255), 'is no list of names').max(1_000);
const oneOf = <const T extends readonly string[]>(words: T) => z.enum(words, `is none of ${words.join(', ')}`);

/** The lists of a filter, by the API's names; an empty one does not restrict. */
export const filterLists = {
  environments: names,
  projects: names,
  statuses: z.array(oneOf(['success', 'errored', 'cancelled'])),
  transitions: z.array(oneOf(WEBHOOK_TRANSITIONS)),
  verdicts: z.array(oneOf(WEBHOOK_VERDICTS)),
  tags: names,
  owners: names,
  groups: names,
  models: names.meta({ description: 'names or unique ids; * stands for any characters' }),
};

/** What `subscriptionDocument` makes. */
export const subscriptionSchema = z
  .object({
    id: text,
    account_identifier: text,
    account_id: text,
    name: text,
    description: text,
    job_ids: z.array(text),
    event_types: z.array(z.enum(WEBHOOK_EVENT_TYPES)),
    client_url: text.meta({ description: 'masked for callers who may not write webhooks' }),
    active: z.boolean(),
    archived_reason: text
      .nullable()
      .meta({ description: 'why nothing is sent any more; null where it was not archived' }),
    deactivate_reason: text.nullable().meta({ description: 'the same' }),
    created_at: micros,
    updated_at: micros,
    dispatched_at: micros.optional(),
    http_status_code: text.meta({
      description: "the endpoint's latest; 0 if nothing was ever sent, empty if nothing that was sent had one",
    }),
    last_error: text
      .nullable()
      .meta({ description: 'why the latest delivery failed, in words; null where it did not, or there was none' }),
    hmac_secret: text.optional().meta({ description: 'in the answer to its making alone' }),
  })
  .meta({ id: 'WebhookSubscription' });

/** What only callers who may change a subscription see of it. */
export interface ShownSecrets {
  /** Masked for others. */
  readonly clientUrl: string;
  /** `null` for others. */
  readonly bodyTemplate: string | null;
}

/**
 * Returns a subscription as the hosted platform shows it.
 * @param shown as the caller may see it
 * @param secret only right after its creation
 */
export function subscriptionDocument(
  subscription: WebhookSubscription,
  shown: ShownSecrets,
  secret?: string,
): z.input<typeof subscriptionSchema> {
  const { id, accountId, name, description, jobIds, eventTypes, state, dispatchedUnixMs } = subscription;
  return {
    id,
    account_identifier: String(accountId),
    account_id: String(accountId),
    name,
    description,
    job_ids: jobIds.map(String),
    event_types: [...eventTypes],
    client_url: shown.clientUrl,
    active: state === 'active',
    archived_reason: subscription.archiveReason,
    // The hosted platform's name of it.
    deactivate_reason: subscription.archiveReason,
    created_at: microseconds(subscription.createdUnixMs),
    updated_at: microseconds(subscription.updatedUnixMs),
    ...(dispatchedUnixMs !== null && { dispatched_at: microseconds(dispatchedUnixMs) }),
    http_status_code: statusText(subscription.httpStatusCode, dispatchedUnixMs !== null),
    last_error: subscription.lastError,
    ...(secret !== undefined && { hmac_secret: secret }),
  };
}

/** What `nativeSubscriptionDocument` makes. */
export const nativeSubscriptionSchema = subscriptionSchema
  .extend({
    type: z.enum(WEBHOOK_KINDS),
    state: z.enum(['active', 'inactive', 'archived']),
    filters: z.object(filterLists),
    run_details: z.boolean(),
    per_owner: z.boolean(),
    hold_repeats: z.boolean(),
    has_headers: z.boolean(),
    has_routing_key: z.boolean(),
    body_template: text.nullable().meta({ description: 'null for callers who may not write webhooks' }),
    authorization: z.boolean(),
    signature_header: text,
    standard_headers: z.boolean(),
    notify_on_archive: text.nullable().meta({ description: 'the id of a webhook' }),
    expect: text.nullable(),
    max_per_minute: z.int().nullable(),
    failed_count: z.int().meta({ description: 'deliveries that failed since the last success' }),
    failing_since: micros.nullable(),
    paused_until: micros.nullable(),
    old_secret_until: micros.nullable(),
  })
  .meta({ id: 'OwnWebhookSubscription' });

type NativeInput = z.input<typeof nativeSubscriptionSchema>;
type Filters = NativeInput['filters'];
export type NativeSubscriptionDocument = Omit<NativeInput, 'filters'> & {
  readonly filters: { readonly [Name in keyof Filters]: Readonly<Filters[Name]> };
};

/**
 * Returns a subscription with the settings that the hosted platform does not have.
 * @param shown as the caller may see it
 * @param secret only right after its creation
 */
export function nativeSubscriptionDocument(
  subscription: WebhookSubscription,
  shown: ShownSecrets,
  secret?: string,
): NativeSubscriptionDocument {
  const { kind, state, filter, pausedUntilUnixMs } = subscription;
  return {
    ...subscriptionDocument(subscription, shown, secret),
    type: kind,
    state,
    filters: filterDocument(filter),
    run_details: subscription.hasRunDetails,
    per_owner: subscription.isPerOwner,
    hold_repeats: subscription.holdsRepeats,
    has_headers: subscription.sealedHeaders !== null,
    has_routing_key: subscription.sealedRoutingKey !== null,
    body_template: shown.bodyTemplate,
    authorization: subscription.hasAuthorization,
    signature_header: subscription.signatureHeader,
    notify_on_archive: subscription.notifyOnArchive,
    expect: subscription.expectMs === null ? null : formatExpected(subscription.expectMs),
    standard_headers: subscription.hasStandardHeaders,
    max_per_minute: subscription.maxPerMinute,
    failed_count: subscription.failedCount,
    failing_since: microsecondsOrNull(subscription.failingSinceUnixMs),
    paused_until: pausedUntilUnixMs === 0 ? null : microseconds(pausedUntilUnixMs),
    old_secret_until: microsecondsOrNull(subscription.oldSecretUntilUnixMs),
  };
}

function filterDocument({ statuses, ...lists }: WebhookFilter): NativeSubscriptionDocument['filters'] {
  return { ...lists, statuses: statuses.map(statusWord) };
}

/** The result of a test. */
export const testSchema = z.object({
  verification_error: text.nullable(),
  verification_status_code: text,
  event_id: text,
});

/** What `eventDocument` makes. */
export const eventSchema = z
  .object({
    id: text,
    subscription_id: text,
    account_identifier: text,
    account_id: text,
    job_id: text,
    run_id: text,
    trigger_event_type: z.enum([...WEBHOOK_EVENT_TYPES, ...NOTICE_TYPES]),
    payload: text.meta({ description: 'JSON' }),
    http_status_code: text.meta({ description: 'the latest; 0 if nothing was ever sent, empty if no attempt had one' }),
    state: z.enum(WEBHOOK_EVENT_STATES),
    filtered_reason: text.optional().meta({ description: 'why it was not sent; only where it is filtered' }),
    attempt_count: text,
    created_at: micros,
  })
  .meta({ id: 'WebhookEvent' });

/** What events are shown with. */
export interface EventDocumentDeps {
  readonly events: Pick<WebhookEventStore, 'lastRequest'>;
  readonly runDetails: Pick<RunDetailsReader, 'statusMessage' | 'read'>;
}

/** Returns an event in the form of the hosted platform's delivery log: texts only. */
export async function eventDocument(
  subscription: WebhookSubscription,
  event: WebhookEvent,
  { events, runDetails }: EventDocumentDeps,
): Promise<z.input<typeof eventSchema>> {
  // What was sent is at hand; making it again may take reading all that is known of the run.
  const isPayload = subscription.kind === 'http' && subscription.sealedTemplate === null;
  const sent = subscription.hasRunDetails && isPayload ? await events.lastRequest(event.id) : undefined;
  const accountId = String(subscription.accountId);
  return {
    id: event.id,
    subscription_id: subscription.id,
    account_identifier: accountId,
    account_id: accountId,
    job_id: String(event.facts.jobId),
    run_id: String(event.facts.runId),
    trigger_event_type: event.eventType,
    payload: sent?.body ?? JSON.stringify(await payloadOf(subscription, event, runDetails)),
    http_status_code: statusText(event.httpStatusCode ?? 0, event.attemptCount > 0),
    state: event.state,
    ...(event.filteredReason !== null && { filtered_reason: event.filteredReason }),
    attempt_count: String(event.attemptCount),
    created_at: microseconds(event.createdUnixMs),
  };
}

/** What `receiptDocument` makes. */
export const receiptSchema = z
  .object({
    id: text,
    event_id: text,
    subscription_id: text,
    dispatched_at: micros,
    duration_ms: z.int(),
    http_status_code: text.meta({ description: 'empty where nothing was answered, or mail was sent' }),
    error_info: text.nullable(),
    request_body: text,
    request_headers: text.meta({ description: 'JSON' }),
    response_headers: text.meta({ description: 'JSON' }),
    response_body: text.meta({ description: 'the first 4 KiB' }),
    resent_after: text
      .nullable()
      .meta({ description: 'what ended the kept connection on which it was sent first; null where it was sent once' }),
  })
  .meta({ id: 'WebhookReceipt' });

/** Returns one attempt as the hosted platform's receipts have it. */
export function receiptDocument(attempt: WebhookAttempt): z.input<typeof receiptSchema> {
  return {
    id: `${attempt.eventId}.${attempt.attemptIndex}`,
    event_id: attempt.eventId,
    subscription_id: attempt.subscriptionId,
    dispatched_at: microseconds(attempt.startedUnixMs),
    duration_ms: attempt.durationMs,
    http_status_code: statusText(attempt.httpStatusCode ?? 0, true),
    error_info: attempt.error,
    request_body: attempt.requestBody,
    request_headers: JSON.stringify(attempt.requestHeaders),
    response_headers: JSON.stringify(attempt.responseHeaders),
    response_body: attempt.responseBody,
    resent_after: attempt.resentAfter,
  };
}

/** Returns an HTTP status as the hosted platform shows it: `0` for something that was never sent, so nothing else may read so. */
function statusText(status: number, isSent: boolean): string {
  return status === 0 && isSent ? '' : String(status);
}

/** Returns microseconds since 1970, as a text of digits. */
function microseconds(unixMs: number): string {
  return `${unixMs}000`;
}

function microsecondsOrNull(unixMs: number | null): string | null {
  return unixMs === null ? null : microseconds(unixMs);
}
