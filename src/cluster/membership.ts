import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock, Timer } from '../component/clock.js';
import type { Component } from '../component/component.js';
import type { Guard, Shortage } from '../component/guard.js';
import type { HealthState } from '../component/health.js';
import type { Logger } from '../component/logger.js';
import { reasonOf } from '../component/reason-of.js';
import type { MemberStore } from '../store/cluster/member-store.js';
import type { ProcessIdentity } from './process-identity.js';

/** What a membership works with. */
export interface MembershipDeps {
  readonly members: MemberStore;
  /** Holds the id of the last life, so that what it had is free at once. */
  readonly folder: string;
  readonly identity: ProcessIdentity;
  /** The process was not heard of for longer than its lease, and lives on under another id: it has nothing any more. */
  readonly onReborn: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** So long after its last sign of life a process counts as dead, in milliseconds. */
const LEASE_MS = 15_000;
const RENEW_MS = 5_000;
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
  private renewTimer: Timer | undefined;
  private buryTimer: Timer | undefined;
  private isStopped = false;

  constructor(private readonly deps: MembershipDeps) {}

  async start(): Promise<void> {
    const { folder, members } = this.deps;
    mkdirSync(folder, { recursive: true });
    const path = join(folder, ID_FILE);
    const before = readIfThere(path);
    // The data folder is this process's alone, so whoever wrote this is gone.
    if (before !== undefined) await members.leave(before);
    await this.join();
    this.renewLater();
    this.buryLater();
  }

  /** Others may have at once what this process had. */
  async shutdown(): Promise<void> {
    this.isStopped = true;
    this.renewTimer?.cancel();
    this.buryTimer?.cancel();
    try {
      await this.deps.members.leave(this.deps.identity.processId);
    } catch (error) {
      this.deps.logger.warn({ error: reasonOf(error) }, 'what this process had is free in a few seconds only');
    }
  }

  findShortage(): Shortage | undefined {
    return this.isMember ? undefined : { message: NOT_A_MEMBER, retryAfterMs: RENEW_MS };
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

  private renewLater(): void {
    if (!this.isStopped) this.renewTimer = this.deps.clock.after(RENEW_MS, () => void this.renew());
  }

  private async renew(): Promise<void> {
    const { members, clock, logger, identity, onReborn } = this.deps;
    const startedMs = clock.monotonicMs();
    try {
      if (this.isMember && (await members.renew(this.deps.identity.processId, LEASE_MS))) {
        this.renewedMs = startedMs;
      } else if (!this.isStopped) {
        if (this.isMember) {
          logger.warn({}, 'this process was not heard of for longer than its lease; others go on with its runs');
          this.isMember = false;
          identity.beginAnew();
          onReborn();
        }
        await this.join();
      }
    } catch (error) {
      // While nobody reaches the database, nobody can take anything over either.
      logger.warn({ error: reasonOf(error) }, 'the lease of this process could not be renewed; it is tried again');
    }
    this.renewLater();
  }

  private buryLater(): void {
    if (!this.isStopped) this.buryTimer = this.deps.clock.after(BURY_MS, () => void this.bury());
  }

  private async bury(): Promise<void> {
    // After an outage everybody's lease has run out: whoever is back first leaves the others time to say that they live.
    const isHeardOf = this.deps.clock.monotonicMs() - this.renewedMs < RENEW_MS + BURY_MS;
    try {
      if (isHeardOf) await this.deps.members.bury();
    } catch (error) {
      this.deps.logger.debug({ error: reasonOf(error) }, 'the other processes could not be looked at');
    }
    this.buryLater();
  }
}

const NOT_A_MEMBER =
  'this process was not heard of for longer than its lease and is just coming back; send this again shortly';

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return undefined;
  }
}
