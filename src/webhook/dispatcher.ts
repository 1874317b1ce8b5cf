import { setMaxListeners } from 'node:events';
import { type Clock, EarliestTimer, pause, retry, whenAborted } from '../core/clock.js';
import type { Component } from '../core/lifecycle.js';
import { setLatest } from '../core/lists.js';
import type { Logger } from '../core/logger.js';
import {
  type ArchiveReason,
  type AttemptSchedule,
  archiveReasonOf,
  type BreakerLimits,
  type CircuitBreaker,
  circuitBreaker,
  nextAttemptInMs,
} from './circuit-breaker.js';
import type { ArchivedSubscription, AttemptResult, WebhookEvent } from './event.js';
import type { WebhookEventStore } from './event-store.js';
import type { EventSelector } from './selection.js';
import { notSent, type SenderOf, type Sent, sendEvent } from './senders.js';
import { isProven, needsSelection, type WebhookSubscription } from './subscription.js';
import type { SubscriptionStore } from './subscription-store.js';

/** Limits of a dispatcher. */
export interface DispatcherConfig {
  readonly schedule: AttemptSchedule;
  readonly limits: BreakerLimits;
  /** Maximum number of concurrent attempts. */
  readonly maxInFlight: number;
  /** An event is claimed for so long, in milliseconds: longer than an attempt takes with the saving of its result. */
  readonly leaseMs: number;
}

/** The defaults. */
export const DISPATCHER_DEFAULTS = { maxInFlight: 512, leaseMs: 45_000 } as const;

/** What a dispatcher works with. */
export interface DispatcherDeps {
  readonly events: WebhookEventStore;
  readonly subscriptions: Pick<SubscriptionStore, 'find'>;
  readonly senderOf: SenderOf;
  /** Decides which part of a run goes to a subscription. */
  readonly selector: Pick<EventSelector, 'select'>;
  /** Unique text of 27 letters and digits. */
  readonly newKsuid: (nowUnixMs: number) => string;
  /** Unique among processes. */
  readonly holder: string;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly logger: Logger;
}

/** What was done since the start. */
export interface DispatcherCounts {
  readonly delivered: number;
  readonly failedAttempts: number;
  /** Events whose attempts have all failed. */
  readonly failed: number;
  readonly archived: number;
}

/** The result of an attempt is saved within this time, in milliseconds, before the claim of its event ends. */
const SAVING_MS = 10_000;
/** While less of the room for attempts is free than this part, every subscription waits for its turn. */
const CROWDED_PART = 0.25;
/** How often what is due is looked for, in milliseconds: retries, and what other processes have written. */
const POLL_MS = 1_000;
const SOON_MS = 5;
/** A subscription that was read so lately is not read again, in milliseconds. */
const FRESH_MS = 1_000;

/**
 * Delivers due events to their subscriptions. Each subscription has its own queue, so that none waits for another's
 * endpoint; at most half of all attempts are for subscriptions whose last delivery has failed, or that are new. Those take
 * turns, as all do where there is little room: thousands of dead endpoints delay no live one.
 */
export class WebhookDispatcher implements Component {
  readonly name = 'webhooks';
  readonly counts: { -readonly [K in keyof DispatcherCounts]: number } = {
    ...{ delivered: 0, failedAttempts: 0, failed: 0, archived: 0 },
  };
  /** The same by subscription. */
  readonly countsBySubscription = new CountsBySubscription();
  private readonly queues = new Map<string, SubscriptionQueue>();
  private readonly running = new Set<Promise<void>>();
  private readonly writer: ResultWriter;
  private readonly timer: EarliestTimer;
  private readonly stopping = new AbortController();
  private readonly cutOff = new AbortController();
  private polling: Promise<void> | undefined;
  private isStale = false;
  private inFlightCount = 0;

  constructor(
    private readonly config: DispatcherConfig,
    private readonly deps: DispatcherDeps,
  ) {
    const { clock, logger, events: store, holder } = deps;
    // Every running attempt listens to it.
    setMaxListeners(0, this.cutOff.signal);
    const onArchived = (one: ArchivedSubscription) => this.logArchived(one);
    this.writer = new ResultWriter(holder, {
      store,
      breaker: circuitBreaker(config.limits),
      onArchived,
      clock,
      logger,
    });
    this.timer = new EarliestTimer(clock, () => void this.poll());
  }

