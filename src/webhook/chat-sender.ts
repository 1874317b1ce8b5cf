import type { Clock } from '../component/clock.js';
import type { WebhookSubscription } from '../store/webhook/webhook-subscription.js';
import { type EventSender, type OutgoingEvent, type Sent, TEST_HEADER } from './event-sender.js';
import { sentOf } from './http-outcome-sent.js';
import { messageOf, type RunMessage } from './message/run-message.js';
import type { StoryTeller } from './message/run-story.js';
import type { SecretBox } from './secret-box.js';
import { openSecrets } from './subscription-secrets.js';
import type { WebhookHttp } from './webhook-http.js';

/** What a sender works with. */
export interface ChatSenderDeps {
  readonly http: Pick<WebhookHttp, 'post'>;
  readonly stories: StoryTeller;
  readonly openBox: () => Promise<SecretBox>;
  readonly clock: Clock;
}

/** Posts events as messages to a chat, which knows whom they are from by the URL alone. */
export class ChatSender implements EventSender {
  /** @param form puts a message into the form that the chat takes */
  constructor(
    private readonly form: (message: RunMessage) => object,
    private readonly deps: ChatSenderDeps,
  ) {}

  async send(subscription: WebhookSubscription, event: OutgoingEvent, signal: AbortSignal): Promise<Sent> {
    const { http, stories, clock } = this.deps;
    const text = JSON.stringify(this.form(await messageOf(subscription, event, stories)));
    const { clientUrl, headers } = openSecrets(subscription, await this.deps.openBox(), clock.nowUnixMs());
    const own = { 'content-type': 'application/json', ...(event.isTest && TEST_HEADER) };
    const outcome = await http.post(new URL(clientUrl), { ...headers, ...own }, Buffer.from(text), signal);
    return sentOf(outcome, { requestHeaders: own, requestBody: text }, clock.nowUnixMs());
  }
}
