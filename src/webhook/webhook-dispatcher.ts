import { setMaxListeners } from 'node:events';
import type { Clock } from '../component/clock.js';
import type { Component } from '../component/component.js';
import { EarliestTimer } from '../component/earliest-timer.js';
import type { Logger } from '../component/logger.js';
import { pause } from '../component/pause.js';
import { whenAborted } from '../component/when-aborted.js';
import type { StandingRule, WebhookEventStore } from '../store/webhook/event-store.js';
import type { SubscriptionStore } from '../store/webhook/subscription-store.js';
import type { ArchivedSubscription, AttemptResult, WebhookEvent } from '../store/webhook/webhook-event.js';
import type { WebhookKind, WebhookSubscription } from '../store/webhook/webhook-subscription.js';
import { type AttemptSchedule, nextAttemptInMs } from './attempt-schedule.js';
import { DeliveryTallies } from './delivery-tallies.js';
import type { EventSender, Sent } from './event-sender.js';
import { sendEvent } from './send-event.js';
import { type StandingLimits, standingRule } from './standing-rule.js';

/** What a dispatcher goes by. */
export interface DispatcherConfig {
  readonly schedule: AttemptSchedule;
  readonly limits: StandingLimits;
  /** Attempts under way at a time, in all. */
  readonly maxInFlight: number;
  /** Nobody else takes an event before, in milliseconds: longer than an attempt and writing down what came of it. */
  readonly leaseMs: number;
}

/** The defaults. */
export const DISPATCHER_DEFAULTS = { maxInFlight: 512, leaseMs: 45_000 } as const;

/** What a dispatcher works with. */
export interface DispatcherDeps {
  readonly events: WebhookEventStore;
  readonly subscriptions: Pick<SubscriptionStore, 'find'>;
  readonly senders: Readonly<Record<WebhookKind, EventSender>>;
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

/** How often what is due is looked for, in milliseconds: retries, and what other processes have written. */
const POLL_MS = 1_000;
const SOON_MS = 5;
/** What is known of a subscription is good for so long, in milliseconds. */
const FRESH_MS = 1_000;

/**
 * Delivers what is in the outbox. Each subscription has a lane of its own, so that none waits for another's endpoint; at
 * most half of all attempts are for subscriptions whose last delivery has failed.
 */
export class WebhookDispatcher implements Component {
  readonly name = 'webhooks';
  readonly counts: { -readonly [K in keyof DispatcherCounts]: number } = {
    ...{ delivered: 0, failedAttempts: 0, failed: 0, archived: 0 },
  };
  /** The same by subscription. */
  readonly tallies = new DeliveryTallies();
  private readonly lanes = new Map<string, SubscriptionLane>();
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
    // Every attempt under way listens.
    setMaxListeners(0, this.cutOff.signal);
    const onArchived = (one: ArchivedSubscription) => this.sayArchived(one);
    this.writer = new ResultWriter(holder, { store, rule: standingRule(config.limits), onArchived, clock, logger });
    this.timer = new EarliestTimer(clock, () => void this.poll());
  }

  async start(): Promise<void> {
    this.timer.within(SOON_MS);
  }

