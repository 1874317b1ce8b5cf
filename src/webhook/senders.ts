import { type Clock, parseRetryAfterMs, whenAborted } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import { startOf } from '../core/text.js';
import { platformStatusWord, RUN_STATUS } from '../storage/state-tables.js';
import { isRecovery, type OutgoingEvent, type WebhookAttempt } from './event.js';
import type { HttpOutcome, WebhookHttp } from './http.js';
import {
  CHAT_MESSAGES,
  detailsOf,
  mailMessage,
  messageOf,
  pagerDutyAction,
  pagerDutyAlert,
  type RunMessage,
} from './messages.js';
import { noticeTitle } from './notices.js';
import type { RunDetails, RunDetailsReader } from './run-details.js';
import {
  openSecrets,
  platformSignature,
  type SecretBox,
  type SubscriptionSecrets,
  standardHeaders,
} from './secrets.js';
import type { ChatKind, WebhookKind, WebhookSubscription, WebhookVerdict } from './subscription.js';

/** Header of every test, whatever the type of the subscription. */
export const TEST_HEADER = { 'webhook-test': 'true' } as const;

/** The result of one attempt to deliver an event, with what the log keeps of it. */
export interface Sent
  extends Omit<WebhookAttempt, 'eventId' | 'subscriptionId' | 'attemptIndex' | 'startedUnixMs' | 'durationMs'> {
  readonly isDelivered: boolean;
  /** The endpoint wants nothing more, ever. */
  readonly isGone: boolean;
  /** What it asked to wait, in milliseconds; `null` where it did not. */
  readonly retryAfterMs: number | null;
}

/** Delivers events in one way. */
export interface EventSender {
  /** Makes one attempt; never rejects for what the other side does. @param signal ends it early */
  send(subscription: WebhookSubscription, event: OutgoingEvent, signal: AbortSignal): Promise<Sent>;
}

/** The sender of a type of subscription. */
export type SenderOf = (kind: WebhookKind) => EventSender;

const NOTHING_SENT: Sent = {
  ...{ isDelivered: false, isGone: false, retryAfterMs: null, httpStatusCode: null, error: null },
  ...{ requestHeaders: {}, requestBody: '', responseHeaders: {}, responseBody: '', resentAfter: null },
};

/** Returns the result of an attempt that could not even be made. */
export function notSent(error: unknown): Sent {
  return { ...NOTHING_SENT, error: reasonOf(error) };
}

/**
 * Makes one attempt, in the way of the subscription; never rejects. What cannot even be attempted (a message that cannot be
 * made, a secret that cannot be opened) is a failure like others. @param signal ends it at once, whatever it waits for
 */
export async function sendEvent(
  senderOf: SenderOf,
  subscription: WebhookSubscription,
  event: OutgoingEvent,
  signal: AbortSignal,
): Promise<Sent> {
  try {
    return await Promise.race([
      senderOf(subscription.kind).send(subscription, event, signal),
      whenAborted(signal).then(() => Promise.reject(new Error('the attempt took too long and was given up'))),
    ]);
  } catch (error) {
    return notSent(error);
  }
}

/** What a `PlatformSender` works with. */
export interface PlatformSenderDeps {
  readonly http: Pick<WebhookHttp, 'post'>;
  readonly openBox: () => Promise<SecretBox>;
  readonly clock: Clock;
  readonly runDetails: Pick<RunDetailsReader, 'statusMessage' | 'read'>;
  /** The program's version. */
  readonly version: string;
}

/** Stands in the log for values of custom headers. */
const MASK = '***';

/**
 * Posts events as the hosted platform does, signed in its way and in that of Standard Webhooks; as CloudEvents, or with a body
 * of its template, where it asks for that.
 */
export class PlatformSender implements EventSender {
  constructor(private readonly deps: PlatformSenderDeps) {}

  async send(subscription: WebhookSubscription, event: OutgoingEvent, signal: AbortSignal): Promise<Sent> {
    const { http, clock, runDetails, version } = this.deps;
    const nowUnixMs = clock.nowUnixMs();
    const secrets = openSecrets(subscription, await this.deps.openBox(), nowUnixMs);
    const text = event.sentBefore?.body ?? (await bodyOf(subscription, event, secrets, runDetails));
    const body = Buffer.from(text);
    const timestampS = Math.floor(nowUnixMs / 1_000);
    const signed = {
      'content-type': contentTypeOf(subscription, secrets),
      'user-agent': `run-bridge/${version}`,
      ...(event.isTest && TEST_HEADER),
      ...(subscription.hasStandardHeaders && standardHeaders(event.id, timestampS, body, secrets.signing)),
      ...(subscription.hasAuthorization && {
        [subscription.signatureHeader]: platformSignature(secrets.authorizing, body),
      }),
    };
    const custom = lowerCased(secrets.headers);
    const outcome = await http.post(new URL(secrets.clientUrl), { ...custom, ...signed }, body, signal);
    const masked = Object.fromEntries(Object.keys(custom).map((name) => [name, MASK]));
    const request = { requestHeaders: { ...masked, ...signed }, requestBody: text };
    return sentOf(outcome, request, clock.nowUnixMs());
  }
}

