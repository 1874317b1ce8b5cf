import { counted, cut, lengthText, startOf } from '../core/text.js';
import { partialText } from '../run/measures/recovery.js';
import { locationText, readableLines, sourceLocation } from '../run/measures/troubles.js';
import { countsText } from '../run/words.js';
import { DEFAULT_NAME } from '../storage/scope-store.js';
import { RUN_STATUS } from '../storage/state-tables.js';
import { isRecovery, type OutgoingEvent, type RunFacts } from './event.js';
import { noticeFacts, noticeTitle } from './notices.js';
import type { DetailList, NodeTrouble, RunDetails, RunDetailsReader, SkippedNodes } from './run-details.js';
import type { ChatKind, WebhookSubscription } from './subscription.js';

/** A message for people, before it is put into a form. */
export interface RunMessage {
  /** One line: the run, its outcome, and of a failure its cause. */
  readonly title: string;
  /** `neutral` for a run that has started or was canceled. */
  readonly mood: MessageMood;
  /** Name and value. */
  readonly facts: readonly (readonly [string, string])[];
  readonly sections: readonly MessageSection[];
  readonly url: string | null;
}

export type MessageMood = 'good' | 'warning' | 'bad' | 'neutral';

/** Lines below a heading. */
export interface MessageSection {
  readonly title: string;
  readonly lines: readonly MessageLine[];
}

/** One thing of a list. */
export interface MessageLine {
  readonly text: string;
  /** Further lines about it, in their order. */
  readonly more: readonly string[];
}

/** Makes what a subscription's people read of an event. */
export async function messageOf(
  subscription: Pick<WebhookSubscription, 'accountId' | 'name' | 'eventTypes'>,
  event: OutgoingEvent,
  runDetails: Pick<RunDetailsReader, 'read'>,
): Promise<RunMessage> {
  if (event.isTest) return testMessage(subscription);
  const { notice } = event.facts;
  if (notice !== undefined) {
    const mood = notice.about === 'webhook' ? 'bad' : 'warning';
    return {
      title: noticeTitle(notice, event.facts),
      mood,
      facts: noticeFacts(notice, event.facts),
      sections: [],
      url: null,
    };
  }
  return runMessage(event, await detailsOf(subscription.accountId, event, runDetails));
}