  /** What is under way may end before `deadline`; it is delivered again after that. */
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
      this.deps.logger.warn({ error: String(error) }, 'webhooks could not be given back; they are free in a minute');
    }
  }

  /** Something may be due. */
  wake(): void {
    if (!this.stopping.signal.aborted) this.timer.within(SOON_MS);
  }

  /** Waits until everything that is due was tried, or until the signal aborts. */
  async flush(deadline: AbortSignal): Promise<void> {
    const { clock, events } = this.deps;
    const ended = whenAborted(deadline);
    while (!deadline.aborted) {
      // One under way may have looked before the last came.
      await this.polling;
      await this.poll();
      if (this.running.size > 0) await Promise.race([ended, Promise.all(this.running)]);
      else if ((await events.listReady(clock.nowUnixMs(), [], 1)).length === 0) return;
      // It waits for something that another process has.
      else await pause(clock, SOON_MS * 4, deadline);
    }
  }

  private poll(): Promise<void> {
    // Who comes while it is looked up what is due may have come too late for that.
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
    const freeCount = this.config.maxInFlight - this.inFlightCount;
    if (freeCount <= 0 || this.stopping.signal.aborted) return;
    try {
      const busy = [...this.lanes].filter(([, lane]) => lane.freeCount === 0 || lane.isClaiming).map(([id]) => id);
      const ready = await events.listReady(clock.nowUnixMs(), busy, freeCount);
      await Promise.all(ready.map((subscription) => this.pump(subscription)));
    } catch (error) {
      logger.error({ error: String(error) }, 'what webhooks are due could not be looked up; it is tried again');
    }
  }

  /** Begins as many attempts of a subscription as may be under way. */
  private async pump(subscription: WebhookSubscription): Promise<void> {
    const { events, clock, holder } = this.deps;
    const lane =
      this.lanes.get(subscription.id) ?? new SubscriptionLane(subscription.failedCount > 0, clock.monotonicMs());
    this.lanes.set(subscription.id, lane);
    const limit = Math.min(lane.freeCount, this.roomFor(lane));
    if (lane.isClaiming || limit <= 0 || this.stopping.signal.aborted) return;
    lane.isClaiming = true;
    // Counted from here on: others must not take the same room.
    this.inFlightCount += limit;
    let claimed: readonly WebhookEvent[] = [];
    try {
      const nowUnixMs = clock.nowUnixMs();
      const claim = { holder, nowUnixMs, leaseUntilUnixMs: nowUnixMs + this.config.leaseMs };
      claimed = await events.claim(subscription, limit, claim);
    } finally {
      lane.isClaiming = false;
      this.inFlightCount -= limit - claimed.length;
    }
    lane.inFlightCount += claimed.length;
    for (const event of claimed) {
      const work = this.attempt(subscription, event, lane).finally(() => this.running.delete(work));
      this.running.add(work);
    }
    if (lane.isIdle) this.lanes.delete(subscription.id);
  }

  /** Attempts that may begin in all, for a lane like that. */
  private roomFor({ isSuspect }: SubscriptionLane): number {
    const { maxInFlight } = this.config;
    if (!isSuspect) return maxInFlight - this.inFlightCount;
    let suspectCount = 0;
    for (const lane of this.lanes.values()) if (lane.isSuspect) suspectCount += lane.inFlightCount;
    return Math.min(maxInFlight - this.inFlightCount, Math.ceil(maxInFlight / 2) - suspectCount);
  }

  private async attempt(subscription: WebhookSubscription, event: WebhookEvent, lane: SubscriptionLane): Promise<void> {
    const { clock, random } = this.deps;
    const startedUnixMs = clock.nowUnixMs();
    const startedMs = clock.monotonicMs();
    let isDelivered = false;
    try {
      const sent = await sendEvent(this.deps.senders, subscription, event, this.cutOff.signal);
      // It was cut off by the end of the program: that says nothing of the endpoint.
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
      const attempt = { startedUnixMs, durationMs, ...logOf(sent) };
      const { urlVersion } = subscription;
      await this.writer.write({ event, urlVersion, attempt, next, isGone: sent.isGone }, this.cutOff.signal);
      this.count(event, sent, hasNext, durationMs);
    } finally {
      lane.noteEnd(isDelivered);
      lane.inFlightCount -= 1;
      this.inFlightCount -= 1;
      await this.goOn(subscription, lane, isDelivered);
    }
  }

  /** The next events of a subscription, with what it is by now. */
  private async goOn(subscription: WebhookSubscription, lane: SubscriptionLane, isDelivered: boolean): Promise<void> {
    const { accountId, id } = subscription;
    // Of several that end together one goes on, for all of them.
    if (this.stopping.signal.aborted || lane.isClaiming) return;
    lane.isClaiming = true;
    try {
      const { clock, subscriptions } = this.deps;
      const isFresh = isDelivered && clock.monotonicMs() - lane.readMs < FRESH_MS;
      const current = isFresh ? subscription : await subscriptions.find(accountId, id);
      if (!isFresh) lane.readMs = clock.monotonicMs();
      lane.isClaiming = false;
      if (current !== undefined && current.pausedUntilUnixMs <= clock.nowUnixMs()) await this.pump(current);
    } catch (error) {
      this.deps.logger.error({ error: String(error) }, 'webhooks could not be claimed; it is tried again');
    } finally {
      lane.isClaiming = false;
    }
    if (lane.isIdle && this.lanes.get(id) === lane) this.lanes.delete(id);
  }

  private count(event: WebhookEvent, sent: Sent, hasNext: boolean, durationMs: number): void {
    const { id, subscriptionId, eventType, facts } = event;
    if (sent.isDelivered) {
      this.counts.delivered += 1;
      this.tallies.add(subscriptionId, { deliveredCount: 1, deliveredMs: durationMs });
      return;
    }
    this.counts.failedAttempts += 1;
    this.tallies.add(subscriptionId, { failedAttemptCount: 1, failedMs: durationMs, failedCount: hasNext ? 0 : 1 });
    if (hasNext) return;
    this.counts.failed += 1;
    const fields = { event: id, subscription: subscriptionId, eventType, run: facts.runId, reason: sent.error };
    this.deps.logger.warn(fields, 'a webhook was not delivered in any attempt; it can be replayed');
  }

  private sayArchived(archived: ArchivedSubscription): void {
    const { id, name, reason } = archived;
    this.counts.archived += 1;
    this.tallies.archive(archived);
    this.deps.logger.error(
      { subscription: id, name, reason },
      'a webhook subscription was archived: nothing more is sent to it until it is set active or gets a new URL',
    );
  }
}

