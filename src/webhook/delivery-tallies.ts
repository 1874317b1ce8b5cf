import type { ArchivedSubscription } from '../store/webhook/webhook-event.js';
import { type ArchiveReason, archiveReasonOf } from './archive-reason.js';

/** What became of a subscription's deliveries in this process. */
export interface DeliveryTally {
  readonly deliveredCount: number;
  /** Events whose attempts have all failed. */
  readonly failedCount: number;
  /** Events that waited when it was archived. */
  readonly skippedCount: number;
  /** Attempts that failed; those that did not are as many as were delivered. */
  readonly failedAttemptCount: number;
  /** What attempts took that arrived, and that failed, in milliseconds. */
  readonly deliveredMs: number;
  readonly failedMs: number;
}

/** Subscriptions remembered; of more than these, the one that nothing happened to for longest is forgotten. */
const MAX_TALLIES = 10_000;
const NOTHING: DeliveryTally = {
  ...{ deliveredCount: 0, failedCount: 0, skippedCount: 0, failedAttemptCount: 0 },
  ...{ deliveredMs: 0, failedMs: 0 },
};

/** Counts deliveries by their subscription, since the start. */
export class DeliveryTallies {
  /** The one that something happened to last is the last. */
  private readonly tallies = new Map<string, DeliveryTally>();

  /** How often a subscription was archived, by the reason. */
  readonly archivings: { [R in ArchiveReason]: number } = { gone: 0, failures_in_a_row: 0, failing_too_long: 0 };

  /** @returns what it counts is 0 where nothing happened */
  of(subscriptionId: string): DeliveryTally {
    return this.tallies.get(subscriptionId) ?? NOTHING;
  }

  add(subscriptionId: string, more: Partial<DeliveryTally>): void {
    const before = this.of(subscriptionId);
    this.tallies.delete(subscriptionId);
    for (const oldest of this.tallies.keys()) {
      if (this.tallies.size < MAX_TALLIES) break;
      this.tallies.delete(oldest);
    }
    this.tallies.set(subscriptionId, {
      deliveredCount: before.deliveredCount + (more.deliveredCount ?? 0),
      failedCount: before.failedCount + (more.failedCount ?? 0),
      skippedCount: before.skippedCount + (more.skippedCount ?? 0),
      failedAttemptCount: before.failedAttemptCount + (more.failedAttemptCount ?? 0),
      deliveredMs: before.deliveredMs + (more.deliveredMs ?? 0),
      failedMs: before.failedMs + (more.failedMs ?? 0),
    });
  }

  archive({ id, reason, skippedCount }: Pick<ArchivedSubscription, 'id' | 'reason' | 'skippedCount'>): void {
    this.add(id, { skippedCount });
    const kind = archiveReasonOf(reason);
    if (kind !== undefined) this.archivings[kind] += 1;
  }
}
