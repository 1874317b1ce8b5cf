import { RUN_STATUS } from '../storage/run-status.js';
import type { OutgoingEvent } from './event.js';
import type { NodeTrouble, RunDetails, RunDetailsReader } from './run-details.js';
import type { ChatKind, WebhookSubscription } from './subscription.js';

/** A message for people, before it is put into a form. */
export interface RunMessage {
  /** One line: the run and its outcome. */
  readonly title: string;
  /** `neutral` for a run that has started or was cancelled. */
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
  runDetails: Pick<RunDetailsReader, 'read'>,
): Promise<RunMessage> {
  if (event.isTest) return testMessage(subscription);
  const { runId, statusMessage } = event.facts;
  return runMessage(event, await runDetails.read(subscription.accountId, runId, statusMessage));
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
  details: RunDetails,
): RunMessage {
  const { status, startedUnixMs, finishedUnixMs } = facts;
  // The event may be sent or redelivered long after the run failed; it only reports the start.
  const hasEnded = eventType !== 'job.run.started';
  const seconds = !hasEnded || finishedUnixMs === null ? null : Math.round((finishedUnixMs - startedUnixMs) / 1_000);
  return {
    title: `${facts.jobName} #${facts.runId} ${verdictOf(eventType, status)}`,
    mood: moodOf(status),
    facts: [
      ['Project', facts.projectName],
      ['Environment', facts.environmentName],
      ...(facts.reason === null ? [] : [['Reason', facts.reason] as const]),
      ...(seconds === null ? [] : [['Duration', `${seconds} s`] as const]),
      ...(facts.missingArtifacts === undefined ? [] : [['Artifacts', missingText(facts.missingArtifacts)] as const]),
      ...(!hasEnded || details.statusMessage === null ? [] : [['Message', details.statusMessage] as const]),
    ],
    sections: hasEnded ? sectionsOf(details) : [],
    url: details.url,
  };
}

function sectionsOf(details: RunDetails): RunMessage['sections'] {
  return [
    ...section('Errors', details.errors),
    ...linesSection(details.errors.length === 0 ? 'Errors' : 'Other errors', details.otherErrors),
    ...section('Failed tests', details.failedTests),
    ...section('Stale sources', details.staleSources),
    ...section('Other outcomes, in the words of the engine', details.otherOutcomes),
    ...(details.omittedCount > 0 ? [{ title: `and ${details.omittedCount} more`, lines: [] }] : []),
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

/** Slack takes no longer text in one block, in characters. */
const MAX_TEXT_LENGTH = 3_000;

const CIRCLES = { good: ':large_green_circle:', bad: ':red_circle:', neutral: ':white_circle:' } as const;

/** A message as Slack's incoming webhooks take it (https://docs.slack.dev/reference/block-kit/blocks). */
export function slackMessage({ title, mood, facts, sections, url }: RunMessage) {
  const head = `${CIRCLES[mood]} *${escapedForSlack(title)}*`;
  const linked = url === null ? head : `${head}  <${url}|open>`;
  const texts = [
    linked,
    facts
      .map(([name, value]) => `${escapedForSlack(name)}: ${escapedForSlack(value)}`)
      .join('\n')
      .slice(0, MAX_TEXT_LENGTH),
    ...sections.flatMap(({ title: name, lines }) =>
      textsOf([`*${escapedForSlack(name)}*`, ...lines.map((line) => `• ${escapedForSlack(line)}`)]),
    ),
  ];
  return {
    text: escapedForSlack(title),
    blocks: texts.map((text) => ({ type: 'section', text: { type: 'mrkdwn', text } })),
  };
}

/** Puts lines into as few texts as hold them. */
function textsOf(lines: readonly string[]): readonly string[] {
  const texts: string[] = [];
  for (const whole of lines) {
    const line = whole.slice(0, MAX_TEXT_LENGTH);
    const last = texts.at(-1);
    if (last === undefined || last.length + 1 + line.length > MAX_TEXT_LENGTH) texts.push(line);
    else texts[texts.length - 1] = `${last}\n${line}`;
  }
  return texts;
}

/** The three characters that Slack gives a meaning. */
function escapedForSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

const COLORS = { good: 'Good', bad: 'Attention', neutral: 'Default' } as const;

/** A message as workflows of Teams take it: an Adaptive Card (https://adaptivecards.io/explorer/AdaptiveCard.html). */
export function teamsMessage({ title, mood, facts, sections, url }: RunMessage) {
  const text = (words: string, more: object = {}) => ({
    type: 'TextBlock',
    text: escapedForTeams(words),
    wrap: true,
    ...more,
  });
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body: [
            text(title, { weight: 'Bolder', size: 'Medium', color: COLORS[mood] }),
            { type: 'FactSet', facts: facts.map(([name, value]) => ({ title: name, value: escapedForTeams(value) })) },
            ...sections.flatMap(({ title: name, lines }) => [
              text(name, { weight: 'Bolder' }),
              ...lines.map((line) => text(`- ${line}`)),
            ]),
          ],
          ...(url !== null && { actions: [{ type: 'Action.OpenUrl', title: 'Open the run', url }] }),
        },
      },
    ],
  };
}

/** Text blocks read Markdown: names with underscores and brackets stay what they are. */
function escapedForTeams(text: string): string {
  return text.replaceAll(/[\\*_[\]`]/g, (character) => `\\${character}`);
}

/** A message in the format of each chat. */
export const CHAT_MESSAGES: Readonly<Record<ChatKind, (message: RunMessage) => object>> = {
  slack: slackMessage,
  teams: teamsMessage,
};

/** A message as plain mail. */
export function mailMessage({ title, facts, sections, url }: RunMessage): {
  readonly subject: string;
  readonly text: string;
} {
  const lines = [
    title,
    '',
    ...facts.map(([name, value]) => `${name}: ${value}`),
    ...sections.flatMap((one) => [
      '',
      `${one.title}${one.lines.length > 0 ? ':' : ''}`,
      ...one.lines.map((line) => `  ${line}`),
    ]),
    ...(url === null ? [] : ['', url]),
  ];
  // Line breaks in a subject would begin another header.
  return { subject: title.replaceAll(/\s+/g, ' ').slice(0, 200), text: `${lines.join('\n')}\n` };
}
