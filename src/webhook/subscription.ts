import { RUN_STATUS, type RunStatus } from '../storage/state-tables.js';

/** What can be subscribed to, by the hosted platform's names. */
export const WEBHOOK_EVENT_TYPES = ['job.run.started', 'job.run.completed', 'job.run.errored'] as const;
export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number];

/** What a subscription is notified of beside the events of runs, because it or another one asks for it. */
export const NOTICE_TYPES = ['webhook.failing', 'webhook.archived', 'job.run.overdue', 'job.run.slow'] as const;
export type NoticeType = (typeof NOTICE_TYPES)[number];

/** Chats that take a message for people as JSON; `CHAT_MESSAGES` has the format of each. */
export const CHAT_KINDS = ['slack', 'teams', 'discord'] as const;
export type ChatKind = (typeof CHAT_KINDS)[number];

/** How an event is delivered: like the hosted platform does (`http`), as CloudEvents, as an alert, or as a message for people. */
export const WEBHOOK_KINDS = ['http', 'cloudevents', ...CHAT_KINDS, 'email', 'pagerduty'] as const;
export type WebhookKind = (typeof WEBHOOK_KINDS)[number];

/** Returns whether people read what is delivered: then a failed run gives one message, when it errors. */
export function isForPeople(kind: WebhookKind): boolean {
  return kind === 'email' || CHAT_KINDS.some((one) => one === kind);
}

/**
 * Returns whether an event closes an incident of PagerDuty. It is sent whatever else its subscription asks for, so that none stays
 * open; PagerDuty ignores it where there is no incident.
 */
export function closesIncident(
  kind: WebhookKind,
  eventType: WebhookEventType | NoticeType,
  status: RunStatus,
): boolean {
  return kind === 'pagerduty' && eventType === 'job.run.completed' && status === RUN_STATUS.success;
}

/** The longest template of a body, in characters. */
export const MAX_TEMPLATE_LENGTH = 20_000;

/** Returns the word for a status in filters. */
export function statusWord(status: RunStatus): 'success' | 'errored' | 'cancelled' {
  if (status === RUN_STATUS.success) return 'success';
  return status === RUN_STATUS.cancelled ? 'cancelled' : 'errored';
}

/** `archived`: switched off by itself, because nothing arrived any more. */
export type WebhookState = 'active' | 'inactive' | 'archived';

/** The outcome of a run compared with the previous one of the same job and environment. */
export const WEBHOOK_TRANSITIONS = ['first_failure', 'recovery'] as const;
export type WebhookTransition = (typeof WEBHOOK_TRANSITIONS)[number];

/** How a run ended. One that succeeded after a failed one of its job and environment has `recovered` as well. */
export const WEBHOOK_VERDICTS = ['success', 'warned', 'failed', 'canceled', 'recovered'] as const;
export type WebhookVerdict = (typeof WEBHOOK_VERDICTS)[number];

/** Restricts a subscription to some runs, besides its jobs; an empty list does not restrict. */
export interface WebhookFilter {
  /** Names. */
  readonly environments: readonly string[];
  /** Names. */
  readonly projects: readonly string[];
  /** Of errored and completed events. */
  readonly statuses: readonly RunStatus[];
  /** Any of them; then no started event matches. */
  readonly transitions: readonly WebhookTransition[];
  /** Any of them; of errored and completed events. */
  readonly verdicts: readonly WebhookVerdict[];
  /** Of nodes that failed, or warn. */
  readonly tags: readonly string[];
  /** Of nodes that failed, or warn; case does not matter. */
  readonly owners: readonly string[];
  /** Of nodes that failed, or warn. */
  readonly groups: readonly string[];
  /** Patterns with `*` for the names or unique ids of nodes that failed, or warn, or of the nodes that tests are of. */
  readonly models: readonly string[];
}

/** Returns whether a filter asks for what is known of nodes. */
export function asksForNodes({ tags, owners, groups, models }: WebhookFilter): boolean {
  return tags.length + owners.length + groups.length + models.length > 0;
}

/** A filter that leaves nothing out. */
export const NO_FILTER: WebhookFilter = {
  ...{ environments: [], projects: [], statuses: [], transitions: [], verdicts: [] },
  ...{ tags: [], owners: [], groups: [], models: [] },
};

