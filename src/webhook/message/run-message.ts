import { RUN_STATUS } from '../../store/run-status.js';
import type { WebhookSubscription } from '../../store/webhook/webhook-subscription.js';
import type { OutgoingEvent } from '../event-sender.js';
import type { NodeTrouble, RunStory, StoryTeller } from './run-story.js';

/** A message for people, before it is put into a form. */
export interface RunMessage {
  /** One line: what became of which run. */
  readonly title: string;
  /** `neutral` where there is nothing to be glad or sorry of: it has begun, or was cancelled. */
  readonly mood: 'good' | 'bad' | 'neutral';
  /** Name and value. */
  readonly facts: readonly (readonly [string, string])[];
  readonly sections: readonly { readonly title: string; readonly lines: readonly string[] }[];
  readonly url: string | null;
}

/** What a subscription's people read of an event. */
export async function messageOf(
  subscription: Pick<WebhookSubscription, 'accountId' | 'name' | 'eventTypes'>,
  event: OutgoingEvent,
  stories: StoryTeller,
): Promise<RunMessage> {
  if (event.isTest) return testMessage(subscription);
  const { runId, statusMessage } = event.facts;
  return runMessage(event, await stories.tell(subscription.accountId, runId, statusMessage));
}

function testMessage({ name, eventTypes }: Pick<WebhookSubscription, 'name' | 'eventTypes'>): RunMessage {
  return {
    title: `Test message: what ${name} is subscribed to arrives here; no run has happened`,
    mood: 'neutral',
    facts: [['Events', eventTypes.join(', ')]],
    sections: [],
    url: null,
  };
}

/** Words of an event for people. */
export function runMessage(
  { eventType, facts }: Pick<OutgoingEvent, 'eventType' | 'facts'>,
  story: RunStory,
): RunMessage {
  const { status, startedUnixMs, finishedUnixMs } = facts;
  // The event may be sent, or sent again, long after the run failed: it says that the run began, and no more.
  const hasEnded = eventType !== 'job.run.started';
  const seconds = !hasEnded || finishedUnixMs === null ? null : Math.round((finishedUnixMs - startedUnixMs) / 1_000);
  return {
    title: `${facts.jobName} #${facts.runId} ${verdictOf(eventType, status)}`,
    mood: moodOf(status),
    facts: [
      ['Project', facts.projectName],
      ['Environment', facts.environmentName],
      ...(facts.reason === null ? [] : [['Reason', facts.reason] as const]),
      ...(seconds === null ? [] : [['Took', `${seconds} s`] as const]),
      ...(facts.missingArtifacts === undefined ? [] : [['Artifacts', missingText(facts.missingArtifacts)] as const]),
      ...(!hasEnded || story.statusMessage === null ? [] : [['Message', story.statusMessage] as const]),
    ],
    sections: hasEnded ? sectionsOf(story) : [],
    url: story.url,
  };
}

function sectionsOf(story: RunStory): RunMessage['sections'] {
  return [
    ...section('Errors', story.errors),
    ...linesSection(story.errors.length === 0 ? 'Errors' : 'Other errors', story.otherErrors),
    ...section('Failed tests', story.failedTests),
    ...section('Stale sources', story.staleSources),
    ...section('Other outcomes, in the words of the engine', story.otherOutcomes),
    ...(story.omittedCount > 0 ? [{ title: `and ${story.omittedCount} more`, lines: [] }] : []),
  ];
}

function missingText({ count, reason }: NonNullable<OutgoingEvent['facts']['missingArtifacts']>): string {
  return `${count} cannot be downloaded: ${reason}`;
}

function verdictOf(eventType: OutgoingEvent['eventType'], status: number): string {
  if (eventType === 'job.run.started') return 'started';
  if (eventType === 'job.run.errored') return 'errored';
  if (status === RUN_STATUS.success) return 'succeeded';
  return status === RUN_STATUS.cancelled ? 'was cancelled' : 'failed';
}

function moodOf(status: number): RunMessage['mood'] {
  if (status === RUN_STATUS.error) return 'bad';
  return status === RUN_STATUS.success ? 'good' : 'neutral';
}

function section(title: string, troubles: readonly NodeTrouble[]) {
  const lines = troubles.map(({ uniqueId, reason }) => (reason === '' ? uniqueId : `${uniqueId}: ${reason}`));
  return linesSection(title, lines);
}

function linesSection(title: string, lines: readonly string[]) {
  return lines.length === 0 ? [] : [{ title, lines }];
}
