import { z } from 'zod';
import { WEBHOOK_EVENT_TYPES, WEBHOOK_KINDS, WEBHOOK_TRANSITIONS } from '../../store/webhook/webhook-subscription.js';

const text = z.string();
const micros = text.meta({ description: 'microseconds since 1970, as a text of digits' });
const state = z.enum(['pending', 'delivered', 'failed', 'skipped']);

/** Parameters of lists of webhooks. */
export const partParameters = z.object({ limit: text.optional(), offset: text.optional() });

/** `extra` of lists of webhooks. */
export const listExtraSchema = z.object({
  filters: z.object({ limit: z.int(), offset: z.int() }),
  order_by: z.null(),
  pagination: z.object({ count: z.int(), total_count: z.int() }),
});

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
    created_at: micros,
    updated_at: micros,
    dispatched_at: micros.optional(),
    http_status_code: text.meta({ description: "the endpoint's latest; 0 for none" }),
    hmac_secret: text.optional().meta({ description: 'in the answer to its making alone' }),
  })
  .meta({ id: 'WebhookSubscription' });

/** What `ownSubscriptionDocument` makes. */
export const ownSubscriptionSchema = subscriptionSchema
  .extend({
    type: z.enum(WEBHOOK_KINDS),
    state: z.enum(['active', 'inactive', 'archived']),
    filters: z.object({
      environments: z.array(text),
      projects: z.array(text),
      statuses: z.array(z.enum(['success', 'errored', 'cancelled'])),
      transitions: z.array(z.enum(WEBHOOK_TRANSITIONS)),
    }),
    has_headers: z.boolean(),
    authorization: z.boolean(),
    standard_headers: z.boolean(),
    max_per_minute: z.int().nullable(),
    failed_count: z.int().meta({ description: 'deliveries that failed since the last success' }),
    failing_since: micros.nullable(),
    paused_until: micros.nullable(),
    old_secret_until: micros.nullable(),
  })
  .meta({ id: 'OwnWebhookSubscription' });

/** What a test says. */
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
    trigger_event_type: z.enum(WEBHOOK_EVENT_TYPES),
    payload: text.meta({ description: 'JSON' }),
    http_status_code: text,
    state,
    attempt_count: text,
    created_at: micros,
  })
  .meta({ id: 'WebhookEvent' });

/** What `receiptDocument` makes. */
export const receiptSchema = z
  .object({
    id: text,
    event_id: text,
    subscription_id: text,
    dispatched_at: micros,
    duration_ms: z.int(),
    http_status_code: text,
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
