import { type Clock, FixedDelayTask, pause } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Guard, Shortage } from '../core/guard.js';
import type { HealthState } from '../core/health.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import { LEASE_MS, LEASE_RENEW_MS, type LeaseStore, PROCESS_LEASE } from '../storage/lease-store.js';
import { StoreError } from '../storage/store-error.js';

/** What a lease is held with. */
export interface LeaseDeps {
  readonly leases: Pick<LeaseStore, 'take' | 'release'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The lease of the process that removes expired data. */
export const RETENTION_LEASE = 'retention';

/** A lease that is taken, or renewed, every few seconds. */
export class Lease {
  private readonly renewal: FixedDelayTask;
  private wasTaken = false;

  /**
   * @param holder asked each time: the id of a process may change
   * @param onRenewed is called after each try, with who has the lease then
   * @param notRenewed what is logged where the database cannot be reached
   */
  constructor(
    private readonly name: string,
    private readonly holder: () => string,
    private readonly deps: LeaseDeps,
    private readonly onRenewed: (lease: { readonly holder: string; readonly wasOurs: boolean }) => void | Promise<void>,
    private readonly notRenewed = 'failed to renew a lease; retrying',
  ) {
    const onError = (error: unknown) => this.logNotRenewed(error);
    this.renewal = new FixedDelayTask(LEASE_RENEW_MS, deps.clock, async () => void (await this.renew()), onError);
  }

  get isOurs(): boolean {
    return this.wasTaken;
  }

  /** Tries once. @returns whether it is ours now @throws StoreError */
  async renew(): Promise<boolean> {
    const [asked, wasOurs] = [this.holder(), this.wasTaken];
    const { holder } = await this.deps.leases.take(this.name, asked, this.deps.clock.nowUnixMs(), LEASE_MS);
    this.wasTaken = holder === asked;
    await this.onRenewed({ holder, wasOurs });
    return this.wasTaken;
  }

  /** Renews it from now on. */
  start(): void {
    this.renewal.start();
  }

  stop(): Promise<void> {
    return this.renewal.stop();
  }

  /** Lets another one have it at once. @throws StoreError */
  release(): Promise<void> {
    return this.deps.leases.release(this.name, this.holder());
  }

  logNotRenewed(error: unknown): void {
    this.deps.logger.warn({ what: this.name, error: reasonOf(error) }, this.notRenewed);
  }
}

/**
 * Takes the lease of `Leased` parts for a command that does their work itself, and renews it until it is released.
 * @returns `undefined` if another process holds it @throws StoreError
 */
export async function takeLease(
  name: string,
  holder: string,
  deps: LeaseDeps,
): Promise<{ release(): Promise<void> } | undefined> {
  const lease: Lease = new Lease(
    name,
    () => holder,
    deps,
    (taken) => {
      if (taken.wasOurs && !lease.isOurs) logTakenOver(deps.logger, name, taken.holder);
    },
  );
  if (!(await lease.renew())) return undefined;
  lease.start();
  return {
    async release() {
      await lease.stop();
      await lease.release();
    },
  };
}

function logTakenOver(logger: Logger, name: string, holder: string): void {
  logger.warn({ what: name, holder }, 'another process has taken over this lease');
}

/**
 * Parts that run in one of several processes at a time: in the one that has their lease. One that has lost it leaves them to
 * others, and waits for its turn; so does one that cannot start them. They may be started again after they were shut down.
 */
export class Leased implements Component {
  private state: 'waiting' | 'running' | 'over' = 'waiting';
  private readonly lease: Lease;

  /** @param name of the lease @param parts the ones that others need first */
  constructor(
    readonly name: string,
    private readonly parts: readonly Component[],
    private readonly deps: LeaseDeps & { readonly holder: () => string },
  ) {
    this.lease = new Lease(name, deps.holder, deps, ({ holder }) => this.onRenewed(holder));
  }

  async start(): Promise<void> {
    await this.lease.renew().catch((error: unknown) => this.lease.logNotRenewed(error));
    this.lease.start();
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    const wasRunning = this.state === 'running';
    this.state = 'over';
    await this.lease.stop();
    if (wasRunning) await this.end(deadline);
    await this.lease.release().catch(() => undefined);
  }

  private get isOver(): boolean {
    return this.state === 'over';
  }

  private async onRenewed(holder: string): Promise<void> {
    if (this.lease.isOurs && this.state === 'waiting') {
      await this.begin();
    } else if (!this.lease.isOurs && this.state === 'running') {
      this.state = 'waiting';
      logTakenOver(this.deps.logger, this.name, holder);
      await this.end(AbortSignal.abort());
    }
  }