/** Makes the body of a delivery over HTTP. @throws BodyTemplateError */
export async function bodyOf(
  subscription: PayloadSubscription & Pick<WebhookSubscription, 'kind' | 'eventTypes'>,
  event: OutgoingEvent,
  secrets: Pick<SubscriptionSecrets, 'bodyTemplate' | 'headers'>,
  runDetails: PlatformSenderDeps['runDetails'],
): Promise<string> {
  const payload = await payloadOf(subscription, event, runDetails);
  if (subscription.kind === 'cloudevents') return JSON.stringify(cloudEventOf(payload));
  const { bodyTemplate } = secrets;
  if (bodyTemplate === null) return JSON.stringify(payload);
  // The message takes reading all that is known of a run.
  const message = /\bmessage\b/.test(bodyTemplate) && (await messageOf(subscription, event, runDetails));
  const { renderBody } = await import('./body-template.js');
  const isJson = contentTypeOf(subscription, secrets).includes('json');
  return renderBody(bodyTemplate, { ...payload, ...(message && { message: templateMessage(message) }) }, { isJson });
}

/** Returns what a template sees of a message for people. */
export function templateMessage(message: RunMessage) {
  return { title: message.title, text: mailMessage(message).text, url: message.url };
}

/** Of a body of its own it may be any. */
export function contentTypeOf(
  { kind }: Pick<WebhookSubscription, 'kind'>,
  { bodyTemplate, headers }: Pick<SubscriptionSecrets, 'bodyTemplate' | 'headers'>,
): string {
  if (kind === 'cloudevents') return 'application/cloudevents+json; charset=utf-8';
  const custom = bodyTemplate === null ? undefined : lowerCased(headers)['content-type'];
  return custom ?? 'application/json';
}

function lowerCased(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/**
 * Turns a payload into an event of CloudEvents 1.0, in structured mode (https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md).
 * Source and id together are unique; names of extensions have no capitals.
 */
function cloudEventOf({ accountId, eventId, timestamp, eventType, webhookId, webhookName, data, ...rest }: Payload) {
  return {
    specversion: '1.0',
    id: eventId,
    source: `/run-bridge/accounts/${accountId}`,
    type: eventType,
    subject: `runs/${data.runId}`,
    time: timestamp,
    datacontenttype: 'application/json',
    accountid: String(accountId),
    webhookid: webhookId,
    webhookname: webhookName,
    ...(rest.test && { webhooktest: true }),
    // Attributes of extensions are plain values, so what has parts stands in the data.
    data: rest.run_bridge === undefined ? data : { ...data, run_bridge: rest.run_bridge },
  };
}

type Payload = Awaited<ReturnType<typeof payloadOf>>;

/** Reason of a run that has none. */
const UNKNOWN_REASON = 'Started outside of the platform';

/** What of a subscription makes the payload. */
export type PayloadSubscription = Pick<WebhookSubscription, 'id' | 'accountId' | 'name' | 'hasRunDetails'>;

/** Makes the JSON body of a delivery, its keys in the order of the hosted platform's. */
export async function payloadOf(
  subscription: PayloadSubscription,
  event: OutgoingEvent,
  runDetails: Pick<RunDetailsReader, 'statusMessage' | 'read'>,
) {
  const { facts } = event;
  const { statusMessage } = facts;
  return {
    accountId: subscription.accountId,
    eventId: event.id,
    // Always with three digits of a second: readers of other languages are strict about their number.
    timestamp: new Date(event.createdUnixMs).toISOString(),
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
      // Where the platform's API says Error.
      runStatus: facts.status === RUN_STATUS.error ? 'Errored' : platformStatusWord(facts.status),
      runStatusCode: facts.status,
      runStatusMessage:
        statusMessage === null
          ? 'None'
          : await runDetails.statusMessage(subscription.accountId, facts.runId, statusMessage),
      runReason: facts.reason ?? UNKNOWN_REASON,
      runStartedAt: wholeSeconds(facts.startedUnixMs),
      ...(facts.finishedUnixMs !== null && { runFinishedAt: wholeSeconds(facts.finishedUnixMs) }),
      ...(facts.missingArtifacts !== undefined && { missingArtifacts: facts.missingArtifacts }),
      ...(facts.notice !== undefined && { notice: { ...facts.notice, title: noticeTitle(facts.notice, facts) } }),
      ...(facts.erroredUnixMs !== null && { runErroredAt: wholeSeconds(facts.erroredUnixMs) }),
    },
    ...(subscription.hasRunDetails &&
      event.isTest !== true &&
      event.facts.notice === undefined &&
      event.eventType !== 'job.run.started' && { run_bridge: await runDetailsOf(subscription, event, runDetails) }),
  };
}

