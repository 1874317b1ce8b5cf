import type { Clock, Timer } from '../component/clock.js';
import type { Logger } from '../component/logger.js';
import { reasonOf } from '../component/reason-of.js';
import type { RetryPolicy } from '../delivery/retry-policy.js';
import type { SendResult } from '../delivery/transport.js';
import type { Signal } from '../record/record-batch.js';
import type { BatchOutcome, Destination, ItemBatch, SignalStatus } from './destination.js';
import type { MappedItem } from './run-mapper.js';
import type { ExportStretch } from './signal-queue.js';
import { LaneQueue } from './signal-queue.js';

/** Statuses by which a receiver says that it has no place for logs at all. */
const NO_LOGS: ReadonlySet<number> = new Set([404, 415, 501]);
/** So many failures in a row, over all requests, are no chance: the destination is left alone for a while. */
const MAX_CHANCE_FAILURES = 4;
/** Different statuses of refusal that are logged, each once. */
const MAX_LOGGED_STATUSES = 20;

/**
 * What comes after an attempt. `done`: the items were taken, or refused for good. `retry`: this request failed, others may
 * go on. `paused`: the destination takes nothing now.
 */
export type AfterAttempt = 'done' | 'retry' | 'paused';

type RetryableResult = Extract<SendResult, { readonly kind: 'retryable' }>;

/** One signal on its way to one destination: whether it may send now, and what became of what it sent. */
export class ExportLane {
  private isOff: boolean;
  /** The wait in which nothing is sent; `undefined` when there is none. */
  private waiting: Timer | undefined;
  private waitsUntilMs = 0;
  private failedInRow = 0;
  private counts = { sent: 0, refused: 0, rejected: 0, forwarded: 0, failedAttempts: 0 };
  private readonly loggedStatuses = new Set<number>();
  private hasLoggedPartial = false;
  private hasLoggedFailure = false;
  private hasLoggedPause = false;
  /** The last failure in words; `null` after a success. */
  lastError: string | null = null;

  /** @param onReady called when a wait is over. */
  constructor(
    readonly signal: Signal,
    isAsked: boolean,
    private readonly destination: string,
    private readonly deps: { readonly clock: Clock; readonly logger: Logger; readonly policy: RetryPolicy },
    private readonly onReady: () => void,
  ) {
    this.isOff = !isAsked;
  }

  get state(): SignalStatus['state'] {
    if (this.isOff) return 'off';
    return this.waiting === undefined ? 'ready' : 'waiting';
  }

  /** Whether the destination failed so often that it gets one request at a time, until it takes one. */
  get isProbing(): boolean {
    return this.failedInRow > MAX_CHANCE_FAILURES;
  }

  get status(): SignalStatus {
    return {
      state: this.state,
      sentCount: this.counts.sent,
      refusedCount: this.counts.refused,
      rejectedCount: this.counts.rejected,
      forwardedCount: this.counts.forwarded,
      failedAttemptCount: this.counts.failedAttempts,
    };
  }

  /** Takes down what became of an attempt. */
  settle(result: SendResult, itemCount: number, kind: 'sent' | 'forwarded' = 'sent'): AfterAttempt {
    if (this.isOff) return 'done';
    if (result.kind !== 'accepted' && this.signal === 'logs' && NO_LOGS.has(result.status ?? 0)) {
      this.turnOff(result.status, result.message);
      return 'done';
    }
    switch (result.kind) {
      case 'accepted':
        this.accept(result.rejectedCount, result.message, itemCount, kind);
        return 'done';
      case 'refused':
        this.refuse(result.status, result.message, itemCount);
        return 'done';
      case 'retryable':
        return this.fail(result);
    }
  }

  private accept(rejectedCount: number, message: string, itemCount: number, kind: 'sent' | 'forwarded'): void {
    if (this.hasLoggedPause) this.log('info', {}, 'the destination takes exports again');
    this.hasLoggedPause = false;
    this.failedInRow = 0;
    this.lastError = null;
    this.counts[kind] += Math.max(0, itemCount - rejectedCount);
    this.counts.rejected += rejectedCount;
    if (rejectedCount > 0 && !this.hasLoggedPartial) {
      this.hasLoggedPartial = true;
      this.log(
        'warn',
        { rejectedCount, answer: message },
        'the destination rejected a part of an export; further ones are counted only',
      );
    }
  }

  private refuse(status: number, message: string, itemCount: number): void {
    this.failedInRow = 0;
    this.lastError = `refused with status ${status}: ${message}`;
    this.counts.refused += itemCount;
    if (this.loggedStatuses.has(status) || this.loggedStatuses.size >= MAX_LOGGED_STATUSES) return;
    this.loggedStatuses.add(status);
    this.log(
      'error',
      { status, answer: message, itemCount },
      'the destination refused an export, which is not sent again; check its endpoint and headers; further refusals are counted only',
    );
  }

