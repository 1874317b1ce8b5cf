import type { Clock } from '../core/clock.js';
import { FixedDelayTask } from '../core/fixed-delay-task.js';
import type { Guard, Shortage } from '../core/guard.js';
import type { HealthState } from '../core/health.js';
import type { Logger } from '../core/logger.js';
import { pause } from '../core/pause.js';
import type { LeaseStore } from '../storage/lease-store.js';
import { LEASE_MS, LEASE_RENEW_MS } from '../storage/lease-times.js';
import { StoreError } from '../storage/store-error.js';

/** What a lease is taken with. */
export interface DatabaseLeaseDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

const POLL_MS = 500;
const NAME = 'bridge';
/** Who has the lease where several processes share the database: all of them. */
export const SEVERAL = 'several processes';

/**
 * Keeps a database to the run-bridge of one data folder: the database's rows speak of record logs that are there. One that
 * died is followed by another after its lease. Whoever loses the lease takes nothing more until it has it again.
 */
export class DatabaseLease implements Guard {
  /**
   * Waits for a lease that another one has, and no longer than it takes to expire.
   * @param holder the id of the data folder; `SEVERAL` for processes that share the database
   * @throws StoreError `locked` when the other one is alive.
   */
  static async take(leases: LeaseStore, holder: string, deps: DatabaseLeaseDeps): Promise<DatabaseLease> {
    const lease = new DatabaseLease(leases, holder, deps);
    const untilMs = deps.clock.monotonicMs() + LEASE_MS + LEASE_RENEW_MS;
    for (let tries = 1; !(await lease.renew()); tries += 1) {
      if (deps.clock.monotonicMs() > untilMs) throw new StoreError('locked', IN_USE);
      if (tries === 1) deps.logger.warn({}, 'another run-bridge has the database; waiting for it to end');
      await pause(deps.clock, POLL_MS, NEVER);
    }
    lease.renewal.start();
    return lease;
  }

  private isHeld = false;
  private readonly renewal: FixedDelayTask;

  private constructor(
    private readonly leases: LeaseStore,
    private readonly holder: string,
    private readonly deps: DatabaseLeaseDeps,
  ) {
    this.renewal = new FixedDelayTask(
      LEASE_RENEW_MS,
      deps.clock,
      () => this.renewNow(),
      // While nobody reaches the database nobody takes it either; whether it was taken, the next try says.
      (error) =>
        deps.logger.warn({ error: String(error) }, 'the lease of the database could not be renewed; it is tried again'),
    );
  }

  findShortage(): Shortage | undefined {
    return this.isHeld ? undefined : { message: LOST, retryAfterMs: LEASE_RENEW_MS };
  }

  onBody(): void {}

  health(): HealthState {
    return this.isHeld ? { ready: true } : { ready: false, reason: LOST };
  }

  /** Lets another one have the database at once. */
  async release(): Promise<void> {
    await this.renewal.stop();
    if (this.holder === SEVERAL) return;
    try {
      await this.leases.release(NAME, this.holder);
    } catch (error) {
      this.deps.logger.warn(
        { error: String(error) },
        'the database could not be let go of; it is free in a few seconds',
      );
    }
  }

  private async renew(): Promise<boolean> {
    const { holder } = await this.leases.take(NAME, this.holder, this.deps.clock.nowUnixMs(), LEASE_MS);
    this.isHeld = holder === this.holder;
    return this.isHeld;
  }

  private async renewNow(): Promise<void> {
    const wasHeld = this.isHeld;
    if (!(await this.renew()) && wasHeld) this.deps.logger.error({}, LOST);
  }
}

const NEVER = new AbortController().signal;
const IN_USE =
  'the database is in use by another run-bridge with a data folder of its own; one at a time serves a database: stop the other one, give this one another database in DATABASE_URL, or start all of them with --processes several';
const LOST =
  'another run-bridge has taken the database, since this one was not heard of for a while; nothing is taken in until it ends: stop one of the two';
