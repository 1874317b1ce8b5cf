import type { WebhookEventState } from './webhook-event.js';
import type { WebhookEventType, WebhookKind, WebhookState } from './webhook-subscription.js';

/** The tables of webhooks, as Kysely's types: who is told, of what, and the attempts to. */
export interface WebhookTables {
  /** See `WebhookSubscription`; lists and objects are JSON, switches 0 or 1. */
  readonly webhook_subscriptions: {
    readonly id: string;
    readonly account_id: number;
    readonly kind: WebhookKind;
    readonly name: string;
    readonly description: string;
    readonly sealed_url: string;
    readonly shown_url: string;
    readonly url_version: number;
    readonly event_types: string;
    readonly job_ids: string;
    readonly filter: string;
    readonly state: WebhookState;
    readonly archive_reason: string | null;
    readonly has_authorization: number;
    readonly has_standard_headers: number;
    readonly max_per_minute: number | null;
    readonly sealed_secret: string;
    readonly sealed_old_secret: string | null;
    readonly old_secret_until_unix_ms: number | null;
    readonly sealed_headers: string | null;
    readonly created_unix_ms: number;
    readonly updated_unix_ms: number;
    readonly dispatched_unix_ms: number | null;
    readonly http_status_code: number;
    readonly failed_count: number;
    readonly failing_since_unix_ms: number | null;
    readonly paused_until_unix_ms: number;
    /** Where there is a rate cap, the next attempt may be made then. */
    readonly next_slot_unix_ms: number;
  };
  /** See `WebhookEvent`. */
  readonly webhook_events: {
    /** The order in which they came to be. */
    readonly seq: number;
    readonly id: string;
    readonly subscription_id: string;
    readonly job_id: number;
    readonly run_id: number;
    readonly event_type: WebhookEventType;
    /** JSON of `RunFacts`. */
    readonly facts: string;
    readonly created_unix_ms: number;
    readonly state: WebhookEventState;
    /** 1 once its first attempt has ended: later ones of its job no longer wait for it. */
    readonly is_tried: number;
    /** 1 where it was asked for: then it is delivered whatever the subscription's state. */
    readonly is_forced: number;
    readonly round_count: number;
    readonly attempt_count: number;
    readonly due_unix_ms: number;
    /** Nobody else takes it before. */
    readonly lease_until_unix_ms: number;
    readonly lease_holder: string | null;
    readonly http_status_code: number | null;
  };
  /** See `WebhookAttempt`. */
  readonly webhook_attempts: {
    readonly event_id: string;
    readonly attempt_index: number;
    readonly subscription_id: string;
    readonly started_unix_ms: number;
    readonly duration_ms: number;
    readonly http_status_code: number | null;
    readonly error: string | null;
    readonly request_headers: string;
    readonly request_body: string;
    readonly response_headers: string;
    readonly response_body: string;
    readonly resent_after: string | null;
  };
}
