import type { Clock, Timer } from '../component/clock.js';
import type { Logger } from '../component/logger.js';
import { reasonOf } from '../component/reason-of.js';
import type { LeaseStore } from '../store/lease-store.js';
import { LEASED_MS } from './leased.js';

/** What a lease is held with. */
export interface HeldLeaseDeps {
  readonly leases: LeaseStore;
  readonly clock: Clock;
  readonly logger: Logger;
}

const RENEW_MS = 5_000;

/** A lease of `Leased` parts that a command holds while it does their work itself. */
export class HeldLease {
  /** @returns `undefined` where somebody else has it @throws StoreError */
  static async take(name: string, holder: string, deps: HeldLeaseDeps): Promise<HeldLease | undefined> {
    const lease = new HeldLease(name, holder, deps);
    return (await lease.renew()) ? lease : undefined;
  }

  private timer: Timer | undefined;
  private isReleased = false;

  private constructor(
    private readonly name: string,
    private readonly holder: string,
    private readonly deps: HeldLeaseDeps,
  ) {}

  async release(): Promise<void> {
    this.isReleased = true;
    this.timer?.cancel();
    await this.deps.leases.release(this.name, this.holder);
  }

  private async renew(): Promise<boolean> {
    const { leases, clock, logger } = this.deps;
    const { holder } = await leases.take(this.name, this.holder, clock.nowUnixMs(), LEASED_MS);
    if (holder !== this.holder || this.isReleased) return false;
    this.timer = clock.after(RENEW_MS, () => {
      this.renew().catch((error: unknown) => {
        logger.warn({ what: this.name, error: reasonOf(error) }, 'the lease could not be renewed');
      });
    });
    return true;
  }
}
