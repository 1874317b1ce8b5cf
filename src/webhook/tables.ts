import type { Kysely, Transaction } from 'kysely';
import { changeState } from '../storage/database.js';
import type { StateDb, StateTables } from '../storage/state-tables.js';
import type { WebhookEventState } from './event.js';
import type {
  NoticeType,
  WebhookEventType,
  WebhookFilter,
  WebhookKind,
  WebhookSettings,
  WebhookStanding,
  WebhookState,
  WebhookSubscription,
} from './subscription.js';

/** The tables of webhooks, as Kysely's types: subscriptions, events, and the attempts to deliver them. */
// A type: an interface has no index signature, which `withTables` asks for.
export type WebhookTables = {
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
    readonly has_run_details: number;
    readonly is_per_owner: number;
    readonly holds_repeats: number;
    readonly state: WebhookState;
    readonly archive_reason: string | null;
    readonly has_authorization: number;
    readonly has_standard_headers: number;
    readonly max_per_minute: number | null;
    readonly sealed_secret: string;
    readonly sealed_old_secret: string | null;
    readonly old_secret_until_unix_ms: number | null;
    readonly sealed_headers: string | null;
    readonly signature_header: string;
    readonly sealed_template: string | null;
    readonly sealed_routing_key: string | null;
    readonly notify_on_archive: string | null;
    readonly expect_ms: number | null;
    readonly created_unix_ms: number;
    readonly updated_unix_ms: number;
    readonly dispatched_unix_ms: number | null;
    readonly http_status_code: number;
    readonly last_error: string | null;
    readonly failed_count: number;
    readonly failing_since_unix_ms: number | null;
    readonly paused_until_unix_ms: number;
    /** Where there is a rate cap, the next attempt may be made then. */
    readonly next_slot_unix_ms: number;
  };
  /** See `WebhookEvent`. */
  readonly webhook_events: {
    /** The order in which they were made. */
    readonly seq: number;
    readonly id: string;
    readonly subscription_id: string;
    readonly job_id: number;
    readonly run_id: number;
    readonly event_type: WebhookEventType | NoticeType;
    /** JSON of `RunFacts`. */
    readonly facts: string;
    readonly created_unix_ms: number;
    readonly state: WebhookEventState;
    readonly filtered_reason: string | null;
    /** 1 once its first attempt has ended: later ones of its job no longer wait for it. */
    readonly is_tried: number;
    /** 1 if it was requested: then it is delivered whatever the subscription's state. */
    readonly is_forced: number;
    readonly round_count: number;
    readonly attempt_count: number;
    readonly due_unix_ms: number;
    /** Until then it is claimed. */
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
};

/** A connection to the state, with the tables of webhooks. */
export type WebhookDb = Kysely<StateTables & WebhookTables>;
export type WebhookTransaction = Transaction<StateTables & WebhookTables>;

/** A transaction for changes of subscriptions and events; those of several processes wait for each other. */
export function changeWebhooks<T>(db: StateDb, body: (transaction: WebhookTransaction) => Promise<T>): Promise<T> {
  return changeState(db, (transaction) => body(transaction.withTables<WebhookTables>()), 'webhook');
}

type Columns = WebhookTables['webhook_subscriptions'];

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
    has_run_details: settings.hasRunDetails ? 1 : 0,
    is_per_owner: settings.isPerOwner ? 1 : 0,
    holds_repeats: settings.holdsRepeats ? 1 : 0,
    state: settings.state,
    archive_reason: settings.archiveReason,
    has_authorization: settings.hasAuthorization ? 1 : 0,
    has_standard_headers: settings.hasStandardHeaders ? 1 : 0,
    max_per_minute: settings.maxPerMinute,
    sealed_secret: settings.sealedSecret,
    sealed_old_secret: settings.sealedOldSecret,
    old_secret_until_unix_ms: settings.oldSecretUntilUnixMs,
    sealed_headers: settings.sealedHeaders,
    signature_header: settings.signatureHeader,
    sealed_template: settings.sealedTemplate,
    sealed_routing_key: settings.sealedRoutingKey,
    notify_on_archive: settings.notifyOnArchive,
    expect_ms: settings.expectMs,
  } satisfies Partial<Columns>;
}

/** Statistics of deliveries, as columns. */
export function fromStanding(standing: WebhookStanding) {
  return {
    dispatched_unix_ms: standing.dispatchedUnixMs,
    http_status_code: standing.httpStatusCode,
    last_error: standing.lastError,
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
    hasRunDetails: row.has_run_details !== 0,
    isPerOwner: row.is_per_owner !== 0,
    holdsRepeats: row.holds_repeats !== 0,
    state: row.state,
    archiveReason: row.archive_reason,
    hasAuthorization: row.has_authorization !== 0,
    hasStandardHeaders: row.has_standard_headers !== 0,
    maxPerMinute: row.max_per_minute,
    sealedSecret: row.sealed_secret,
    sealedOldSecret: row.sealed_old_secret,
    oldSecretUntilUnixMs: row.old_secret_until_unix_ms,
    sealedHeaders: row.sealed_headers,
    signatureHeader: row.signature_header,
    sealedTemplate: row.sealed_template,
    sealedRoutingKey: row.sealed_routing_key,
    notifyOnArchive: row.notify_on_archive,
    expectMs: row.expect_ms,
    createdUnixMs: row.created_unix_ms,
    updatedUnixMs: row.updated_unix_ms,
    dispatchedUnixMs: row.dispatched_unix_ms,
    httpStatusCode: row.http_status_code,
    lastError: row.last_error,
    failedCount: row.failed_count,
    failingSinceUnixMs: row.failing_since_unix_ms,
    pausedUntilUnixMs: row.paused_until_unix_ms,
  };
}

/** 2014-05-13T16:53:20Z, from which KSUIDs count their seconds. */
const EPOCH_S = 1_400_000_000;
const PAYLOAD_BYTES = 16;
const LENGTH = 27;
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/**
 * A K-sortable unique id (https://github.com/segmentio/ksuid): 27 letters and digits, made of a second and 128 random bits.
 * @param randomBytes gives so many random bytes
 */
export function ksuid(nowUnixMs: number, randomBytes: (count: number) => Uint8Array): string {
  const bytes = Buffer.alloc(4 + PAYLOAD_BYTES);
  bytes.writeUInt32BE((Math.floor(nowUnixMs / 1_000) - EPOCH_S) >>> 0, 0);
  bytes.set(randomBytes(PAYLOAD_BYTES), 4);
  let rest = BigInt(`0x${bytes.toString('hex')}`);
  let text = '';
  while (text.length < LENGTH) {
    text = `${DIGITS[Number(rest % 62n)]}${text}`;
    rest /= 62n;
  }
  return text;
}