/** Failed nodes in a payload. */
const MAX_FAILED_NODES = 100;

/** Reads what the bridge knows of a run beside the hosted platform's payload. */
async function runDetailsOf(
  { accountId }: PayloadSubscription,
  event: OutgoingEvent,
  runDetails: Pick<RunDetailsReader, 'read'>,
) {
  const details = await detailsOf(accountId, event, runDetails, MAX_FAILED_NODES);
  const { errors, otherErrors, failedTests, staleSources, omitted } = details;
  const failed = [...errors, ...failedTests, ...staleSources];
  return {
    verdict: payloadVerdict(event, details),
    recovered: isRecovery(event.facts),
    recovered_count: event.facts.selection?.recovered?.count ?? null,
    failed_before_count: event.facts.selection?.recovered?.ofCount ?? null,
    counts: details.counts,
    failed_nodes: failed.slice(0, MAX_FAILED_NODES).map(({ uniqueId, verdict, path, line, group, reason }) => ({
      ...{ unique_id: uniqueId, verdict, path, line, group },
      message: reason === '' ? null : reason,
    })),
    errors: otherErrors.map((message) => ({ message })),
    omitted_error_count: omitted.otherErrors,
    omitted_failed_node_count:
      Math.max(0, failed.length - MAX_FAILED_NODES) + omitted.errors + omitted.failedTests + omitted.staleSources,
  };
}

function payloadVerdict({ facts }: OutgoingEvent, { counts }: RunDetails): WebhookVerdict {
  if (facts.status === RUN_STATUS.cancelled) return 'canceled';
  if (facts.status !== RUN_STATUS.success) return 'failed';
  return counts.warned > 0 ? 'warned' : 'success';
}