  private async begin(): Promise<void> {
    this.state = 'running';
    try {
      for (const part of this.parts) await part.start();
    } catch (error) {
      // A shutdown meanwhile ends the parts as well.
      if (this.isOver) return;
      this.state = 'waiting';
      this.deps.logger.error(
        { what: this.name, error: reasonOf(error) },
        'failed to start a component in this process; another process may start it; retrying',
      );
      await this.end(AbortSignal.abort());
      await this.lease.release();
    }
  }

  private async end(deadline: AbortSignal): Promise<void> {
    for (const part of [...this.parts].reverse()) await part.shutdown(deadline);
  }
}

/** Says to others that a process is alive, whose data folder nobody else has. */
export class ProcessLease implements Component {
  readonly name = 'lease of this process';
  private readonly lease: Lease;

  /** @param folderId of the data folder @param processId of this start of the program */
  constructor(folderId: string, processId: string, deps: LeaseDeps) {
    const { leases } = deps;
    const name = `${PROCESS_LEASE}${folderId}`;
    // Whoever had the folder before has ended.
    this.lease = new Lease(
      name,
      () => processId,
      deps,
      ({ holder }) => (holder === processId ? undefined : leases.release(name, holder)),
    );
  }

  async start(): Promise<void> {
    if (!(await this.lease.renew())) await this.lease.renew();
    this.lease.start();
  }

  async shutdown(): Promise<void> {
    await this.lease.stop();
    await this.lease.release().catch((error: unknown) => this.lease.logNotRenewed(error));
  }
}

const POLL_MS = 500;
const DATABASE_LEASE = 'bridge';
/** The holder of the lease with several processes: all of them. */
export const SEVERAL = 'several processes';

/**
 * Locks a database for the run-bridge of one data folder, since its rows refer to record logs there. When it
 * dies, another one can follow after the lease. A process without the lease accepts nothing until it has it again.
 */
export class DatabaseLease implements Guard {
  /**
   * Waits for a lease that another one has, and no longer than it takes to expire.
   * @param holder the id of the data folder; `SEVERAL` for processes that share the database
   * @throws StoreError `locked` when the other one is alive.
   */
  static async take(holder: string, deps: LeaseDeps): Promise<DatabaseLease> {
    const { clock, logger } = deps;
    const database = new DatabaseLease(holder, deps);
    const untilMs = clock.monotonicMs() + LEASE_MS + LEASE_RENEW_MS;
    for (let tries = 1; !(await database.lease.renew()); tries += 1) {
      if (clock.monotonicMs() > untilMs) throw new StoreError('locked', IN_USE);
      if (tries === 1) logger.warn({}, 'another run-bridge holds the lease of the database; waiting for it to end');
      await pause(clock, POLL_MS, NEVER);
    }
    database.lease.start();
    return database;
  }

  private readonly lease: Lease;

  private constructor(
    private readonly holder: string,
    private readonly deps: LeaseDeps,
  ) {
    // While the database cannot be reached nobody else can take the lease; the next attempt shows whether it was taken.
    this.lease = new Lease(
      DATABASE_LEASE,
      () => holder,
      deps,
      ({ wasOurs }) => {
        if (wasOurs && !this.lease.isOurs) deps.logger.error({}, LOST);
      },
      'failed to renew the lease of the database; retrying',
    );
  }

  findShortage(): Shortage | undefined {
    return this.lease.isOurs ? undefined : { message: LOST, retryAfterMs: LEASE_RENEW_MS };
  }

  onBody(): void {}

  health(): HealthState {
    return this.lease.isOurs ? { ready: true } : { ready: false, reason: LOST };
  }

  /** Lets another one have the database at once. */
  async release(): Promise<void> {
    await this.lease.stop();
    if (this.holder === SEVERAL) return;
    try {
      await this.lease.release();
    } catch (error) {
      this.deps.logger.warn(
        { error: String(error) },
        'failed to release the lease of the database; it expires in a few seconds',
      );
    }
  }
}

const NEVER = new AbortController().signal;
const IN_USE =
  'the database is in use by another run-bridge with a data folder of its own; only one may use a database: stop the other one, give this one another database in DATABASE_URL, or start all of them with --processes several';
const LOST =
  'another run-bridge has taken the lease of the database after this one failed to renew it; nothing is accepted until it ends: stop one of the two';
