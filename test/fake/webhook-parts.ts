import { randomBytes } from 'node:crypto';
import type { Clock } from '../../src/core/clock.js';
import type { State } from '../../src/storage/state.js';
import { AddressRules, parseAllowed, WebhookHttp } from '../../src/webhook/http.js';
import { webhookPages } from '../../src/webhook/pages.js';
import { WEBHOOK_PATHS, webhookRouters } from '../../src/webhook/routes.js';
import { createSenders, MailSender, PlatformSender } from '../../src/webhook/senders.js';
import { SubscriptionService } from '../../src/webhook/subscription-service.js';
import { ksuid } from '../../src/webhook/tables.js';
import { NO_DETAILS, TEST_BOX, withFeatureStores } from './webhook-facts.js';

/** Webhooks of a state that may be sent to this machine, and how often something was due. @param runDetails what is known of runs */
export function webhookParts(state: State, clock: Clock, runDetails = NO_DETAILS) {
  const { subscriptions, webhookEvents: events, catalog } = withFeatureStores(state);
  const routing = {
    subscriptions,
    events,
    jobs: catalog,
    catalog,
    redaction: 'literals',
    openService,
    wake,
    runDetails,
    clock,
  } as const;
  const parts = {
    wakeCount: 0,
    routing,
    api: async () => webhookRouters(routing),
    apiPaths: async () => WEBHOOK_PATHS,
    pages: async () => webhookPages({ ...routing, version: '0.0.0' }),
  };
  const rules = new AddressRules(parseAllowed('loopback') ?? []);
  const http = new WebhookHttp({ rules, timeoutMs: 10_000, resolve: async () => [] }, clock);
  const openBox = async () => TEST_BOX;
  const sender = new PlatformSender({ http, runDetails, openBox, clock, version: '0.0.0' });
  const email = new MailSender({
    runDetails,
    smtpUrl: 'off',
    from: 'bridge@example.com',
    timeoutMs: 10_000,
    openBox,
    clock,
  });
  const chat = { http, runDetails, openBox, clock };
  const senderOf = createSenders({ http: sender, email }, chat);
  const newKsuid = (nowUnixMs: number) => ksuid(nowUnixMs, randomBytes);
  const service = new SubscriptionService({ subscriptions, catalog, senderOf, openBox, clock, newKsuid, randomBytes });
  return parts;

  function wake(): void {
    parts.wakeCount += 1;
  }

  async function openService(): Promise<SubscriptionService> {
    return service;
  }
}
