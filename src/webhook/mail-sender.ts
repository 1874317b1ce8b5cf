import type { Clock } from '../component/clock.js';
import type { WebhookSubscription } from '../store/webhook/webhook-subscription.js';
import { type EventSender, type OutgoingEvent, type Sent, TEST_HEADER } from './event-sender.js';
import { mailMessage } from './message/mail-message.js';
import { messageOf } from './message/run-message.js';
import type { StoryTeller } from './message/run-story.js';
import type { SecretBox } from './secret-box.js';

/** What a sender works with. */
export interface MailSenderDeps {
  readonly stories: StoryTeller;
  /** Of the server, with its password; `off` where none is configured. */
  readonly smtpUrl: string;
  readonly from: string;
  /** For each step of the talk with the server, in milliseconds. */
  readonly timeoutMs: number;
  readonly openBox: () => Promise<SecretBox>;
  readonly clock: Clock;
}

/** A server that says a little now and then is left after so many times the time of one step. */
const STEPS = 3;

/** Sends events as mail. The server is the configuration's, so its address may be any. */
export class MailSender implements EventSender {
  constructor(private readonly deps: MailSenderDeps) {}

  async send(subscription: WebhookSubscription, event: OutgoingEvent, signal: AbortSignal): Promise<Sent> {
    const { stories, smtpUrl, from, timeoutMs, clock, openBox } = this.deps;
    if (smtpUrl === 'off') throw new Error('no mail can be sent: set smtp-url to the server that sends it');
    const message = mailMessage(await messageOf(subscription, event, stories));
    const headers = event.isTest ? TEST_HEADER : {};
    const to = (await openBox()).open(subscription.sealedUrl, subscription.id).replace(/^mailto:/, '');
    // A retry is the same message: who keeps mail by its id sees it once.
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
  return `the mail was not taken: ${error instanceof Error ? error.message.slice(0, 400) : String(error)}`;
}
