import type { Clock, Timer } from '../component/clock.js';
import type { Component } from '../component/component.js';
import type { Logger } from '../component/logger.js';
import { reasonOf } from '../component/reason-of.js';
import type { LeaseStore } from '../store/lease-store.js';

/** What a leased part works with. */
export interface LeasedDeps {
  readonly leases: LeaseStore;
  readonly holder: () => string;
  /** Whether the parts may be started again after they were shut down: then they have their turn again. */
  readonly isRestartable: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The lease of whoever removes what is old. */
export const RETENTION_LEASE = 'retention';

/** A holder that is not heard of for so long has lost its lease, in milliseconds. */
export const LEASED_MS = 15_000;
const RENEW_MS = 5_000;

/**
 * Parts that run in one of several processes at a time: in the one that has their lease. One that has lost it leaves them to
 * others, and waits for its turn where they may be started again.
 */
export class Leased implements Component {
  readonly name: string;
  private state: 'waiting' | 'running' | 'over' = 'waiting';
  private timer: Timer | undefined;
  private turn: Promise<void> = Promise.resolve();

  /** @param name of the lease @param parts the ones that others need first */
  constructor(
    name: string,
    private readonly parts: readonly Component[],
    private readonly deps: LeasedDeps,
  ) {
    this.name = name;
  }

  async start(): Promise<void> {
    await this.renew();
    this.renewLater();
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    const wasRunning = this.state === 'running';
    this.state = 'over';
    this.timer?.cancel();
    await this.turn;
    if (wasRunning) await this.end(deadline);
    await this.deps.leases.release(this.name, this.deps.holder()).catch(() => undefined);
  }

  private get isOver(): boolean {
    return this.state === 'over';
  }

  private renewLater(): void {
    if (this.isOver) return;
    this.timer = this.deps.clock.after(RENEW_MS, () => {
      this.turn = this.renew().then(() => this.renewLater());
    });
  }

  private async renew(): Promise<void> {
    const { leases, isRestartable, clock, logger } = this.deps;
    const holder = this.deps.holder();
    try {
      const lease = await leases.take(this.name, holder, clock.nowUnixMs(), LEASED_MS);
      const isOurs = lease.holder === holder;
      if (isOurs && this.state === 'waiting') {
        await this.begin();
      } else if (!isOurs && this.state === 'running') {
        this.state = isRestartable ? 'waiting' : 'over';
        logger.warn({ what: this.name, isRestartable }, 'another process has taken this over');
        await this.end(AbortSignal.abort());
      }
    } catch (error) {
      logger.warn({ what: this.name, error: reasonOf(error) }, 'the lease could not be renewed; it is tried again');
    }
  }

  private async begin(): Promise<void> {
    this.state = 'running';
    try {
      for (const part of this.parts) await part.start();
    } catch (error) {
      // Unless it was shut down meanwhile.
      if (this.deps.isRestartable && !this.isOver) this.state = 'waiting';
      throw error;
    }
  }

  private async end(deadline: AbortSignal): Promise<void> {
    for (const part of [...this.parts].reverse()) await part.shutdown(deadline);
  }
}
