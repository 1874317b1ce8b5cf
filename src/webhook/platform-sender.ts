import type { Clock } from '../component/clock.js';
import type { WebhookSubscription } from '../store/webhook/webhook-subscription.js';
import { type EventSender, type OutgoingEvent, type Sent, TEST_HEADER } from './event-sender.js';
import { sentOf } from './http-outcome-sent.js';
import type { StoryTeller } from './message/run-story.js';
import { payloadOf } from './payload.js';
import type { SecretBox } from './secret-box.js';
import { platformSignature, standardHeaders } from './signature.js';
import { openSecrets } from './subscription-secrets.js';
import type { WebhookHttp } from './webhook-http.js';

/** What a sender works with. */
export interface PlatformSenderDeps {
  readonly http: Pick<WebhookHttp, 'post'>;
  readonly openBox: () => Promise<SecretBox>;
  readonly clock: Clock;
  readonly stories: Pick<StoryTeller, 'statusMessage'>;
  /** The program's version. */
  readonly version: string;
}

/** What stands in the log for headers of one's own. */
const MASK = '***';

/** Posts events as the hosted platform does, signed in its way and in that of Standard Webhooks. */
export class PlatformSender implements EventSender {
  constructor(private readonly deps: PlatformSenderDeps) {}

  async send(subscription: WebhookSubscription, event: OutgoingEvent, signal: AbortSignal): Promise<Sent> {
    const { http, clock, stories, version } = this.deps;
    const body = Buffer.from(JSON.stringify(await payloadOf(subscription, event, stories)));
    const nowUnixMs = clock.nowUnixMs();
    const secrets = openSecrets(subscription, await this.deps.openBox(), nowUnixMs);
    const timestampS = Math.floor(nowUnixMs / 1_000);
    const signed = {
      'content-type': 'application/json',
      'user-agent': `run-bridge/${version}`,
      ...(event.isTest && TEST_HEADER),
      ...(subscription.hasStandardHeaders && standardHeaders(event.id, timestampS, body, secrets.signing)),
      ...(subscription.hasAuthorization && { authorization: platformSignature(secrets.authorizing, body) }),
    };
    const outcome = await http.post(new URL(secrets.clientUrl), { ...secrets.headers, ...signed }, body, signal);
    const masked = Object.fromEntries(Object.keys(secrets.headers).map((name) => [name, MASK]));
    const request = { requestHeaders: { ...masked, ...signed }, requestBody: body.toString('utf8') };
    return sentOf(outcome, request, clock.nowUnixMs());
  }
}