/** Returns a time such as `2023-05-04T09:39:44Z`. */
function wholeSeconds(unixMs: number): string {
  return new Date(unixMs).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** What a `ChatSender` works with. */
export interface ChatSenderDeps {
  readonly http: Pick<WebhookHttp, 'post'>;
  readonly runDetails: Pick<RunDetailsReader, 'read'>;
  readonly openBox: () => Promise<SecretBox>;
  readonly clock: Clock;
}

/** Posts events as messages to a chat, which authenticates senders by the URL alone. */
class ChatSender implements EventSender {
  constructor(
    private readonly kind: ChatKind,
    private readonly deps: ChatSenderDeps,
  ) {}

  async send(subscription: WebhookSubscription, event: OutgoingEvent, signal: AbortSignal): Promise<Sent> {
    const { runDetails, clock } = this.deps;
    const text =
      event.sentBefore?.body ??
      JSON.stringify(CHAT_MESSAGES[this.kind](await messageOf(subscription, event, runDetails)));
    const secrets = openSecrets(subscription, await this.deps.openBox(), clock.nowUnixMs());
    return postMessage(this.deps, secrets, event, { body: text, logged: text }, signal);
  }
}

/** Posts a message as JSON, with the subscription's headers. @param message its body, and what the log keeps of it */
async function postMessage(
  { http, clock }: ChatSenderDeps,
  { clientUrl, headers }: Pick<SubscriptionSecrets, 'clientUrl' | 'headers'>,
  { isTest }: OutgoingEvent,
  { body, logged }: { readonly body: string; readonly logged: string },
  signal: AbortSignal,
): Promise<Sent> {
  const requestHeaders = { 'content-type': 'application/json', ...(isTest && TEST_HEADER) };
  const outcome = await http.post(new URL(clientUrl), { ...headers, ...requestHeaders }, Buffer.from(body), signal);
  return sentOf(outcome, { requestHeaders, requestBody: logged }, clock.nowUnixMs());
}

const GONE = 410;

/** Returns what an HTTP answer means for a delivery: 2xx is success, anything else is not. */
export function sentOf(
  { status, headers, body, error, resentAfter }: HttpOutcome,
  request: Pick<Sent, 'requestHeaders' | 'requestBody'>,
  nowUnixMs: number,
): Sent {
  const isDelivered = status !== null && status >= 200 && status < 300;
  return {
    isDelivered,
    isGone: status === GONE,
    retryAfterMs: isDelivered ? null : parseRetryAfterMs(headers['retry-after'], nowUnixMs),
    httpStatusCode: status,
    error: isDelivered ? null : (error ?? answerWords(status ?? 0)),
    ...request,
    responseHeaders: headers,
    responseBody: body,
    resentAfter,
  };
}

function answerWords(status: number): string {
  if (status === 101) return 'the endpoint answered 101: it wants to speak another protocol, which deliveries do not';
  if (status >= 300 && status < 400) return `the endpoint answered ${status}: redirects are not followed`;
  return status === GONE ? 'the endpoint answered 410: it wants nothing more' : `the endpoint answered ${status}`;
}

/** Triggers and resolves incidents of PagerDuty, one for each job and environment. */
class PagerDutySender implements EventSender {
  constructor(private readonly deps: ChatSenderDeps) {}

  async send(subscription: WebhookSubscription, event: OutgoingEvent, signal: AbortSignal): Promise<Sent> {
    const { runDetails, clock, openBox } = this.deps;
    const secrets = openSecrets(subscription, await openBox(), clock.nowUnixMs());
    const { routingKey } = secrets;
    if (routingKey === null) throw new Error('there is no routing_key: give that of the service of PagerDuty');
    if (pagerDutyAction(event) === null) {
      // A run that was canceled, or has only started, says nothing of whether its job is well.
      return {
        ...NOTHING_SENT,
        isDelivered: true,
        responseBody: 'nothing was sent: the run neither failed nor succeeded',
      };
    }
    const logged =
      event.sentBefore?.body ??
      JSON.stringify({
        routing_key: MASK,
        ...pagerDutyAlert(subscription, event, await messageOf(subscription, event, runDetails)),
      });
    const body = JSON.stringify({ ...JSON.parse(logged), routing_key: routingKey });
    return postMessage(this.deps, secrets, event, { body, logged }, signal);
  }
}

/** Makes a sender for each type: `http` and `email` are given, all others make messages. */
export function createSenders(
  { http, email }: { readonly http: EventSender; readonly email: EventSender },
  chat: ChatSenderDeps,
): SenderOf {
  return (kind) => {
    if (kind === 'http' || kind === 'cloudevents') return http;
    if (kind === 'pagerduty') return new PagerDutySender(chat);
    return kind === 'email' ? email : new ChatSender(kind, chat);
  };
}

/** What a `MailSender` works with. */
export interface MailSenderDeps {
  readonly runDetails: Pick<RunDetailsReader, 'read'>;
  /** Of the server, with its password; `off` where none is configured. */
  readonly smtpUrl: string;
  readonly from: string;
  /** For each step of the exchange with the server, in milliseconds. */
  readonly timeoutMs: number;
  readonly openBox: () => Promise<SecretBox>;
  readonly clock: Clock;
}

/** An exchange with a slow server is cut off after so many times the timeout of one step. */
const STEPS = 3;

/** Sends events as mail. The server is the configuration's, so its address may be any. */
export class MailSender implements EventSender {
  constructor(private readonly deps: MailSenderDeps) {}

  async send(subscription: WebhookSubscription, event: OutgoingEvent, signal: AbortSignal): Promise<Sent> {
    const { runDetails, smtpUrl, from, timeoutMs, clock, openBox } = this.deps;
    if (smtpUrl === 'off') throw new Error('no mail can be sent: set smtp-url to the server that sends it');
    const { sentBefore: before } = event;
    const message =
      before === undefined
        ? mailMessage(await messageOf(subscription, event, runDetails))
        : { subject: before.headers.subject ?? '', text: before.body };
    const headers = event.isTest ? TEST_HEADER : {};
    const to = (await openBox()).open(subscription.sealedUrl, subscription.id).replace(/^mailto:/, '');
    // A retry has the same message id, so mail clients that deduplicate show it once.
    const messageId = `<${event.id}@${from.split('@')[1] ?? 'localhost'}>`;
    const { createTransport } = await import('nodemailer');
    const timeouts = { connectionTimeout: timeoutMs, greetingTimeout: timeoutMs, socketTimeout: timeoutMs };
    const transport = createTransport({ url: smtpUrl, ...timeouts });
    const cut = new AbortController();
    const stop = () => cut.abort();
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    const timer = clock.after(STEPS * timeoutMs, stop);
    const request = { requestHeaders: { from, to, subject: message.subject, ...headers }, requestBody: message.text };
    try {
      const { response } = await transport.sendMail({ from, to, messageId, headers, ...message, signal: cut.signal });
      return { ...ANSWERED, ...request, isDelivered: true, error: null, responseBody: String(response) };
    } catch (error) {
      return { ...ANSWERED, ...request, isDelivered: false, error: wordsOf(error), responseBody: '' };
    } finally {
      timer.cancel();
      signal.removeEventListener('abort', stop);
      transport.close();
    }
  }
}

const ANSWERED = {
  isGone: false,
  retryAfterMs: null,
  httpStatusCode: null,
  responseHeaders: {},
  resentAfter: null,
} as const;

function wordsOf(error: unknown): string {
  return `the mail was not taken: ${error instanceof Error ? startOf(error.message, 400) : String(error)}`;
}
