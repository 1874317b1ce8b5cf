import type { CliCommand, WithState } from '../cli/command.js';
import type { SettingValues } from '../config/settings.js';
import type { Timer } from '../core/clock.js';
import type { Health } from '../core/health.js';
import { lazy } from '../core/lazy.js';
import type { Component } from '../core/lifecycle.js';
import type { Feature } from '../feature.js';
import type { RetainedKind } from '../retention/feature.js';
import type { State } from '../storage/state.js';
import type { PartsConfig, PartsHost, WebhookParts } from './open-webhooks.js';
import type { OutboxOptions, WebhookOutbox } from './outbox.js';

// The door of webhooks: no other folder imports anything else of this one. It loads the rest on demand: the command
// line loads nothing, and a server loads the dispatcher when the first subscription exists.

export type { WebhookOutbox } from './outbox.js';

/** Settings that webhooks go by. */
export interface WebhookConfig extends PartsConfig {
  /** Where others reach the web port; `off` for its own address. */
  readonly 'public-url': string;
}

/** What webhooks need of the program. */
export interface WebhookHost extends Omit<PartsHost, 'subscriptions' | 'events'> {
  readonly state: Pick<State, 'db' | 'catalog'>;
  /** What the state was opened with. */
  readonly outbox: WebhookOutbox;
  readonly health: Health;
}

/** Writes events for subscriptions as runs change. Every state is opened with one, so that no event is missing. */
export async function openOutbox(options: Partial<OutboxOptions> = {}): Promise<WebhookOutbox> {
  const { WebhookOutbox: Outbox } = await import('./outbox.js');
  return new Outbox(options);
}

/** Creates the webhooks of a configuration, not yet started. */
export function createWebhooks(config: WebhookConfig, host: WebhookHost): Webhooks {
  return new Webhooks(config, host);
}

/** Returns whether there is a subscription, of whichever account. @throws StoreError */
export async function hasWebhooks({ db }: Pick<State, 'db'>): Promise<boolean> {
  const { SubscriptionStore } = await import('./subscription-store.js');
  return new SubscriptionStore(db).hasAny();
}

/** Returns what retention removes of webhooks: events, with the log of the attempts to deliver them. */
export function retainedDeliveries(
  { 'retain-deliveries': limits }: Pick<SettingValues, 'retain-deliveries'>,
  { state, nowUnixMs }: { readonly state: Pick<State, 'db'>; readonly nowUnixMs: () => number },
): RetainedKind {
  const open = async () => new (await import('./delivery-store.js')).DeliveryStore(state.db);
  return {
    ...{ name: 'deliveries', noun: 'deliveries', limits },
    totalBytes: async () => (await open()).totalBytes(),
    async *removables(endedUntilUnixMs) {
      yield* (await open()).removables(limits.maxAgeMs, endedUntilUnixMs, nowUnixMs());
    },
  };
}

/** Describes `run-bridge webhook list|events|replay`. @param withState opens the state that the command line names */
export function webhookCommand(withState: WithState): CliCommand {
  return {
    name: 'webhook',
    operands: '<list|events|replay> [ID]',
    summary:
      'list webhook subscriptions and their events, and deliver events again; a server that runs need not be stopped',
    settings: ['data-dir', 'database-url'],
    flags: [
      ['--since <TIME>', 'replay: all that failed or were skipped for so long, for example 2h or 1d'],
      ['--subscription <ID>', 'replay: of this subscription only (default: of all)'],
      ['--account <ID>', 'the account (default: the first)'],
    ],
    examples: [
      ['run-bridge webhook list', 'subscriptions, how they stand, and why they were archived'],
      ['run-bridge webhook events wsu_2ZkTlQyNL1UZjJVuJ7YyVqmSDnF', 'its last 100 events'],
      ['run-bridge webhook replay --since 2h', 'what failed or was skipped in the last two hours, again'],
      ['run-bridge webhook replay wev_2ZkTlQyNL1UZjJVuJ7YyVqmSDnF', 'one event, again'],
    ],
    async run(invocation) {
      const { runWebhookCommand } = await import('./command.js');
      return runWebhookCommand(invocation, withState);
    },
  };
}