  async start(): Promise<void> {
    this.timer.within(SOON_MS);
  }

  /** Running attempts may finish until `deadline`; the next start repeats the rest. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    this.stopping.abort();
    this.timer.cancel();
    const cut = () => this.cutOff.abort();
    deadline.addEventListener('abort', cut);
    if (deadline.aborted) cut();
    await this.polling;
    while (this.running.size > 0) await Promise.all(this.running);
    deadline.removeEventListener('abort', cut);
    try {
      await this.deps.events.release(this.deps.holder);
    } catch (error) {
      this.deps.logger.warn(
        { error: String(error) },
        'failed to release claimed webhooks; their claims end within a minute',
      );
    }
  }

  /** Something may be due. */
  wake(): void {
    if (!this.stopping.signal.aborted) this.timer.within(SOON_MS);
  }

  /** Waits until everything that is due was attempted, or until the signal aborts. */
  async flush(deadline: AbortSignal): Promise<void> {
    const { clock, events } = this.deps;
    const ended = whenAborted(deadline);
    while (!deadline.aborted) {
      // A running claim may have queried before the latest event was written.
      await this.polling;
      await this.poll();
      if (this.running.size > 0) await Promise.race([ended, Promise.all(this.running)]);
      else if ((await events.listReady(clock.nowUnixMs(), [], 1)).length === 0) return;
      // It waits for something that another process has.
      else await pause(clock, SOON_MS * 4, deadline);
    }
  }

  private poll(): Promise<void> {
    // An event that comes while due ones are listed may have come too late for that list.
    this.isStale = this.polling !== undefined;
    this.polling ??= this.look().finally(() => {
      this.polling = undefined;
      if (this.stopping.signal.aborted) return;
      this.timer.within(this.isStale ? SOON_MS : POLL_MS);
    });
    return this.polling;
  }

  private async look(): Promise<void> {
    const { events, clock, logger } = this.deps;
    if (this.freeCount <= 0 || this.stopping.signal.aborted) return;
    try {
      for (const standing of ['proven', 'unproven'] as const) {
        const busy = [...this.queues].filter(([, one]) => one.freeCount === 0 || one.isClaiming).map(([id]) => id);
        const room = this.roomFor({ isSuspect: standing === 'unproven' });
        const ready = await events.listReady(clock.nowUnixMs(), busy, room, standing);
        await Promise.all(ready.map((subscription) => this.pump(subscription)));
      }
    } catch (error) {
      logger.error({ error: String(error) }, 'failed to list due webhooks; retrying');
    }
  }

  /** Starts as many attempts for a subscription as its limit allows. */
  private async pump(subscription: WebhookSubscription): Promise<void> {
    const { events, clock, holder } = this.deps;
    const queue =
      this.queues.get(subscription.id) ?? new SubscriptionQueue(!isProven(subscription), clock.monotonicMs());
    this.queues.set(subscription.id, queue);
    const limit = Math.min(queue.freeCount, this.roomFor(queue));
    if (queue.isClaiming || limit <= 0 || this.stopping.signal.aborted) return;
    queue.isClaiming = true;
    // Counted from here on: others must not take the same room.
    this.inFlightCount += limit;
    let claimed: readonly WebhookEvent[] = [];
    const endMs = clock.monotonicMs() + this.config.leaseMs - SAVING_MS;
    try {
      const nowUnixMs = clock.nowUnixMs();
      const claim = { holder, nowUnixMs, leaseUntilUnixMs: nowUnixMs + this.config.leaseMs };
      claimed = await events.claim(subscription, limit, claim);
    } finally {
      queue.isClaiming = false;
      this.inFlightCount -= limit - claimed.length;
    }
    queue.inFlightCount += claimed.length;
    for (const event of claimed) {
      const work = this.attempt(subscription, event, queue, endMs).finally(() => this.running.delete(work));
      this.running.add(work);
    }
    if (queue.isIdle) this.queues.delete(subscription.id);
  }

