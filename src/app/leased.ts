import type { Clock } from '../core/clock.js';
import type { Component } from '../core/component.js';
import { FixedDelayTask } from '../core/fixed-delay-task.js';
import type { Logger } from '../core/logger.js';
import { reasonOf } from '../core/reason-of.js';
import type { LeaseStore } from '../storage/lease-store.js';
import { LEASE_MS, LEASE_RENEW_MS } from '../storage/lease-times.js';

/** What a leased part works with. */
export interface LeasedDeps {
  readonly leases: LeaseStore;
  readonly holder: () => string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The lease of whoever removes what is old. */
export const RETENTION_LEASE = 'retention';

/**
 * Parts that run in one of several processes at a time: in the one that has their lease. One that has lost it leaves them to
 * others, and waits for its turn; so does one that cannot start them. They may be started again after they were shut down.
 */
export class Leased implements Component {
  readonly name: string;
  private state: 'waiting' | 'running' | 'over' = 'waiting';
  private readonly renewal: FixedDelayTask;

  /** @param name of the lease @param parts the ones that others need first */
  constructor(
    name: string,
    private readonly parts: readonly Component[],
    private readonly deps: LeasedDeps,
  ) {
    this.name = name;
    this.renewal = new FixedDelayTask(
      LEASE_RENEW_MS,
      deps.clock,
      () => this.renew(),
      (error) => this.sayNotRenewed(error),
    );
  }

  async start(): Promise<void> {
    await this.renew().catch((error: unknown) => this.sayNotRenewed(error));
    this.renewal.start();
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    const wasRunning = this.state === 'running';
    this.state = 'over';
    await this.renewal.stop();
    if (wasRunning) await this.end(deadline);
    await this.deps.leases.release(this.name, this.deps.holder()).catch(() => undefined);
  }

  private get isOver(): boolean {
    return this.state === 'over';
  }

  private async renew(): Promise<void> {
    const { leases, clock, logger } = this.deps;
    const holder = this.deps.holder();
    const lease = await leases.take(this.name, holder, clock.nowUnixMs(), LEASE_MS);
    const isOurs = lease.holder === holder;
    if (isOurs && this.state === 'waiting') {
      await this.begin(holder);
    } else if (!isOurs && this.state === 'running') {
      this.state = 'waiting';
      logger.warn({ what: this.name, holder: lease.holder }, 'another process has taken this over');
      await this.end(AbortSignal.abort());
    }
  }

  private async begin(holder: string): Promise<void> {
    this.state = 'running';
    try {
      for (const part of this.parts) await part.start();
    } catch (error) {
      // Whoever shuts it down meanwhile ends the parts as well.
      if (this.isOver) return;
      this.state = 'waiting';
      this.deps.logger.error(
        { what: this.name, error: reasonOf(error) },
        'this could not be started here; another process may do it, and it is tried again',
      );
      await this.end(AbortSignal.abort());
      await this.deps.leases.release(this.name, holder);
    }
  }

  private async end(deadline: AbortSignal): Promise<void> {
    for (const part of [...this.parts].reverse()) await part.shutdown(deadline);
  }

  private sayNotRenewed(error: unknown): void {
    this.deps.logger.warn(
      { what: this.name, error: reasonOf(error) },
      'the lease could not be renewed; it is tried again',
    );
  }
}
