import type { Recovery } from '../run/measures/recovery.js';
import type { CatalogRun } from '../storage/run-catalog.js';
import type { RunStatus } from '../storage/state-tables.js';
import type { NoticeType, WebhookEventType, WebhookSubscription, WebhookTransition } from './subscription.js';

/**
 * Whether an event is still to be delivered, was, was not in all attempts (`failed`), or was never tried because its
 * subscription was not active (`skipped`), or because its filters leave the run out once it is known (`filtered`).
 */
export const WEBHOOK_EVENT_STATES = ['pending', 'delivered', 'failed', 'skipped', 'filtered'] as const;
export type WebhookEventState = (typeof WEBHOOK_EVENT_STATES)[number];

/** An event for one subscription. */
export interface WebhookEvent {
  /** `wev_` and a KSUID; the same over all attempts. */
  readonly id: string;
  readonly subscriptionId: string;
  readonly eventType: WebhookEventType | NoticeType;
  readonly facts: RunFacts;
  readonly createdUnixMs: number;
  readonly state: WebhookEventState;
  /** Why it is not sent, in words; `null` unless it is `filtered`. */
  readonly filteredReason: string | null;
  /** Attempts since it was made, or last replayed. */
  readonly roundCount: number;
  /** All attempts. */
  readonly attemptCount: number;
  /** When the next attempt is due. */
  readonly dueUnixMs: number;
  /** Until then it is claimed; it differs from one claim to the next. */
  readonly leaseUntilUnixMs: number;
  /** Of the last attempt; `null` where none was answered. */
  readonly httpStatusCode: number | null;
}

/** An event as it is sent: one of the outbox, or a test. */
export interface OutgoingEvent extends Pick<WebhookEvent, 'id' | 'eventType' | 'facts' | 'createdUnixMs'> {
  /** A user tests the subscription; no run has happened. Events of the outbox do not have it. */
  readonly isTest?: true;
  /** What the attempt before has sent: it is sent again as it was. Left out in a first attempt, also after a replay. */
  readonly sentBefore?: SentRequest;
}

/** What an attempt has sent, as its log has it. */
export interface SentRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** One attempt to deliver an event. */
export interface WebhookAttempt {
  readonly eventId: string;
  readonly subscriptionId: string;
  /** Position among the event's attempts, from 1. */
  readonly attemptIndex: number;
  readonly startedUnixMs: number;
  readonly durationMs: number;
  /** `null` where nothing was answered. */
  readonly httpStatusCode: number | null;
  /** Why it failed, in words; `null` where it did not. */
  readonly error: string | null;
  /** Values that may be secret are masked. */
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly requestBody: string;
  readonly responseHeaders: Readonly<Record<string, string>>;
  /** The first 4 KiB. */
  readonly responseBody: string;
  /**
   * Why the reused connection of the first try ended, if the request was repeated on a new one; `null` if it
   * was sent once.
   */
  readonly resentAfter: string | null;
}

/** The outcome of an attempt, and the next state of its event. */
export interface AttemptResult {
  readonly event: WebhookEvent;
  /** Of the URL that it was sent to. */
  readonly urlVersion: number;
  readonly attempt: Omit<WebhookAttempt, 'eventId' | 'subscriptionId' | 'attemptIndex'>;
  readonly next: { readonly state: 'delivered' | 'failed' } | { readonly state: 'pending'; readonly dueUnixMs: number };
  /** The endpoint wants nothing more, ever. */
  readonly isGone: boolean;
}

/** A subscription that was archived, and why. */
export type ArchivedSubscription = Pick<WebhookSubscription, 'id' | 'name' | 'accountId'> & {
  readonly reason: string;
  /** Events that waited for it and are not delivered. */
  readonly skippedCount: number;
};

