import type { Timer } from '../component/clock.js';
import type { Component } from '../component/component.js';
import type { Health } from '../component/health.js';
import type { Configuration } from '../config/configuration.js';
import type { DeliveryTallies } from '../webhook/delivery-tallies.js';
import type { WebhookDesk } from '../webhook/webhook-desk.js';
import type { Webhooks, WebhooksDeps } from './webhooks.js';

/** How often subscriptions are looked for that another program made, while there is none, in milliseconds. */
const LOOK_MS = 5_000;

/** What delivers webhooks, loaded where there is a subscription, or when somebody makes the first one. */
export class WebhooksLate implements Component {
  readonly name = 'webhooks';
  private opening: Promise<Webhooks> | undefined;
  private opened: Webhooks | undefined;
  private timer: Timer | undefined;
  private isStopped = false;

  constructor(
    private readonly configuration: Configuration,
    private readonly health: Health,
    private readonly deps: WebhooksDeps,
  ) {}

  /** What this process has delivered, by subscription; `undefined` where it never had to. */
  get tallies(): DeliveryTallies | undefined {
    return this.opened?.dispatcher.tallies;
  }

  async start(): Promise<void> {
    await this.look();
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    this.isStopped = true;
    this.timer?.cancel();
    await (await this.opening)?.shutdown(deadline);
  }

  /** Something may be due. */
  readonly wake = (): void => {
    if (this.isStopped) return;
    this.open().then(
      ({ dispatcher }) => dispatcher.wake(),
      (error: unknown) => this.deps.logger.error({ error: String(error) }, 'webhooks cannot be delivered'),
    );
  };

  /** Waits until everything that is due was tried, or until the signal aborts. */
  async flush(deadline: AbortSignal): Promise<void> {
    await (await this.opening)?.dispatcher.flush(deadline);
  }

  /** Where subscriptions are made and changed. @throws StoreError */
  async openDesk(): Promise<WebhookDesk> {
    return (await this.open()).desk;
  }

  /** @throws StoreError */
  private open(): Promise<Webhooks> {
    this.timer?.cancel();
    this.opening ??= this.load().catch((error: unknown) => {
      this.opening = undefined;
      throw error;
    });
    return this.opening;
  }

  private async look(): Promise<void> {
    try {
      if (await this.deps.state.subscriptions.hasAny()) await this.open();
    } catch (error) {
      this.deps.logger.error({ error: String(error) }, 'webhooks cannot be delivered; it is tried again');
    }
    if (this.opening !== undefined || this.isStopped) return;
    this.timer = this.deps.clock.after(LOOK_MS, () => void this.look());
  }

  private async load(): Promise<Webhooks> {
    const { Webhooks } = await import('./webhooks.js');
    const webhooks = new Webhooks(this.configuration, this.deps);
    await webhooks.start();
    this.opened = webhooks;
    this.health.register(this.name, () => ({ ready: true, details: { ...webhooks.dispatcher.counts } }));
    return webhooks;
  }
}
