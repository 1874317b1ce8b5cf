import { type Clock, FixedDelayTask, pause } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Guard, Shortage } from '../core/guard.js';
import type { HealthState } from '../core/health.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import type { Fence } from '../storage/journal-store.js';
import { LEASE_MS, LEASE_RENEW_MS, type LeaseStore, PROCESS_LEASE } from '../storage/lease-store.js';
import { StoreError } from '../storage/store-error.js';

/** Dependencies of a lease. */
export interface LeaseDeps {
  readonly leases: Pick<LeaseStore, 'take' | 'release'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The name of the lease for removing expired data. */
export const RETENTION_LEASE = 'retention';

/** A lease that this process tries to take or renew every few seconds. */
export class Lease {
  private readonly renewal: FixedDelayTask;
  private wasTaken = false;

  /**
   * @param holder returns the id of this process, which may change
   * @param onRenewed is called after each attempt, with the current holder
   * @param notRenewed the log message if the database cannot be reached
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

  /** Tries once to take or renew it. @returns whether this process holds it now @throws StoreError */
  async renew(): Promise<boolean> {
    const [asked, wasOurs] = [this.holder(), this.wasTaken];
    const { holder } = await this.deps.leases.take(this.name, asked, this.deps.clock.nowUnixMs(), LEASE_MS);
    this.wasTaken = holder === asked;
    await this.onRenewed({ holder, wasOurs });
    return this.wasTaken;
  }

  /** Starts to renew it regularly. */
  start(): void {
    this.renewal.start();
  }

  stop(): Promise<void> {
    return this.renewal.stop();
  }

  /** Releases it, so that another process can take it at once. @throws StoreError */
  release(): Promise<void> {
    return this.deps.leases.release(this.name, this.holder());
  }

  logNotRenewed(error: unknown): void {
    this.deps.logger.warn({ what: this.name, error: reasonOf(error) }, this.notRenewed);
  }
}

/**
 * Takes the lease of `Leased` parts for a command that does their work itself, and renews it until it is released.
 * @returns `undefined` if another process holds it
 * @throws StoreError
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
 * Parts that run in one of several processes at a time, the one that holds their lease. A process that loses the lease, or cannot start the parts, stops them and waits until it gets the lease again.
 * The parts may be started again after a shutdown.
 */
export class Leased implements Component {
  private state: 'waiting' | 'running' | 'over' = 'waiting';
  private readonly lease: Lease;

  /**
   * @param name of the lease
   * @param parts in the order in which they are started
   */
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
      // A concurrent shutdown ends the parts as well.
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

/** Shows other processes that this one is alive and uses its data folder. */
export class ProcessLease implements Component {
  readonly name = 'lease of this process';
  private readonly lease: Lease;

  constructor({ folderId, processId }: Fence, deps: LeaseDeps) {
    const { leases } = deps;
    const name = `${PROCESS_LEASE}${folderId}`;
    // A previous holder used the same data folder, so it has ended.
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
/** The holder of the lease if several processes share the database. */
export const SEVERAL = 'several processes';

/**
 * Locks a database for the run-bridge of one data folder, since its rows refer to record logs there. If the process dies, another one can take over when the lease expires. A process without the
 * lease accepts nothing until it holds it again.
 */
export class DatabaseLease implements Guard {
  /**
   * Takes the lease, waiting at most as long as a lease of another process takes to expire.
   * @param holder id of the data folder; `SEVERAL` for processes that share the database
   * @throws StoreError `locked` if the other process is alive
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
    // While the database cannot be reached, nobody else can take the lease; the next attempt shows whether somebody
    // has.
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

  /** Releases the database, so that another process can take it at once. */
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