/** Reads the details of the part of a run that an event is about. @param limit of each list; ten if left out */
export function detailsOf(
  accountId: number,
  { facts }: Pick<OutgoingEvent, 'facts'>,
  runDetails: Pick<RunDetailsReader, 'read'>,
  limit?: number,
): Promise<RunDetails> {
  const { runId, statusMessage, selection } = facts;
  const nodeIds = selection?.nodeIds;
  return runDetails.read(accountId, runId, statusMessage, {
    ...(nodeIds !== undefined && { nodeIds }),
    ...(limit !== undefined && { limit }),
  });
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

/** Puts an event into words for people. */
export function runMessage(
  { eventType, facts }: Pick<OutgoingEvent, 'eventType' | 'facts'>,
  details: RunDetails,
): RunMessage {
  const { startedUnixMs, finishedUnixMs } = facts;
  const outcome = outcomeOf({ eventType, facts }, details);
  // The event may be sent or redelivered long after the run failed; it only reports the start.
  const hasEnded = outcome !== 'started';
  const endedUnixMs = finishedUnixMs ?? facts.erroredUnixMs;
  const lengthMs = !hasEnded || endedUnixMs === null ? null : endedUnixMs - (details.startedUnixMs ?? startedUnixMs);
  const sections = hasEnded ? sectionsOf(details) : [];
  const status = hasEnded ? statusFact(details) : null;
  return {
    title: titleOf(facts, outcome, details),
    mood: MOODS[outcome],
    facts: [
      ['Run', `#${facts.runId}`],
      ['Project', facts.projectName],
      ['Environment', facts.environmentName],
      ...(facts.reason === null ? [] : [['Reason', facts.reason] as const]),
      ...(hasEnded ? selectionFacts(facts) : []),
      ...(outcome === 'succeeded' || outcome === 'warned' ? recoveredFact(facts) : []),
      ...(hasEnded ? ownersFact(facts, details) : []),
      ...(lengthMs === null ? [] : [['Duration', lengthText(lengthMs)] as const]),
      ...(hasEnded && details.since !== null ? [['Since', details.since] as const] : []),
      ...(hasEnded ? countsFact(details) : []),
      ...linesFact('Command', details.commands),
      ...(hasEnded ? linesFact('Run again', details.retryCommands) : []),
      ...(hasEnded && details.time !== '' ? [['Time', details.time] as const] : []),
      ...(facts.missingArtifacts === undefined ? [] : [['Artifacts', missingText(facts.missingArtifacts)] as const]),
      ...(status === null ? [] : [['Message', status] as const]),
    ],
    sections,
    url: details.url,
  };
}

/** Returns how much has recovered of what had failed before, where that is not all of it. */
function recoveredFact({ selection }: RunFacts): RunMessage['facts'] {
  const { recovered } = selection ?? {};
  if (recovered == null || recovered.count === recovered.ofCount) return [];
  return [['Recovered', partialText(recovered)]];
}

/** Returns who owns what failed or warns, where the message is not for one of them. */
function ownersFact({ selection }: RunFacts, { owners }: RunDetails): RunMessage['facts'] {
  return selection?.owner !== undefined || owners.length === 0 ? [] : [['Owner', owners.join(', ')]];
}

/** Command lines that a message has, and the longest of one, in characters. */
const MAX_COMMANDS = 3;
const MAX_COMMAND = 300;

function linesFact(name: string, lines: readonly string[]): RunMessage['facts'] {
  if (lines.length === 0) return [];
  const rest = lines.length > MAX_COMMANDS ? [`and ${lines.length - MAX_COMMANDS} more`] : [];
  return [[name, [...lines.slice(0, MAX_COMMANDS).map((line) => cut(line, MAX_COMMAND)), ...rest].join('; ')]];
}

/** Returns whose failures a message is about, and how many it leaves to others. */
function selectionFacts({ selection }: RunFacts): RunMessage['facts'] {
  const { owner, otherCount = 0 } = selection ?? {};
  return [
    ...(owner === undefined ? [] : [['Owner', owner ?? 'nobody'] as const]),
    ...(otherCount === 0 ? [] : [['Left out', `${counted(otherCount, 'other node')} that failed or warn`] as const]),
  ];
}

/** How a run stands in a message. A run that recovered succeeded after one that had failed. */
type Outcome = 'started' | 'failed' | 'canceled' | 'warned' | 'recovered' | 'succeeded';

const MOODS: Readonly<Record<Outcome, MessageMood>> = {
  started: 'neutral',
  failed: 'bad',
  canceled: 'neutral',
  warned: 'warning',
  recovered: 'good',
  succeeded: 'good',
};

function outcomeOf({ eventType, facts }: Pick<OutgoingEvent, 'eventType' | 'facts'>, details: RunDetails): Outcome {
  if (eventType === 'job.run.started') return 'started';
  if (facts.status === RUN_STATUS.cancelled) return 'canceled';
  if (facts.status !== RUN_STATUS.success) return 'failed';
  if (details.counts.warned > 0) return 'warned';
  return isRecovery(facts) ? 'recovered' : 'succeeded';
}

/** Maximum length of a cause in a title, in characters. */
const MAX_CAUSE_LENGTH = 160;

/** Returns a title such as `nightly · prod failed: model stg_orders: relation raw.orders does not exist (+3)` */
function titleOf(facts: RunFacts, outcome: Outcome, details: RunDetails): string {
  const run = facts.environmentName === DEFAULT_NAME ? facts.jobName : `${facts.jobName} · ${facts.environmentName}`;
  switch (outcome) {
    case 'started':
      return `${run} started`;
    case 'succeeded': {
      const { recovered } = facts.selection ?? {};
      if (recovered == null || recovered.count === 0) return `${run} succeeded`;
      return `${run} succeeded: ${partialText(recovered)}`;
    }
    case 'recovered':
      return `${run} succeeded again`;
    case 'canceled':
      return `${run} was canceled`;
    case 'warned': {
      const again = isRecovery(facts) ? ' again' : '';
      return `${run} succeeded${again} with ${withCause('warnings', warningCauses(details), details.counts.warned)}`;
    }
    case 'failed':
      return `${run} ${withCause(facts.isGoingOn ? 'is failing' : 'failed', failureCauses(details), failureCount(details))}`;
  }
}

function withCause(words: string, [first]: readonly string[], count: number): string {
  if (first === undefined) return words;
  const cause = cut(first, MAX_CAUSE_LENGTH);
  return `${words}: ${cause}${count > 1 ? ` (+${count - 1})` : ''}`;
}

/** Returns what a failed run failed of, the most telling first. */
function failureCauses(details: RunDetails): readonly string[] {
  return [
    ...details.errors.map(causeOf),
    ...details.failedTests.map(causeOf),
    ...details.staleSources.map(staleCause),
    ...details.otherErrors.map((text) => errorLines(text)[0] ?? ''),
    ...(details.statusMessage === null ? [] : [details.statusMessage.replace(/\s+/g, ' ')]),
  ].filter((cause) => cause !== '');
}

function failureCount({ errors, otherErrors, failedTests, staleSources, omitted }: RunDetails): number {
  const listed = errors.length + otherErrors.length + failedTests.length + staleSources.length;
  return listed + omitted.errors + omitted.otherErrors + omitted.failedTests + omitted.staleSources;
}

function warningCauses({ warnings }: RunDetails): readonly string[] {
  return warnings.map((node) => (node.uniqueId.startsWith('source.') ? staleCause(node) : causeOf(node)));
}

function causeOf({ label, reason }: NodeTrouble): string {
  const [first] = readableLines(reason);
  return first === undefined ? label : `${label}: ${first}`;
}

function staleCause({ label, reason }: NodeTrouble): string {
  return `${label} is stale${reason === '' ? '' : `: ${reason}`}`;
}

/** Further lines of an error that a message has. */
const MAX_MORE_LINES = 6;

/** Returns the lines of an error of no node, with its location in front. */
function errorLines(reason: string): readonly string[] {
  const [first = '', ...more] = readableLines(reason);
  const location = sourceLocation(reason);
  return [location === null ? first : `${location}: ${first}`, ...more];
}

function sectionsOf(details: RunDetails): readonly MessageSection[] {
  const { omitted } = details;
  const nodes = (title: string, troubles: readonly NodeTrouble[], list: DetailList) =>
    section(title, troubles.map(nodeLine), omitted[list]);
  return [
    ...nodes('Failed nodes', details.errors, 'errors'),
    ...section(
      details.errors.length === 0 ? 'Errors' : 'Other errors',
      details.otherErrors.map((text) => lineOf(errorLines(text))),
      omitted.otherErrors,
    ),
    ...nodes('Failed tests', details.failedTests, 'failedTests'),
    ...nodes('Stale sources', details.staleSources, 'staleSources'),
    ...skippedSection(details),
    ...warningsSection(details),
    ...nodes('Other outcomes, in the words of the engine', details.otherOutcomes, 'otherOutcomes'),
  ];
}

function section(title: string, lines: readonly MessageLine[], omittedCount: number): readonly MessageSection[] {
  if (lines.length === 0) return [];
  const rest = omittedCount > 0 ? [lineOf([`and ${omittedCount} more`])] : [];
  return [{ title: `${title} (${lines.length + omittedCount})`, lines: [...lines, ...rest] }];
}

function warningsSection({ warnings, omitted, loggedWarningCount }: RunDetails): readonly MessageSection[] {
  const [listed] = section('Warnings', warnings.map(nodeLine), omitted.warnings);
  if (loggedWarningCount === 0) return listed === undefined ? [] : [listed];
  const logged = `${counted(loggedWarningCount, 'warning')} in the engine's log`;
  if (listed === undefined) return [{ title: 'Warnings', lines: [lineOf([logged])] }];
  return [{ ...listed, lines: [...listed.lines, lineOf([`and ${logged}`])] }];
}

/** Returns a line such as `model orders (models/orders.sql:3): Binder Error: …`, and what else the error says. */
function nodeLine({ label, path, line, reason, since }: NodeTrouble): MessageLine {
  const reported = sourceLocation(reason);
  const defined = path === null ? null : locationText(path, line);
  const location = reported !== null && path !== null && reported.startsWith(path) ? reported : defined;
  const [first, ...more] = readableLines(reason);
  const shown = lineOf([
    `${label}${location === null ? '' : ` (${location})`}${first === undefined ? '' : `: ${first}`}`,
    ...more,
  ]);
  return since === null ? shown : { ...shown, more: [...shown.more, since] };
}

function lineOf([text = '', ...more]: readonly string[]): MessageLine {
  const rest = more.length > MAX_MORE_LINES ? [...more.slice(0, MAX_MORE_LINES), '…'] : more;
  return { text, more: rest };
}

function skippedSection({ skipped, skippedCount, omitted }: RunDetails): readonly MessageSection[] {
  if (skipped.length === 0) return [];
  const rest = omitted.skipped > 0 ? [lineOf([`and after ${omitted.skipped} more`])] : [];
  return [{ title: `Skipped (${skippedCount})`, lines: [...skipped.map(skippedLine), ...rest] }];
}

function skippedLine({ causeLabel, labels, count }: SkippedNodes): MessageLine {
  const rest = count - labels.length;
  const list = rest === 0 ? labels.join(', ') : `${labels.join(', ')} and ${rest} more`;
  return lineOf([`after ${causeLabel}: ${list}`]);
}

/** Returns why the run did not end well, where it says more than the lists. */
function statusFact(details: RunDetails): string | null {
  const { statusMessage } = details;
  if (statusMessage === null) return null;
  return failureCount(details) > 0 && GENERIC_STATUS.test(statusMessage) ? null : statusMessage;
}

const GENERIC_STATUS = /^(?:\d+ (?:nodes?|errors?)(?: failed)?|Executed with errors|error)$/;

/** Returns a fact such as `Nodes: 1 error, 3 skipped, 1 warned, 15 success, 1 no-op` */
function countsFact({ counts, noOpCount }: RunDetails): readonly (readonly [string, string])[] {
  const text = countsText(counts, noOpCount);
  return text === '' ? [] : [['Nodes', text]];
}

function missingText({ count, reason }: NonNullable<RunFacts['missingArtifacts']>): string {
  return `${count} cannot be downloaded: ${reason}`;
}

/** Slack takes no longer text in one block, in characters. */
const MAX_TEXT_LENGTH = 3_000;

const CIRCLES: Readonly<Record<MessageMood, string>> = {
  good: ':large_green_circle:',
  warning: ':large_yellow_circle:',
  bad: ':red_circle:',
  neutral: ':white_circle:',
};

/** Makes a message as Slack's incoming webhooks take it (https://docs.slack.dev/reference/block-kit/blocks). */
export function slackMessage({ title, mood, facts, sections, url }: RunMessage) {
  const head = `${CIRCLES[mood]} *${escapedForSlack(title)}*`;
  const linked = url === null ? head : `${head}  <${url}|open>`;
  const texts = [
    linked,
    startOf(
      facts.map(([name, value]) => `${escapedForSlack(name)}: ${escapedForSlack(value)}`).join('\n'),
      MAX_TEXT_LENGTH,
    ),
    ...sections.flatMap(({ title: name, lines }) =>
      textsOf([
        `*${escapedForSlack(name)}*`,
        ...lines.map(({ text, more }) =>
          escapedForSlack([`• ${text}`, ...more.map((line) => `    ${line}`)].join('\n')),
        ),
      ]),
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
    const line = startOf(whole, MAX_TEXT_LENGTH);
    const last = texts.at(-1);
    if (last === undefined || last.length + 1 + line.length > MAX_TEXT_LENGTH) texts.push(line);
    else texts[texts.length - 1] = `${last}\n${line}`;
  }
  return texts;
}

/** Escapes the three characters that Slack gives a meaning. */
function escapedForSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

const COLORS: Readonly<Record<MessageMood, string>> = {
  good: 'Good',
  warning: 'Warning',
  bad: 'Attention',
  neutral: 'Default',
};

/** Teams takes a message of 28 KB; so many bytes of it are blocks. */
const MAX_BLOCK_BYTES = 26 * 1024;

/** Makes a message as workflows of Teams take it: an Adaptive Card (https://adaptivecards.io/explorer/AdaptiveCard.html). */
export function teamsMessage({ title, mood, facts, sections, url }: RunMessage) {
  const text = (words: string, more: object = {}) => ({
    type: 'TextBlock',
    text: escapedForTeams(words),
    wrap: true,
    ...more,
  });
  const blocks = [
    text(title, { weight: 'Bolder', size: 'Medium', color: COLORS[mood] }),
    { type: 'FactSet', facts: facts.map(([name, value]) => ({ title: name, value: escapedForTeams(value) })) },
    ...sections.flatMap(({ title: name, lines }) => [
      text(name, { weight: 'Bolder' }),
      ...lines.flatMap((line) => [
        text(`- ${line.text}`),
        ...line.more.map((more) => text(more, { isSubtle: true, spacing: 'None' })),
      ]),
    ]),
  ];
  let byteCount = 0;
  const fitting = blocks.filter((block) => {
    byteCount += Buffer.byteLength(JSON.stringify(block));
    return byteCount <= MAX_BLOCK_BYTES;
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
          body: blocks.length > fitting.length ? [...fitting, text('…')] : blocks,
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

const EMBED_COLORS: Readonly<Record<MessageMood, number>> = {
  good: 0x2eb67d,
  warning: 0xecb22e,
  bad: 0xe01e5a,
  neutral: 0x868686,
};
/** Discord's limits, in characters; an embed may have 6,000 in all. */
const MAX_EMBED = { title: 256, description: 2_500, name: 256, value: 200, fields: 15 } as const;

/** Makes a message as Discord's webhooks take it (https://docs.discord.com/developers/resources/message#embed-object). */
export function discordMessage({ title, mood, facts, sections, url }: RunMessage) {
  const lines = sections.flatMap(({ title: name, lines: listed }) => [
    `**${escapedForDiscord(name)}**`,
    ...listed.flatMap(({ text, more }) => [
      `- ${escapedForDiscord(text)}`,
      ...more.map((one) => `  ${escapedForDiscord(one)}`),
    ]),
  ]);
  return {
    embeds: [
      {
        title: cut(escapedForDiscord(title), MAX_EMBED.title),
        description: cut(lines.join('\n'), MAX_EMBED.description),
        color: EMBED_COLORS[mood],
        ...(url !== null && { url }),
        fields: facts.slice(0, MAX_EMBED.fields).map(([name, value]) => ({
          name: cut(escapedForDiscord(name), MAX_EMBED.name),
          value: cut(escapedForDiscord(value), MAX_EMBED.value),
          inline: value.length < 40,
        })),
      },
    ],
    // No name in an error calls anybody.
    allowed_mentions: { parse: [] },
  };
}

/** Discord reads Markdown, and names of people, channels and times in angle brackets. */
function escapedForDiscord(text: string): string {
  return text.replaceAll(/[\\*_~`|<>[\]#]/g, (character) => `\\${character}`);
}

/** A message in the format of each chat. */
export const CHAT_MESSAGES: Readonly<Record<ChatKind, (message: RunMessage) => object>> = {
  slack: slackMessage,
  teams: teamsMessage,
  discord: discordMessage,
};

/** Returns what an event does to the incident of its job; `null` for nothing. A test resolves an incident that there is not. */
export function pagerDutyAction({
  facts,
  isTest,
}: Pick<OutgoingEvent, 'facts' | 'isTest'>): 'trigger' | 'resolve' | null {
  if (isTest) return 'resolve';
  if (facts.notice !== undefined) return 'trigger';
  if (facts.status === RUN_STATUS.success) return 'resolve';
  return facts.status === RUN_STATUS.error ? 'trigger' : null;
}

/**
 * Makes an event as PagerDuty's Events API v2 takes it, without the routing key
 * (https://developer.pagerduty.com/docs/send-alert-event). A job has one incident in each environment: the failure of
 * one is not resolved by a success in another.
 */
export function pagerDutyAlert(
  { accountId }: Pick<WebhookSubscription, 'accountId'>,
  event: OutgoingEvent,
  { title, facts, sections, url }: RunMessage,
) {
  const { jobId, jobName, environmentId, environmentName, projectName, finishedUnixMs, erroredUnixMs } = event.facts;
  const details = [
    ...facts,
    ...sections.map(({ title: name, lines }) => [
      name,
      lines.map(({ text, more }) => [text, ...more].join('\n')).join('\n'),
    ]),
  ];
  const { notice } = event.facts;
  const ofRun = `job:${jobId}:environment:${environmentId}`;
  const job = event.isTest ? 'test' : notice?.about === 'webhook' ? `webhook:${notice.webhookId}` : ofRun;
  return {
    event_action: pagerDutyAction(event),
    dedup_key: `run-bridge:account:${accountId}:${job}`,
    client: 'run-bridge',
    ...(url !== null && { client_url: url, links: [{ href: url, text: 'Open the run' }] }),
    payload: {
      summary: cut(title.replaceAll(/\s+/g, ' '), 1_024),
      source: environmentName || 'run-bridge',
      severity: 'error',
      timestamp: new Date(erroredUnixMs ?? finishedUnixMs ?? event.createdUnixMs).toISOString(),
      component: jobName,
      group: projectName,
      class: event.eventType,
      custom_details: Object.fromEntries(details),
    },
  };
}

/** Makes a message as plain mail. */
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
      `${one.title}:`,
      ...one.lines.flatMap((line) => [`  - ${line.text}`, ...line.more.map((more) => `      ${more}`)]),
    ]),
    ...(url === null ? [] : ['', url]),
  ];
  // Line breaks in a subject would begin another header.
  return { subject: startOf(title.replaceAll(/\s+/g, ' '), 200), text: `${lines.join('\n')}\n` };
}