  /** Returns how many attempts may begin now, for a queue like this one. */
  private roomFor({ isSuspect }: Pick<SubscriptionQueue, 'isSuspect'>): number {
    if (!isSuspect) return this.freeCount;
    let suspectCount = 0;
    for (const queue of this.queues.values()) if (queue.isSuspect) suspectCount += queue.inFlightCount;
    return Math.min(this.freeCount, Math.ceil(this.config.maxInFlight / 2) - suspectCount);
  }

  /** Returns how many attempts may begin now, of whatever subscription. */
  private get freeCount(): number {
    return this.config.maxInFlight - this.inFlightCount;
  }

  /** @param endMs when it is given up, in monotonic milliseconds: nothing of it may be under way when its claim ends */
  private async attempt(
    subscription: WebhookSubscription,
    event: WebhookEvent,
    queue: SubscriptionQueue,
    endMs: number,
  ): Promise<void> {
    const { clock, random, events } = this.deps;
    const startedUnixMs = clock.nowUnixMs();
    const startedMs = clock.monotonicMs();
    let isDelivered = false;
    const end = new AbortController();
    const cut = () => end.abort();
    this.cutOff.signal.addEventListener('abort', cut);
    const timer = clock.after(Math.max(0, endMs - startedMs), cut);
    try {
      const selected = await this.selected(subscription, event).catch(notSent);
      // Nothing was sent, and nothing failed: the queue goes on as it is.
      if (selected === undefined) {
        isDelivered = !queue.isSuspect;
        return;
      }
      // What was made for the first attempt is not made again: that may take reading all that is known of a run.
      const sentBefore = event.roundCount === 0 ? undefined : await events.lastRequest(event.id);
      const outgoing = 'isDelivered' in selected || sentBefore === undefined ? selected : { ...selected, sentBefore };
      const sent =
        'isDelivered' in outgoing ? outgoing : await sendEvent(this.deps.senderOf, subscription, outgoing, end.signal);
      // The shutdown of the program aborted it, which does not count against the endpoint.
      if (this.cutOff.signal.aborted && !sent.isDelivered) return;
      isDelivered = sent.isDelivered;
      const { schedule } = this.config;
      const delayMs = nextAttemptInMs(schedule, event.roundCount + 1, sent.retryAfterMs, random);
      const durationMs = Math.max(0, Math.round(clock.monotonicMs() - startedMs));
      const hasNext = delayMs !== undefined && !sent.isGone;
      const notDelivered = hasNext
        ? ({ state: 'pending', dueUnixMs: startedUnixMs + durationMs + delayMs } as const)
        : ({ state: 'failed' } as const);
      const next = isDelivered ? ({ state: 'delivered' } as const) : notDelivered;
      const { isDelivered: _, isGone, retryAfterMs, ...logged } = sent;
      const attempt = { startedUnixMs, durationMs, ...logged };
      const { urlVersion } = subscription;
      await this.writer.write({ event, urlVersion, attempt, next, isGone }, this.cutOff.signal);
      this.count(event, sent, hasNext, durationMs);
    } finally {
      timer.cancel();
      this.cutOff.signal.removeEventListener('abort', cut);
      queue.noteEnd(isDelivered);
      queue.inFlightCount -= 1;
      this.inFlightCount -= 1;
      await this.goOn(subscription, queue, isDelivered);
    }
  }

  /** Returns the event with the part of its run that it is about; `undefined` if it is not to be sent now. */
  private async selected(subscription: WebhookSubscription, event: WebhookEvent): Promise<WebhookEvent | undefined> {
    const { events, selector, holder, newKsuid, clock } = this.deps;
    if (!needsSelection(subscription, event)) return event;
    const found = await selector.select(subscription, event);
    if (found.kind === 'filtered') {
      await events.filter(event, found.reason, holder);
      return undefined;
    }
    return await events.select(event, found.selections, holder, () => `wev_${newKsuid(clock.nowUnixMs())}`);
  }

