import { randomBytes, randomUUID } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import type { Configuration } from '../config/configuration.js';
import { type Clock, whenAborted } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Logger } from '../core/logger.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import type { ArtifactStore } from '../storage/artifacts.js';
import { ManifestReader } from '../storage/manifest.js';
import type { State } from '../storage/state.js';
import { DEFAULT_ATTEMPT_SCHEDULE, DEFAULT_BREAKER_LIMITS } from './circuit-breaker.js';
import { DISPATCHER_DEFAULTS, WebhookDispatcher } from './dispatcher.js';
import type { WebhookEventStore } from './event-store.js';
import { FirstFailureWatch } from './first-failures.js';
import { AddressRules, parseAllowed, WebhookHttp } from './http.js';
import { ExpectationWatch } from './notices.js';
import { type RunDetailsDeps, RunDetailsReader } from './run-details.js';
import { boxOpener, readWebhookKeyFile } from './secrets.js';
import { EventSelector, type RecoveryDeps, RecoveryReader } from './selection.js';
import { createSenders, MailSender, PlatformSender } from './senders.js';
import { SubscriptionService } from './subscription-service.js';
import type { SubscriptionStore } from './subscription-store.js';
import { ksuid } from './tables.js';

/** Settings that deliveries go by. */
export type PartsConfig = Pick<
  Configuration,
  | 'data-dir'
  | 'database-url'
  | 'jobs'
  | 'notify-on-archive'
  | 'redaction'
  | 'smtp-from'
  | 'smtp-url'
  | 'webhook-allow'
  | 'webhook-proxy'
  | 'webhook-retries'
  | 'webhookKey'
>;

/** What deliveries need of the program. */
export interface PartsHost extends Pick<RunDetailsDeps, 'reader' | 'webUrl'> {
  readonly measures: RecoveryDeps['measures'];
  /** Where manifests of runs are. */
  readonly openArtifacts: () => Promise<Pick<ArtifactStore, 'stat' | 'open'>>;
  readonly state: Pick<State, 'catalog' | 'db'>;
  readonly subscriptions: SubscriptionStore;
  readonly events: WebhookEventStore;
  /** The id of a data folder, which one process at a time uses, in a database that others share. */
  readonly folderId: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** The program's version. */
  readonly version: string;
}

/** An endpoint has so long to answer, in milliseconds. */
const TIMEOUT_MS = 10_000;

/** The parts that deliver the webhooks of a configuration, wired to each other, not yet started. */
export class WebhookParts {
  readonly dispatcher: WebhookDispatcher;
  readonly service: SubscriptionService;
  private readonly http: WebhookHttp;
  private readonly expectations: ExpectationWatch;
  private readonly firstFailures: FirstFailureWatch;

  constructor(
    private readonly config: PartsConfig,
    private readonly host: PartsHost,
  ) {
    const { subscriptions, events, clock, logger, random, version, measures, reader, webUrl } = host;
    const { catalog } = host.state;
    const rules = new AddressRules(config['webhook-allow'].flatMap((entry) => parseAllowed(entry) ?? []));
    const resolve = (hostname: string) => lookup(hostname, { all: true });
    const proxy = config['webhook-proxy'];
    this.http = new WebhookHttp(
      { rules, timeoutMs: TIMEOUT_MS, resolve, ...(proxy !== 'off' && { proxy: new URL(proxy) }) },
      clock,
    );
    const openBox = boxOpener(
      async () => config.webhookKey ?? (await readWebhookKeyFile(config['data-dir'], randomBytes, logger)),
    );
    const { redaction, 'smtp-url': smtpUrl, 'smtp-from': from } = config;
    const manifests = new ManifestReader({ catalog, openArtifacts: host.openArtifacts });
    const context = { catalog, measures, manifests };
    const runDetails = new RunDetailsReader({ catalog, measures, context, reader, redaction, webUrl });
    const chat = { http: this.http, runDetails, openBox, clock };
    const platform = new PlatformSender({ ...chat, version });
    const email = new MailSender({ runDetails, smtpUrl, from, timeoutMs: TIMEOUT_MS, openBox, clock });
    const senderOf = createSenders({ http: platform, email }, chat);
    const schedule = { ...DEFAULT_ATTEMPT_SCHEDULE, delaysMs: config['webhook-retries'] };
    const newKsuid = (nowUnixMs: number) => ksuid(nowUnixMs, randomBytes);
    const recoveries = new RecoveryReader({ catalog, measures });
    const selector = new EventSelector({
      runDetails,
      manifests,
      notifiedBefore: (event) => events.notifiedBefore(event),
      notifiedOfRun: (subscriptionId, runId) => events.ofRun(subscriptionId, runId),
      recoveryOf: (accountId, runId, ofIncident) => recoveries.read(accountId, runId, ofIncident),
    });
    this.dispatcher = new WebhookDispatcher(
      { ...DISPATCHER_DEFAULTS, schedule, limits: DEFAULT_BREAKER_LIMITS },
      {
        events,
        subscriptions,
        senderOf,
        selector,
        newKsuid,
        holder: this.folderHolder + randomUUID(),
        clock,
        random,
        logger,
      },
    );
    const declared = new Map(
      config.jobs.flatMap(({ name, expectMs }) => (expectMs === null ? [] : [[name, expectMs]])),
    );
    const wake = () => this.dispatcher.wake();
    this.expectations = new ExpectationWatch({ db: host.state.db, measures, declared, clock, logger, wake });
    this.firstFailures = new FirstFailureWatch({ db: host.state.db, events, selector, clock, logger, wake });
    this.service = new SubscriptionService({ subscriptions, catalog, senderOf, openBox, clock, newKsuid, randomBytes });
  }

  /** Events that an earlier process of the data folder had claimed are free at once. @throws StoreError */
  async start(): Promise<void> {
    const isShared = this.config['database-url'] !== 'off';
    await this.host.events.release(isShared ? this.folderHolder : undefined);
    await this.addArchiveListener();
    await this.dispatcher.start();
    this.expectations.start();
    this.firstFailures.start();
  }

  /** Who is notified of failing webhooks by the configuration is a webhook, too: an address gets one. */
  private async addArchiveListener(): Promise<void> {
    const { 'notify-on-archive': listener } = this.config;
    if (listener === 'off') return;
    try {
      await this.service.listenerOf(FIRST_ACCOUNT_ID, listener, 'webhooks');
    } catch (error) {
      const fields = { 'notify-on-archive': listener, error: reasonOf(error) };
      this.host.logger.warn(fields, 'nobody is notified of failing webhooks: there is no such webhook');
    }
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    this.expectations.stop();
    await Promise.race([this.firstFailures.stop(), whenAborted(deadline)]);
    await this.dispatcher.shutdown(deadline);
    this.http.close();
  }

  /** Returns how holders of the data folder's processes begin. */
  private get folderHolder(): string {
    return `${this.host.folderId}/`;
  }
}
