import type { Clock } from '../core/clock.js';
import { FixedDelayTask } from '../core/fixed-delay-task.js';
import type { Logger } from '../core/logger.js';
import { reasonOf } from '../core/reason-of.js';
import type { LeaseStore } from '../storage/lease-store.js';
import { LEASE_MS, LEASE_RENEW_MS } from '../storage/lease-times.js';

/** What a lease is held with. */
export interface HeldLeaseDeps {
  readonly leases: LeaseStore;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A lease of `Leased` parts that a command holds while it does their work itself. */
export class HeldLease {
  /** @returns `undefined` where somebody else has it @throws StoreError */
  static async take(name: string, holder: string, deps: HeldLeaseDeps): Promise<HeldLease | undefined> {
    const lease = new HeldLease(name, holder, deps);
    if ((await lease.renew()) !== holder) return undefined;
    lease.renewal.start();
    return lease;
  }

  private readonly renewal: FixedDelayTask;
  private isHeld = true;

  private constructor(
    private readonly name: string,
    private readonly holder: string,
    private readonly deps: HeldLeaseDeps,
  ) {
    const { clock, logger } = deps;
    const onError = (error: unknown) =>
      logger.warn({ what: name, error: reasonOf(error) }, 'the lease could not be renewed; it is tried again');
    this.renewal = new FixedDelayTask(LEASE_RENEW_MS, clock, () => this.look(), onError);
  }

  async release(): Promise<void> {
    await this.renewal.stop();
    await this.deps.leases.release(this.name, this.holder);
  }

  private async look(): Promise<void> {
    const wasHeld = this.isHeld;
    const holder = await this.renew();
    this.isHeld = holder === this.holder;
    if (wasHeld && !this.isHeld)
      this.deps.logger.warn({ what: this.name, holder }, 'another process has taken this over');
  }

  private async renew(): Promise<string> {
    const { leases, clock } = this.deps;
    return (await leases.take(this.name, this.holder, clock.nowUnixMs(), LEASE_MS)).holder;
  }
}
