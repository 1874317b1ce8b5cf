import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, FixedDelayTask } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Guard, Shortage } from '../core/guard.js';
import type { HealthState } from '../core/health.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import type { MemberStore } from '../storage/cluster/member-store.js';
import type { Fence } from '../storage/fence.js';
import { LEASE_MS, LEASE_RENEW_MS } from '../storage/lease-store.js';

/** What a membership works with. */
export interface MembershipDeps {
  readonly members: MemberStore;
  /** The file with the id of the previous life, so that its traces are free at once. */
  readonly folder: string;
  readonly identity: ProcessIdentity;
  /** The process was not heard of for longer than its lease, and lives on under another id: it has nothing any more. */
  readonly onReborn: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How often it is looked for processes whose lease has run out, in milliseconds. */
const BURY_MS = 2_000;
const ID_FILE = 'process-id';

/**
 * This process among those that share a database: it has a lease, by the database's clock, as long as it is heard of. A
 * lease that others have seen run out is gone for good; the process goes on under a new id, as one that was just started.
 */
export class Membership implements Component, Guard {
  readonly name = 'membership';
  private isMember = false;
  private renewedMs = Number.NEGATIVE_INFINITY;
  private readonly renewal: FixedDelayTask;
  private readonly burial: FixedDelayTask;
  private isStopped = false;

  constructor(private readonly deps: MembershipDeps) {
    const { clock, logger } = deps;
    this.renewal = new FixedDelayTask(
      LEASE_RENEW_MS,
      clock,
      () => this.renew(),
      // While no process reaches the database, none can take over a trace either.
      (error) => logger.warn({ error: reasonOf(error) }, 'failed to renew the lease of this process; retrying'),
    );
    this.burial = new FixedDelayTask(
      BURY_MS,
      clock,
      () => this.bury(),
      (error) => logger.debug({ error: reasonOf(error) }, 'failed to read the leases of the other processes'),
    );
  }

  async start(): Promise<void> {
    const { folder, members } = this.deps;
    mkdirSync(folder, { recursive: true });
    const path = join(folder, ID_FILE);
    const before = readIfThere(path);
    // The data folder belongs to this process alone, so the process that wrote this is gone.
    if (before !== undefined) await members.leave(before);
    await this.join();
    this.renewal.start();
    this.burial.start();
  }

  /** Others may have at once what this process had. */
  async shutdown(): Promise<void> {
    this.isStopped = true;
    await Promise.all([this.renewal.stop(), this.burial.stop()]);
    try {
      await this.deps.members.leave(this.deps.identity.processId);
    } catch (error) {
      this.deps.logger.warn(
        { error: reasonOf(error) },
        'failed to release the leases of this process; they expire in a few seconds',
      );
    }
  }

  findShortage(): Shortage | undefined {
    return this.isMember ? undefined : { message: NOT_A_MEMBER, retryAfterMs: LEASE_RENEW_MS };
  }

  onBody(): void {}

  health(): HealthState {
    return this.isMember ? { ready: true } : { ready: false, reason: NOT_A_MEMBER };
  }

  private async join(): Promise<void> {
    const { members, folder, clock } = this.deps;
    const startedMs = clock.monotonicMs();
    await members.join(this.deps.identity.processId, LEASE_MS);
    writeFileSync(join(folder, ID_FILE), `${this.deps.identity.processId}\n`);
    this.isMember = true;
    this.renewedMs = startedMs;
  }

  private async renew(): Promise<void> {
    const { members, clock, logger, identity, onReborn } = this.deps;
    const startedMs = clock.monotonicMs();
    if (this.isMember && (await members.renew(identity.processId, LEASE_MS))) {
      this.renewedMs = startedMs;
    } else if (!this.isStopped) {
      if (this.isMember) {
        logger.warn({}, 'this process failed to renew its lease in time; others continue its runs');
        this.isMember = false;
        identity.beginAnew();
        onReborn();
      }
      await this.join();
    }
  }

  private async bury(): Promise<void> {
    // After an outage all leases have expired: the first process that is back gives the others time to renew theirs.
    const isHeardOf = this.deps.clock.monotonicMs() - this.renewedMs < LEASE_RENEW_MS + BURY_MS;
    if (isHeardOf) await this.deps.members.bury();
  }
}

const NOT_A_MEMBER = 'this process did not renew its lease in time and is recovering; send the request again shortly';

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return undefined;
  }
}

/** Who this process is among those that share a database: another one after it counted as dead. */
export class ProcessIdentity implements Fence {
  processId: string;

  /** @param folderId of the data folder, which stays @param newId makes unique ids */
  constructor(
    readonly folderId: string,
    private readonly newId: () => string,
  ) {
    this.processId = newId();
  }

  /** The life of before is over. */
  beginAnew(): void {
    this.processId = this.newId();
  }
}