/** The settings of a subscription. */
export interface WebhookSettings {
  readonly kind: WebhookKind;
  readonly name: string;
  readonly description: string;
  /** An http or https URL, or `mailto:` and addresses for mail, sealed, since it may hold credentials. */
  readonly sealedUrl: string;
  /** The parts of a subscription that everybody with access may see. */
  readonly shownUrl: string;
  /** At least one, in the order in which they were given. */
  readonly eventTypes: readonly WebhookEventType[];
  /** Empty for all jobs of the account. */
  readonly jobIds: readonly number[];
  readonly filter: WebhookFilter;
  /** Whether payloads have `run_bridge`, with counts and failed nodes. */
  readonly hasRunDetails: boolean;
  /** Whether each owner's failures are a separate message. */
  readonly isPerOwner: boolean;
  /** Whether the same failure is reported again only after a day. */
  readonly holdsRepeats: boolean;
  readonly state: WebhookState;
  /** Why it was archived; `null` in other states. */
  readonly archiveReason: string | null;
  /** Whether deliveries carry the hosted platform's signature. */
  readonly hasAuthorization: boolean;
  /** The header that carries it, in lower case; `authorization` where nothing else was asked for. */
  readonly signatureHeader: string;
  /** Whether they carry the headers of Standard Webhooks. */
  readonly hasStandardHeaders: boolean;
  /** Attempts a minute; `null` for no limit. */
  readonly maxPerMinute: number | null;
  /** The signing secret, sealed. */
  readonly sealedSecret: string;
  /** The previous secret, which still signs for a while; sealed. */
  readonly sealedOldSecret: string | null;
  readonly oldSecretUntilUnixMs: number | null;
  /** Custom headers as a JSON object, sealed, since they may contain secrets. */
  readonly sealedHeaders: string | null;
  /** What makes the bodies of deliveries in place of the hosted platform's, sealed; only of `http`. */
  readonly sealedTemplate: string | null;
  /** The integration key of a service of PagerDuty, sealed; only of `pagerduty`. */
  readonly sealedRoutingKey: string | null;
  /** The subscription that is notified when this one is failing or was archived; `null` for none. */
  readonly notifyOnArchive: string | null;
  /** A run of each of its jobs is expected in so many milliseconds, or `AS_USUAL`; `null` where none is. */
  readonly expectMs: number | null;
}

/** Statistics of deliveries. */
export interface WebhookStanding {
  readonly dispatchedUnixMs: number | null;
  /** The endpoint's latest; attempts without a status keep it; 0 for none ever. */
  readonly httpStatusCode: number;
  /** Why the latest attempt failed, in words; `null` where it did not. */
  readonly lastError: string | null;
  /** Failed attempts since the last success. */
  readonly failedCount: number;
  /** When the first of them failed. */
  readonly failingSinceUnixMs: number | null;
  /** Nothing is sent before; 0 for no pause. */
  readonly pausedUntilUnixMs: number;
}

/** Returns whether the latest delivery to an endpoint arrived. Nothing is known of one that nothing was sent to yet. */
export function isProven({ failedCount, dispatchedUnixMs }: WebhookStanding): boolean {
  return failedCount === 0 && dispatchedUnixMs !== null;
}

/** Nothing was sent yet. */
export const FRESH_STANDING: WebhookStanding = {
  dispatchedUnixMs: null,
  httpStatusCode: 0,
  lastError: null,
  failedCount: 0,
  failingSinceUnixMs: null,
  pausedUntilUnixMs: 0,
};

/** A webhook subscription. */
export interface WebhookSubscription extends WebhookSettings, WebhookStanding {
  /** `wsu_` and a KSUID. */
  readonly id: string;
  readonly accountId: number;
  /** From 1; one more with each new URL. The standing is that of the current URL. */
  readonly urlVersion: number;
  /** Where there is a rate cap, the next attempt may be made then. */
  readonly nextSlotUnixMs: number;
  readonly createdUnixMs: number;
  readonly updatedUnixMs: number;
}

/** Returns whether what is known of a run's nodes decides about an event. */
export function needsSelection(
  {
    kind,
    filter,
    isPerOwner,
    holdsRepeats,
    hasRunDetails,
    sealedTemplate,
  }: Pick<WebhookSubscription, 'kind' | 'filter' | 'isPerOwner' | 'holdsRepeats' | 'hasRunDetails' | 'sealedTemplate'>,
  {
    eventType,
    facts,
  }: {
    readonly eventType: WebhookEventType | NoticeType;
    readonly facts: {
      readonly status: RunStatus;
      readonly notice?: object;
      readonly selection?: object;
      readonly transition?: WebhookTransition;
    };
  },
): boolean {
  if (eventType === 'job.run.started' || facts.notice !== undefined || facts.selection !== undefined) return false;
  const { verdicts, transitions } = filter;
  const isPlain = (kind === 'http' || kind === 'cloudevents') && !hasRunDetails && sealedTemplate === null;
  const isRecoveryReported = !isPlain || transitions.length > 0 || verdicts.includes('recovered');
  if (facts.transition === 'recovery' && isRecoveryReported) return true;
  if (closesIncident(kind, eventType, facts.status)) return true;
  const isWarningAsked = verdicts.includes('success') !== verdicts.includes('warned');
  return asksForNodes(filter) || isPerOwner || holdsRepeats || (facts.status === RUN_STATUS.success && isWarningAsked);
}