  /** Takes the next events of a subscription that answers, with its current settings; others wait for their turn. */
  private async goOn(subscription: WebhookSubscription, queue: SubscriptionQueue, isDelivered: boolean): Promise<void> {
    const { accountId, id } = subscription;
    // When several attempts end together, one of them continues for all.
    if (this.stopping.signal.aborted || queue.isClaiming) return;
    if (!isDelivered || this.freeCount < this.config.maxInFlight * CROWDED_PART) {
      if (queue.isIdle && this.queues.get(id) === queue) this.queues.delete(id);
      this.wake();
      return;
    }
    queue.isClaiming = true;
    try {
      const { clock, subscriptions } = this.deps;
      const isFresh = clock.monotonicMs() - queue.readMs < FRESH_MS;
      const current = isFresh ? subscription : await subscriptions.find(accountId, id);
      if (!isFresh) queue.readMs = clock.monotonicMs();
      queue.isClaiming = false;
      if (current !== undefined && current.pausedUntilUnixMs <= clock.nowUnixMs()) await this.pump(current);
    } catch (error) {
      this.deps.logger.error({ error: String(error) }, 'failed to claim webhooks; retrying');
    } finally {
      queue.isClaiming = false;
    }
    if (queue.isIdle && this.queues.get(id) === queue) this.queues.delete(id);
  }

  private count(event: WebhookEvent, sent: Sent, hasNext: boolean, durationMs: number): void {
    const { id, subscriptionId, eventType, facts } = event;
    if (sent.isDelivered) {
      this.counts.delivered += 1;
      this.countsBySubscription.add(subscriptionId, { deliveredCount: 1, deliveredMs: durationMs });
      return;
    }
    this.counts.failedAttempts += 1;
    this.countsBySubscription.add(subscriptionId, {
      failedAttemptCount: 1,
      failedMs: durationMs,
      failedCount: hasNext ? 0 : 1,
    });
    if (hasNext) return;
    this.counts.failed += 1;
    const fields = { event: id, subscription: subscriptionId, eventType, run: facts.runId, reason: sent.error };
    this.deps.logger.warn(fields, 'every attempt to deliver a webhook failed; it can be redelivered');
  }

  private logArchived(archived: ArchivedSubscription): void {
    const { id, name, reason } = archived;
    this.counts.archived += 1;
    this.countsBySubscription.archive(archived);
    this.deps.logger.error(
      { subscription: id, name, reason },
      'archived a webhook subscription; nothing more is sent to it until it is set active or gets a new URL',
    );
  }
}

/** What a writer works with. */
interface ResultWriterDeps {
  readonly store: Pick<WebhookEventStore, 'finish'>;
  readonly breaker: CircuitBreaker;
  readonly onArchived: (subscription: ArchivedSubscription) => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Results written by one transaction. */
const MAX_BATCH = 256;
/** Between two tries while the state cannot be written, in milliseconds. */
const RETRY_MS = 1_000;

/** Saves results of attempts. Those that arrive during a write share the next one. */
class ResultWriter {
  private waiting: { readonly result: AttemptResult; readonly done: () => void }[] = [];
  private isWriting = false;

  /** @param holder claims the events */
  constructor(
    private readonly holder: string,
    private readonly deps: ResultWriterDeps,
  ) {}

  /** Resolves when it is saved; retries until then, or until the signal aborts. */
  write(result: AttemptResult, stop: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push({ result, done: resolve });
      if (!this.isWriting) void this.drain(stop);
    });
  }

  private async drain(stop: AbortSignal): Promise<void> {
    this.isWriting = true;
    while (this.waiting.length > 0) {
      // What ends at the same time shares a transaction.
      await new Promise(setImmediate);
      const batch = this.waiting.splice(0, MAX_BATCH);
      await this.save(
        batch.map(({ result }) => result),
        stop,
      );
      for (const { done } of batch) done();
    }
    this.isWriting = false;
  }

  private async save(results: readonly AttemptResult[], stop: AbortSignal): Promise<void> {
    const { store, breaker, onArchived, clock, logger } = this.deps;
    const save = async () => {
      try {
        for (const one of await store.finish(results, this.holder, breaker)) onArchived(one);
      } catch (error) {
        logger.error(
          { error: String(error), count: results.length },
          'failed to save results of webhook deliveries; retrying',
        );
        throw error;
      }
    };
    // What is not saved when it is stopped is delivered again when its claim ends.
    await retry(save, { clock, signal: stop, delayMs: () => RETRY_MS }).catch(() => undefined);
  }
}