function logOf(sent: Sent) {
  return {
    httpStatusCode: sent.httpStatusCode,
    error: sent.error,
    requestHeaders: JSON.stringify(sent.requestHeaders),
    requestBody: sent.requestBody,
    responseHeaders: JSON.stringify(sent.responseHeaders),
    responseBody: sent.responseBody,
    resentAfter: sent.resentAfter,
  };
}

/** What a writer works with. */
export interface ResultWriterDeps {
  readonly store: Pick<WebhookEventStore, 'finish'>;
  readonly rule: StandingRule;
  readonly onArchived: (subscription: ArchivedSubscription) => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Results written by one transaction. */
const MAX_BATCH = 256;
/** Between two tries while the state cannot be written, in milliseconds. */
const RETRY_MS = 1_000;

/** Writes down what attempts came to. Those that come while a write is under way share the next one. */
export class ResultWriter {
  private waiting: { readonly result: AttemptResult; readonly done: () => void }[] = [];
  private isWriting = false;

  /** @param holder who has claimed what is written down */
  constructor(
    private readonly holder: string,
    private readonly deps: ResultWriterDeps,
  ) {}

  /** Resolves when it is written; tries until then, or until the signal aborts. */
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
    const { store, rule, onArchived, clock, logger } = this.deps;
    for (;;) {
      try {
        for (const one of await store.finish(results, this.holder, rule)) onArchived(one);
        return;
      } catch (error) {
        const fields = { error: String(error), count: results.length };
        // What is not written down is delivered again after its lease.
        logger.error(fields, 'what came of deliveries could not be written down; it is tried again');
        if (stop.aborted) return;
        await pause(clock, RETRY_MS, stop);
      }
    }
  }
}

/** The most attempts at a time for one subscription. */
const MAX_CONCURRENCY = 8;

/**
 * How many attempts one subscription may have under way: one at first and after a failure, more with each success. So an
 * endpoint that does not answer holds one connection, and a fast one is not held up by its own events.
 */
export class SubscriptionLane {
  inFlightCount = 0;
  /** A claim is under way. */
  isClaiming = false;
  private limit = 1;

  /**
   * @param isSuspect whether its last delivery has failed
   * @param readMs when the subscription was read, in monotonic milliseconds
   */
  constructor(
    public isSuspect: boolean,
    public readMs: number,
  ) {}

  /** Attempts that may begin now. */
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