  private fail({ status, retryAfterMs, message }: RetryableResult): AfterAttempt {
    this.counts.failedAttempts += 1;
    this.lastError = status === null ? message : `status ${status}: ${message}`;
    const isAskedToWait = status === 429 || (retryAfterMs !== null && retryAfterMs > 0);
    // Requests that were under way when the wait began say nothing new by failing, too.
    if (this.waiting !== undefined && !isAskedToWait) return 'paused';
    this.failedInRow += 1;
    if (isAskedToWait) this.failedInRow = Math.max(this.failedInRow, MAX_CHANCE_FAILURES + 1);
    if (!this.isProbing) {
      this.logFirstFailure(status, message);
      return 'retry';
    }
    const delayMs = this.deps.policy.delayMs(this.failedInRow - MAX_CHANCE_FAILURES, retryAfterMs);
    if (!this.hasLoggedPause) {
      this.hasLoggedPause = true;
      this.log(
        'warn',
        { status, answer: message, delayMs },
        'the destination does not take exports now; they wait on disk and are tried again',
      );
    }
    this.pause(delayMs);
    return 'paused';
  }

  private logFirstFailure(status: number | null, message: string): void {
    if (this.hasLoggedFailure) return;
    this.hasLoggedFailure = true;
    this.log(
      'warn',
      { status, answer: message },
      'a request to the destination failed and is tried again; further failures are counted only',
    );
  }

  /** Of several waits the one that ends last counts. */
  private pause(delayMs: number): void {
    const untilMs = this.deps.clock.monotonicMs() + delayMs;
    if (this.waiting !== undefined && untilMs <= this.waitsUntilMs) return;
    this.waiting?.cancel();
    this.waitsUntilMs = untilMs;
    this.waiting = this.deps.clock.after(delayMs, () => this.endWait());
  }

  private endWait(): void {
    this.waiting = undefined;
    this.onReady();
  }

  private turnOff(status: number | null, message: string): void {
    if (this.isOff) return;
    this.isOff = true;
    this.log(
      'warn',
      { status, answer: message },
      'the destination takes no logs; they go as span events alone until the next start',
    );
  }

  private log(level: 'info' | 'warn' | 'error', fields: Record<string, string | number | null>, message: string): void {
    this.deps.logger[level]({ destination: this.destination, signal: this.signal, ...fields }, message);
  }
}

/** How much one lane has under way. */
export interface LaneSenderLimits {
  readonly maxBatchItems: number;
  /** Requests at a time. Where it is more than one, as many again less one may be answered before one that is tried again. */
  readonly maxInFlight: number;
}

/** What a sender works with. */
export interface LaneSenderDeps {
  readonly destination: Destination;
  readonly clock: Clock;
  /** When a single request that failed is tried again while others succeed. */
  readonly retryPolicy: RetryPolicy;
  /** Items were taken, or refused for good. Resolves when that is remembered. */
  readonly onAnswered: (stretches: readonly ExportStretch[]) => Promise<void>;
  /** Items wait again, or were passed over, because the destination takes nothing now. */
  readonly onGivenBack: (stretches: readonly ExportStretch[]) => void;
  /** There may be room for more. */
  readonly onProgress: () => void;
}

interface Shipment {
  readonly number: number;
  stretches: readonly ExportStretch[];
  failedAttempts: number;
  /** The wait before it is tried again. */
  timer: Timer | undefined;
}

/**
 * Sends what waits for one lane, several requests at a time. One that fails while others succeed is tried again by itself;
 * when the lane has to wait, everything that failed waits in the queue again. The requests between the oldest one that is
 * not answered and the newest are bounded, and with them what is sent twice after a kill.
 */
export class LaneSender {
  readonly queue = new LaneQueue();
  /** Requests that are not settled, oldest first. */
  private readonly shipments = new Set<Shipment>();
  private nextNumber = 0;
  private sendingCount = 0;

  constructor(
    readonly lane: ExportLane,
    private readonly limits: LaneSenderLimits,
    private readonly deps: LaneSenderDeps,
    private readonly stop: AbortSignal,
  ) {}

  /** Whether nothing is under way, and nothing can be sent before a wait is over. */
  get isResting(): boolean {
    return this.sendingCount === 0 && !this.canSend(true);
  }

  /** Whether everything was answered that was handed to it. */
  get isDrained(): boolean {
    return this.queue.count === 0 && this.shipments.size === 0;
  }

  /** Whether it has something to send and waits before it tries. */
  get isWaiting(): boolean {
    return this.lane.state === 'waiting' || (this.sendingCount === 0 && this.shipments.size > 0);
  }

  /** Whether a request is under way. */
  get isSending(): boolean {
    return this.sendingCount > 0;
  }