/** The state of a run when the event was created. Times are Unix milliseconds. */
export interface RunFacts {
  readonly jobId: number;
  readonly jobName: string;
  readonly runId: number;
  readonly environmentId: number;
  readonly environmentName: string;
  readonly projectId: number;
  readonly projectName: string;
  /** Empty if the telemetry does not contain it. */
  readonly engineVersion: string;
  readonly status: RunStatus;
  /** Why it did not end well. */
  readonly statusMessage: string | null;
  /** The trigger of the run as text; `null` if unknown. */
  readonly reason: string | null;
  /** When its first command was started; of a run without one, when the run was made. */
  readonly startedUnixMs: number;
  /** Only in events of ended runs. */
  readonly finishedUnixMs: number | null;
  /** Expected artifacts that never arrived; left out if all of them can be downloaded. */
  readonly missingArtifacts?: MissingArtifactFacts;
  /**
   * How it differs from the job's run before it in its environment; left out where it does not, and in `job.run.started`. Whether
   * a `recovery` is one, `isRecovery` says once its nodes are known.
   */
  readonly transition?: WebhookTransition;
  /** Which part of the run the event is about; left out until that is decided, which is before its first attempt, if at all. */
  readonly selection?: EventSelection;
  /** Only in notices: what it is about. All of what belongs to a run is empty, or 0, where that is none. */
  readonly notice?: Notice;
  /** Only in `job.run.errored`: the time when the first failed command ended. */
  readonly erroredUnixMs: number | null;
  /** Only in a `job.run.errored` that is made of nodes that have failed, while their command goes on. */
  readonly isGoingOn?: true;
}

/** Returns what the events of a run have in common. */
export function commonFactsOf({ job, environment, project, ...run }: CatalogRun) {
  return {
    ...{ jobId: job.id, jobName: job.name, runId: run.id },
    ...{ environmentId: environment.id, environmentName: environment.name },
    ...{ projectId: project.id, projectName: project.name },
    ...{ engineVersion: run.engineVersion ?? '', reason: run.reason },
  } satisfies Partial<RunFacts>;
}

/** The facts of an event that no run belongs to, without its times and status. */
export const NO_RUN = {
  ...{ jobId: 0, jobName: '', runId: 0, environmentId: 0, environmentName: '', projectId: 0, projectName: '' },
  ...{ engineVersion: '', statusMessage: null, reason: null, finishedUnixMs: null, erroredUnixMs: null },
} as const;

/** Which part of a run an event is about. */
export interface EventSelection {
  /** Whose failures; left out if owners are not distinguished. `null`: of nodes without an owner. */
  readonly owner?: string | null;
  /** The failed and warned nodes; left out for all of them. At most 1,000. */
  readonly nodeIds?: readonly string[];
  /** Other failures of the run, which the event is not about. */
  readonly otherCount?: number;
  /** The same for the same failure; left out where nothing failed. */
  readonly failureKey?: string;
  /** How much of what had failed before has recovered with the run; `null` where nothing had, left out where it is not known. */
  readonly recovered?: Recovery | null;
}

/** Earlier runs that are looked at for failures that a run may have ended. */
export const MAX_RUNS_BEFORE = 50;

/** Returns whether a run is a recovery: it succeeded after one that failed, and with it all that had failed. */
export function isRecovery({ transition, selection }: Pick<RunFacts, 'transition' | 'selection'>): boolean {
  if (transition !== 'recovery') return false;
  const recovered = selection?.recovered;
  return recovered === undefined || (recovered !== null && recovered.count === recovered.ofCount);
}

/** What a notice is about, as payloads have it. Times are RFC 3339. */
export type Notice =
  | {
      readonly about: 'webhook';
      readonly webhookId: string;
      readonly webhookName: string;
      /** Of the way to archiving. */
      readonly percent: number;
      readonly failedCount: number;
      readonly failingSince: string | null;
      readonly reason: string;
    }
  | {
      readonly about: 'overdue';
      readonly expectedEverySeconds: number;
      /** The median time between its last starts, if it is expected by that. */
      readonly usuallyEverySeconds?: number;
      readonly lastStartedAt: string | null;
    }
  | {
      readonly about: 'slow';
      readonly usualSeconds: number;
      /** How long it has been running, or took. */
      readonly runningSeconds: number;
      /** Left out while it goes on. */
      readonly endedAt?: string;
      /** The node that took most more of the run than usual; left out where no node is the cause. */
      readonly node?: SlowNode;
    };

/** What of a run fell to a node, and usually does. */
export interface SlowNode {
  readonly uniqueId: string;
  /** `model orders` */
  readonly label: string;
  readonly seconds: number;
  readonly usualSeconds: number;
}

/** Count of missing artifacts and the reason. */
export interface MissingArtifactFacts {
  readonly count: number;
  /** The first of them. */
  readonly paths: readonly string[];
  /** Why, in words. */
  readonly reason: string;
}
