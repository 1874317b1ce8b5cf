import type { Clock, Timer } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Health, HealthState } from '../core/health.js';
import type { Component } from '../core/lifecycle.js';
import { ConsumeError, type Delivery, type RecordConsumer } from '../record/record-batch.js';

/** How often a folder that could not be written is tried, in milliseconds. */
const PROBE_MS = 2_000;

/** What the watch works with. */
export interface WriteWatchDeps {
  /** Writes something small to the data folder and removes it. @throws Error when that fails. */
  readonly probe: () => Promise<void>;
  readonly clock: Clock;
  /** Registers the check of the watch. */
  readonly health: Health;
}

/**
 * Makes the process unready while its data folder cannot be written. Load balancers send nothing to a process that is not ready,
 * so no write would show the recovery: the folder is tested regularly until it can be written. Only that ends it, not
 * an answer to a sender, who may have sent what is known, or nothing at all.
 */
export class WriteWatch implements Component {
  readonly name = 'data folder watch';
  private failure: string | undefined;
  private isStopped = false;
  private timer: Timer | undefined;

  constructor(private readonly deps: WriteWatchDeps) {
    deps.health.register('data folder', () => this.check());
  }

  /** Tries the folder once, so that a process that starts with a failing disk says so before anybody has sent anything. */
  async start(): Promise<void> {
    void this.tryFolder().then((failure) => {
      if (failure !== undefined) this.onFailed(`the data folder cannot be written: ${failure}`);
    });
  }

  /** Records could not be written. @param reason one sentence on why. */
  onFailed(reason: string): void {
    this.failure = reason;
    if (!this.isStopped) this.timer ??= this.deps.clock.after(PROBE_MS, () => void this.probe());
  }

  async shutdown(): Promise<void> {
    this.isStopped = true;
    this.timer?.cancel();
    this.timer = undefined;
  }

  private async probe(): Promise<void> {
    const failure = await this.tryFolder();
    // It was stopped meanwhile.
    if (this.timer === undefined) return;
    this.timer = undefined;
    if (failure === undefined) this.failure = undefined;
    else if (this.failure !== undefined) this.onFailed(this.failure);
  }

  /** @returns why the folder cannot be written; `undefined` where it can */
  private tryFolder(): Promise<string | undefined> {
    return this.deps.probe().then(() => undefined, reasonOf);
  }

  private check(): HealthState {
    if (this.failure === undefined) return { ready: true };
    return { ready: false, reason: `${this.failure}; it is taken up again as soon as it can be written` };
  }
}

/** Passes deliveries on, and reports to a watch those that could not be written. */
export class WatchedConsumer implements RecordConsumer {
  constructor(
    private readonly consumer: RecordConsumer,
    private readonly watch: WriteWatch,
  ) {}

  /** @throws ConsumeError */
  async consume(delivery: Delivery): Promise<void> {
    try {
      await this.consumer.consume(delivery);
    } catch (error) {
      // Without a cause nothing was tried: the consumer is ending.
      if (error instanceof ConsumeError && error.code === 'unavailable' && error.cause !== undefined) {
        this.watch.onFailed(error.message);
      }
      throw error;
    }
  }
}