/** The most attempts at a time for one subscription. */
const MAX_CONCURRENCY = 8;

/**
 * The number of concurrent attempts of one subscription: one at first and after a failure, more with each success. So an
 * endpoint that does not answer occupies one connection, and a fast one is not slowed down by its own events.
 */
class SubscriptionQueue {
  inFlightCount = 0;
  /** A claim is running. */
  isClaiming = false;
  private limit = 1;

  /**
   * @param isSuspect whether its last delivery has failed, or there was none
   * @param readMs when the subscription was read, in monotonic milliseconds
   */
  constructor(
    public isSuspect: boolean,
    public readMs: number,
  ) {}

  /** Returns how many attempts may begin now. */
  get freeCount(): number {
    return Math.max(0, this.limit - this.inFlightCount);
  }

  get isIdle(): boolean {
    return this.inFlightCount === 0 && !this.isClaiming;
  }

  noteEnd(isDelivered: boolean): void {
    this.isSuspect = !isDelivered;
    this.limit = isDelivered ? Math.min(this.limit * 2, MAX_CONCURRENCY) : 1;
  }
}

/** Deliveries of a subscription, counted by this process. */
export interface DeliveryCounts {
  readonly deliveredCount: number;
  /** Events whose attempts have all failed. */
  readonly failedCount: number;
  /** Events that waited when it was archived. */
  readonly skippedCount: number;
  /** Attempts that failed. Each delivered event had one attempt that did not. */
  readonly failedAttemptCount: number;
  /** Duration of attempts that were delivered, and of those that failed, in milliseconds. */
  readonly deliveredMs: number;
  readonly failedMs: number;
}

/** Subscriptions that are counted; beyond these, the one without a delivery for longest is dropped. */
const MAX_COUNTED = 10_000;
const NOTHING: DeliveryCounts = {
  ...{ deliveredCount: 0, failedCount: 0, skippedCount: 0, failedAttemptCount: 0 },
  ...{ deliveredMs: 0, failedMs: 0 },
};

/** Counts deliveries by their subscription, since the start. */
export class CountsBySubscription {
  /** Ordered by the last delivery. */
  private readonly counts = new Map<string, DeliveryCounts>();

  /** How often a subscription was archived, by the reason. */
  readonly archivings: { [R in ArchiveReason]: number } = { gone: 0, failures_in_a_row: 0, failing_too_long: 0 };

  /** @returns zeros for a subscription without deliveries */
  of(subscriptionId: string): DeliveryCounts {
    return this.counts.get(subscriptionId) ?? NOTHING;
  }

  add(subscriptionId: string, more: Partial<DeliveryCounts>): void {
    const before = this.of(subscriptionId);
    const sum = {
      deliveredCount: before.deliveredCount + (more.deliveredCount ?? 0),
      failedCount: before.failedCount + (more.failedCount ?? 0),
      skippedCount: before.skippedCount + (more.skippedCount ?? 0),
      failedAttemptCount: before.failedAttemptCount + (more.failedAttemptCount ?? 0),
      deliveredMs: before.deliveredMs + (more.deliveredMs ?? 0),
      failedMs: before.failedMs + (more.failedMs ?? 0),
    };
    setLatest(this.counts, subscriptionId, sum, MAX_COUNTED);
  }

  archive({ id, reason, skippedCount }: Pick<ArchivedSubscription, 'id' | 'reason' | 'skippedCount'>): void {
    this.add(id, { skippedCount });
    const kind = archiveReasonOf(reason);
    if (kind !== undefined) this.archivings[kind] += 1;
  }
}
