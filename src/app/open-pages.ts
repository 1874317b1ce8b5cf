import type { Router } from 'express';
import type { Configuration } from '../config/configuration.js';
import type { State } from '../store/state.js';
import type { PageDeps } from '../web/page/page-deps.js';
import { pageRouter } from '../web/page/page-router.js';
import type { Access } from './access.js';
import type { WebhooksLate } from './webhooks-late.js';

/** What the pages are made of. */
export interface OpenPagesDeps
  extends Pick<PageDeps, 'notes' | 'tracker' | 'reader' | 'artifacts' | 'otlpUrl' | 'version' | 'clock' | 'logger'> {
  readonly state: Pick<State, 'catalog' | 'subscriptions' | 'webhookEvents'>;
  readonly access: Access;
  readonly webhooks: Pick<WebhooksLate, 'openDesk' | 'wake'>;
}

/** The pages of a configuration. */
export function openPages(
  configuration: Pick<Configuration, 'redaction' | 'public-url' | 'http'>,
  deps: OpenPagesDeps,
): Router {
  const { state, access, webhooks, otlpUrl, version, clock, logger, notes, tracker, reader, artifacts } = deps;
  const { redaction, 'public-url': publicUrl } = configuration;
  return pageRouter({
    ...{ notes, tracker, reader, artifacts, redaction, otlpUrl, version, clock, logger },
    authenticator: access.authenticator,
    catalog: state.catalog,
    subscriptions: state.subscriptions,
    events: state.webhookEvents,
    openDesk: () => webhooks.openDesk(),
    wake: () => webhooks.wake(),
    publicUrl: publicUrl === 'off' ? null : publicUrl,
    isTokenNeeded: !access.isOpen(configuration.http.host),
  });
}