/** The interval of the search for subscriptions created by another process, while there is none, in milliseconds. */
const POLL_MS = 5_000;

/** Delivers events to their subscriptions. What delivers is loaded where there is a subscription, or when the first one is made. */
export class Webhooks implements Feature, Component {
  readonly name = 'webhooks';
  readonly components = [this];
  private readonly parts = lazy(() => this.load());
  private timer: Timer | undefined;
  private isStopped = false;

  constructor(
    private readonly config: WebhookConfig,
    private readonly host: WebhookHost,
  ) {
    host.outbox.listen(this.wake);
  }

  async start(): Promise<void> {
    await this.look();
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    this.isStopped = true;
    this.timer?.cancel();
    await (await this.parts.ifNeeded())?.shutdown(deadline);
  }

  /** Waits until everything that is due was attempted, or until the signal aborts. */
  async flush(deadline: AbortSignal): Promise<void> {
    await (await this.parts.ifNeeded())?.dispatcher.flush(deadline);
  }

  readonly api: NonNullable<Feature['api']> = async () => {
    const { webhookRouters } = await import('./routes.js');
    return webhookRouters(await this.routing());
  };

  readonly apiPaths: NonNullable<Feature['apiPaths']> = async () => (await import('./routes.js')).WEBHOOK_PATHS;

  readonly pages: NonNullable<Feature['pages']> = async () => {
    const { webhookPages } = await import('./pages.js');
    return webhookPages({ ...(await this.routing()), version: this.host.version });
  };

  readonly metrics: NonNullable<Feature['metrics']> = async () => {
    const { webhookMetrics } = await import('./metrics.js');
    const { subscriptions } = await this.stores();
    return webhookMetrics({
      subscriptions,
      countsBySubscription: () => this.parts.value?.dispatcher.countsBySubscription,
      clock: this.host.clock,
    });
  };

  /** Something may be due. */
  private readonly wake = (): void => {
    if (this.isStopped) return;
    this.open().then(
      ({ dispatcher }) => dispatcher.wake(),
      (error: unknown) => this.host.logger.error({ error: String(error) }, 'failed to start delivering webhooks'),
    );
  };

  /** @throws StoreError */
  private open(): Promise<WebhookParts> {
    this.timer?.cancel();
    return this.parts.get();
  }

  private async look(): Promise<void> {
    const { clock, logger } = this.host;
    try {
      const { subscriptions } = await this.stores();
      if (await subscriptions.hasAny()) await this.open();
    } catch (error) {
      logger.error({ error: String(error) }, 'failed to start delivering webhooks; retrying');
    }
    if (this.parts.isNeeded || this.isStopped) return;
    this.timer = clock.after(POLL_MS, () => void this.look());
  }

  private async load(): Promise<WebhookParts> {
    const { WebhookParts: Parts } = await import('./open-webhooks.js');
    const parts = new Parts(this.config, { ...this.host, ...(await this.stores()), webUrl: this.webUrl });
    await parts.start();
    this.host.health.register(this.name, () => ({ ready: true, details: { ...parts.dispatcher.counts } }));
    return parts;
  }

  private async stores() {
    const { SubscriptionStore } = await import('./subscription-store.js');
    const { WebhookEventStore } = await import('./event-store.js');
    const { db } = this.host.state;
    return {
      subscriptions: new SubscriptionStore(db),
      events: new WebhookEventStore(db, this.config['notify-on-archive']),
    };
  }

  /** Returns what routers and pages work with. */
  private async routing() {
    const { RunDetailsReader } = await import('./run-details.js');
    const { state, measures, reader, clock } = this.host;
    const { redaction } = this.config;
    return {
      ...(await this.stores()),
      jobs: state.catalog,
      catalog: state.catalog,
      redaction,
      runDetails: new RunDetailsReader({ catalog: state.catalog, measures, reader, redaction, webUrl: this.webUrl }),
      openService: async () => (await this.open()).service,
      wake: this.wake,
      clock,
    };
  }

  private readonly webUrl = (): string | null =>
    this.config['public-url'] === 'off' ? this.host.webUrl() : this.config['public-url'];
}