  /** Sends what may be sent now. @param isAll also less than fills a request. */
  send(isAll: boolean): void {
    while (this.canSend(isAll)) {
      const stretches = this.queue.take(this.limits.maxBatchItems);
      const shipment = { number: this.nextNumber, stretches, failedAttempts: 0, timer: undefined };
      this.nextNumber += 1;
      this.shipments.add(shipment);
      void this.ship(shipment);
    }
  }

  private canSend(isAll: boolean): boolean {
    const { maxBatchItems, maxInFlight } = this.limits;
    if (this.stop.aborted || this.lane.state !== 'ready') return false;
    if (this.queue.count < (isAll ? 1 : maxBatchItems)) return false;
    const [oldest] = this.shipments;
    // With one request at a time, a second one is not even begun while the first waits to be tried again.
    if (oldest !== undefined && this.nextNumber - oldest.number >= 2 * maxInFlight - 1) return false;
    return this.sendingCount < (this.lane.isProbing ? 1 : maxInFlight);
  }

  /** What is thrown here comes from nothing outside; it ends the thread of exports, which a new one takes up from the cursors. */
  private async ship(shipment: Shipment): Promise<void> {
    this.sendingCount += 1;
    shipment.timer = undefined;
    try {
      await this.attempt(shipment);
    } finally {
      this.sendingCount -= 1;
      this.deps.onProgress();
    }
  }

  private async attempt(shipment: Shipment): Promise<void> {
    const { signal } = this.lane;
    let maxItems = this.limits.maxBatchItems;
    for (;;) {
      shipment.stretches = shipment.stretches.filter((stretch) => stretch.progress.isUnderWay(stretch));
      if (shipment.stretches.length === 0) break;
      const items = shipment.stretches.flatMap((stretch) => stretch.items).slice(0, maxItems);
      const outcome = await this.trySend(signal, items);
      if (outcome === 'unsendable') {
        maxItems = Math.ceil(items.length / 2);
        continue;
      }
      const { result, itemCount } = outcome;
      if (this.stop.aborted && result.kind === 'retryable') return;
      const next = this.lane.settle(result, itemCount);
      if (next === 'done') {
        await this.deps.onAnswered(takeFront(shipment, this.lane.state === 'off' ? Infinity : itemCount));
        continue;
      }
      shipment.failedAttempts += 1;
      if (next === 'paused') this.giveBackFailed(shipment);
      else this.retryLater(shipment);
      return;
    }
    this.shipments.delete(shipment);
  }

  /** One attempt. Items that the destination cannot even encode are tried by halves, until the one that is at fault is alone. */
  private async trySend(signal: Signal, items: readonly MappedItem[]): Promise<BatchOutcome | 'unsendable'> {
    try {
      return await this.deps.destination.send(toItemBatch(signal, items), this.stop);
    } catch (error) {
      if (items.length > 1) return 'unsendable';
      const message = `the item could not be sent: ${reasonOf(error)}`;
      return { result: { kind: 'refused', status: 0, message }, itemCount: 1 };
    }
  }

  private retryLater(shipment: Shipment): void {
    const delayMs = this.deps.retryPolicy.delayMs(shipment.failedAttempts, null);
    shipment.timer = this.deps.clock.after(delayMs, () => {
      if (!this.stop.aborted) void this.ship(shipment);
    });
  }

  /** The newest first, so that they stand in the queue in their order. */
  private giveBackFailed(failed: Shipment): void {
    const waiting = [...this.shipments].filter((one) => one === failed || one.timer !== undefined).reverse();
    for (const shipment of waiting) {
      shipment.timer?.cancel();
      this.shipments.delete(shipment);
      for (const stretch of [...shipment.stretches].reverse()) this.queue.giveBack(stretch);
      this.deps.onGivenBack(shipment.stretches);
    }
  }
}

/** Takes as many items from the front of a shipment as were answered. */
function takeFront(shipment: Shipment, itemCount: number): readonly ExportStretch[] {
  const front: ExportStretch[] = [];
  const rest: ExportStretch[] = [];
  let left = itemCount;
  for (const stretch of shipment.stretches) {
    if (stretch.items.length <= left) front.push(stretch);
    else if (left <= 0) rest.push(stretch);
    else {
      const [answered, open] = stretch.progress.split(stretch, left);
      front.push(answered);
      rest.push(open);
    }
    left -= stretch.items.length;
  }
  shipment.stretches = rest;
  return front;
}

type SpanOf = Extract<MappedItem, { signal: 'traces' }>['span'];
type LogOf = Extract<MappedItem, { signal: 'logs' }>['log'];

/** Items of one signal as a destination takes them. */
export function toItemBatch(signal: Signal, mapped: readonly MappedItem[]): ItemBatch {
  if (signal === 'traces') {
    const items: SpanOf[] = [];
    for (const item of mapped) if (item.signal === 'traces') items.push(item.span);
    return { signal, items };
  }
  const items: LogOf[] = [];
  for (const item of mapped) if (item.signal === 'logs') items.push(item.log);
  return { signal, items };
}
