import { randomBytes } from 'node:crypto';
import type { Clock } from '../../src/component/clock.js';
import { ksuid } from '../../src/component/ksuid.js';
import type { State } from '../../src/store/state.js';
import { AddressRules, parseAllowed } from '../../src/webhook/address-rules.js';
import { ChatSender } from '../../src/webhook/chat-sender.js';
import { MailSender } from '../../src/webhook/mail-sender.js';
import { slackMessage } from '../../src/webhook/message/slack-message.js';
import { teamsMessage } from '../../src/webhook/message/teams-message.js';
import { PlatformSender } from '../../src/webhook/platform-sender.js';
import { WebhookDesk } from '../../src/webhook/webhook-desk.js';
import { WebhookHttp } from '../../src/webhook/webhook-http.js';
import { NO_STORIES, TEST_BOX } from './webhook-facts.js';

/** A desk on a state that may send to this machine, and whether it was said that something is due. */
export function webhookParts({ subscriptions, catalog }: State, clock: Clock) {
  const parts = { wakeCount: 0, wake, openDesk };
  const rules = new AddressRules(parseAllowed('loopback') ?? []);
  const http = new WebhookHttp({ rules, timeoutMs: 10_000, resolve: async () => [] }, clock);
  const openBox = async () => TEST_BOX;
  const stories = NO_STORIES;
  const sender = new PlatformSender({ http, stories, openBox, clock, version: '0.0.0' });
  const email = new MailSender({
    stories,
    smtpUrl: 'off',
    from: 'bridge@example.com',
    timeoutMs: 10_000,
    openBox,
    clock,
  });
  const chat = { http, stories, openBox, clock };
  const slack = new ChatSender(slackMessage, chat);
  const senders = { http: sender, slack, teams: new ChatSender(teamsMessage, chat), email };
  const newKsuid = (nowUnixMs: number) => ksuid(nowUnixMs, randomBytes);
  const desk = new WebhookDesk({ subscriptions, catalog, senders, openBox, clock, newKsuid, randomBytes });
  return parts;

  function wake(): void {
    parts.wakeCount += 1;
  }

  async function openDesk(): Promise<WebhookDesk> {
    return desk;
  }
}
