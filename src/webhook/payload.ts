import { RUN_STATUS, type RunStatus } from '../store/run-status.js';
import type { WebhookSubscription } from '../store/webhook/webhook-subscription.js';
import type { OutgoingEvent } from './event-sender.js';
import type { StoryTeller } from './message/run-story.js';

/** The platform's words for statuses in webhooks, which says Errored where its API says Error. */
const STATUS_WORDS: Readonly<Record<RunStatus, string>> = {
  [RUN_STATUS.queued]: 'Queued',
  [RUN_STATUS.starting]: 'Starting',
  [RUN_STATUS.running]: 'Running',
  [RUN_STATUS.success]: 'Success',
  [RUN_STATUS.error]: 'Errored',
  [RUN_STATUS.cancelled]: 'Cancelled',
};
/** What started a run of which nobody said so. */
const UNKNOWN_REASON = 'Started outside of the platform';

/** What of a subscription makes the payload. */
export type PayloadSubscription = Pick<WebhookSubscription, 'id' | 'accountId' | 'name'>;

/** The JSON body of a delivery, its keys in the order of the hosted platform's. */
export async function payloadOf(
  subscription: PayloadSubscription,
  event: OutgoingEvent,
  stories: Pick<StoryTeller, 'statusMessage'>,
) {
  const { facts } = event;
  const { statusMessage } = facts;
  return {
    accountId: subscription.accountId,
    eventId: event.id,
    timestamp: exactTime(event.createdUnixMs),
    eventType: event.eventType,
    webhookId: subscription.id,
    webhookName: subscription.name,
    ...(event.isTest && { test: true }),
    data: {
      jobId: String(facts.jobId),
      jobName: facts.jobName,
      runId: String(facts.runId),
      environmentId: String(facts.environmentId),
      environmentName: facts.environmentName,
      dbtVersion: facts.engineVersion,
      toolVersion: facts.engineVersion,
      projectName: facts.projectName,
      projectId: String(facts.projectId),
      runStatus: STATUS_WORDS[facts.status],
      runStatusCode: facts.status,
      runStatusMessage:
        statusMessage === null
          ? 'None'
          : await stories.statusMessage(subscription.accountId, facts.runId, statusMessage),
      runReason: facts.reason ?? UNKNOWN_REASON,
      runStartedAt: wholeSeconds(facts.startedUnixMs),
      ...(facts.finishedUnixMs !== null && { runFinishedAt: wholeSeconds(facts.finishedUnixMs) }),
      ...(facts.missingArtifacts !== undefined && { missingArtifacts: facts.missingArtifacts }),
      ...(facts.erroredUnixMs !== null && { runErroredAt: wholeSeconds(facts.erroredUnixMs) }),
    },
  };
}

/** `2023-05-04T09:39:44.49Z`: zeros at the end are cut, but for one digit. */
function exactTime(unixMs: number): string {
  return new Date(unixMs).toISOString().replace(/(\.\d)(\d*?)0*Z$/, '$1$2Z');
}

/** `2023-05-04T09:39:44Z` */
function wholeSeconds(unixMs: number): string {
  return new Date(unixMs).toISOString().replace(/\.\d+Z$/, 'Z');
}
