import type { Clock, Timer } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { RetryPolicy } from '../core/retry-policy.js';
import type { Signal } from '../record/record-batch.js';
import type { BatchOutcome, Destination, ItemBatch } from './destination.js';
import type { SignalBreaker } from './signal-breaker.js';
import type { RunBatch, SignalQueue } from './signal-queue.js';
import type { EncodedLog, EncodedSpan } from './wire/encoded-items.js';

/** What a sender works with. */
export interface SignalSenderDeps {
  readonly destination: Destination;
  readonly clock: Clock;
  /** When a single request that failed is tried again while others succeed. */
  readonly retryPolicy: RetryPolicy;
  /** Items in one request, at most. */
  readonly maxBatchItems: number;
  /** Requests at a time. Where it is more than one, as many again less one may be answered before one that is tried again. */
  readonly maxInFlight: number;
  /** The next link: items were taken, or refused for good. Resolves when that is remembered. */
  readonly onAnswered: (batches: readonly RunBatch[]) => Promise<void>;
  /** A request is over, or waits: there may be room for another. */
  readonly onSettled: () => void;
  /** Aborts when the worker stops. */
  readonly stop: AbortSignal;
}

/** One request, with batches of several runs, until all of it is answered. */
interface Shipment {
  readonly number: number;
  batches: readonly RunBatch[];
  failedAttempts: number;
  /** The wait before it is tried again. */
  timer: Timer | undefined;
}

/**
 * Sends what waits in one signal's queue, several requests at a time. One that fails while others succeed is tried again by
 * itself; when the breaker pauses, everything that failed waits in the queue again. The requests between the oldest one that
 * is not answered and the newest are bounded, and with them what is sent twice after a kill.
 */
export class SignalSender {
  readonly breaker: SignalBreaker;
  /** Requests that are not settled, oldest first. */
  private readonly shipments = new Set<Shipment>();
  private nextNumber = 0;
  private sendingCount = 0;

  constructor(
    readonly queue: SignalQueue,
    private readonly deps: SignalSenderDeps,
  ) {
    this.breaker = queue.breaker;
  }

  /** Whether nothing is under way, and nothing can be sent before a pause is over. */
  get isResting(): boolean {
    return this.sendingCount === 0 && !this.canSend(true);
  }

  /** Whether everything was answered that was enqueued. */
  get isDrained(): boolean {
    return this.queue.count === 0 && this.shipments.size === 0;
  }

  /** Whether it has something to send and waits before it tries. */
  get isWaiting(): boolean {
    return this.breaker.state === 'waiting' || (this.sendingCount === 0 && this.shipments.size > 0);
  }

  /** Whether a request is under way. */
  get isSending(): boolean {
    return this.sendingCount > 0;
  }

  /** Sends what may be sent now. @param isAll also less than fills a request. */
  send(isAll: boolean): void {
    while (this.canSend(isAll)) {
      const batches = this.queue.take(this.deps.maxBatchItems);
      const shipment = { number: this.nextNumber, batches, failedAttempts: 0, timer: undefined };
      this.nextNumber += 1;
      this.shipments.add(shipment);
      void this.ship(shipment);
    }
  }

  private canSend(isAll: boolean): boolean {
    const { maxBatchItems, maxInFlight, stop } = this.deps;
    if (stop.aborted || this.breaker.state !== 'ready') return false;
    if (this.queue.count < (isAll ? 1 : maxBatchItems)) return false;
    const [oldest] = this.shipments;
    // With one request at a time, a second one is not even begun while the first waits to be tried again.
    if (oldest !== undefined && this.nextNumber - oldest.number >= 2 * maxInFlight - 1) return false;
    return this.sendingCount < (this.breaker.isProbing ? 1 : maxInFlight);
  }

  /** What is thrown here comes from nothing outside; it ends the thread of exports, which a new one takes up from the cursors. */
  private async ship(shipment: Shipment): Promise<void> {
    this.sendingCount += 1;
    shipment.timer = undefined;
    try {
      await this.sendUntilAnswered(shipment);
    } finally {
      this.sendingCount -= 1;
      this.deps.onSettled();
    }
  }

  private async sendUntilAnswered(shipment: Shipment): Promise<void> {
    let maxItems = this.deps.maxBatchItems;
    for (;;) {
      shipment.batches = shipment.batches.filter((batch) => batch.progress.isUnderWay(batch));
      if (shipment.batches.length === 0) break;
      const request = toItemBatch(this.breaker.signal, shipment.batches, maxItems);
      const outcome = await this.attempt(request);
      if (outcome === 'unsendable') {
        maxItems = Math.ceil(request.items.length / 2);
        continue;
      }
      const { result, itemCount } = outcome;
      if (this.deps.stop.aborted && result.kind === 'retryable') return;
      const next = this.breaker.settle(result, itemCount);
      if (next === 'done') {
        await this.deps.onAnswered(takeFront(shipment, this.breaker.state === 'off' ? Infinity : itemCount));
        continue;
      }
      shipment.failedAttempts += 1;
      if (next === 'paused') this.requeueFailed(shipment);
      else this.retryLater(shipment);
      return;
    }
    this.shipments.delete(shipment);
  }

  /** One attempt. Items that the destination cannot even encode are tried by halves, until the one that is at fault is alone. */
  private async attempt(request: ItemBatch): Promise<BatchOutcome | 'unsendable'> {
    try {
      return await this.deps.destination.send(request, this.deps.stop);
    } catch (error) {
      if (request.items.length > 1) return 'unsendable';
      const message = `the item could not be sent: ${reasonOf(error)}`;
      return { result: { kind: 'refused', status: 0, message }, itemCount: 1 };
    }
  }

  private retryLater(shipment: Shipment): void {
    const delayMs = this.deps.retryPolicy.delayMs(shipment.failedAttempts, null);
    shipment.timer = this.deps.clock.after(delayMs, () => {
      if (!this.deps.stop.aborted) void this.ship(shipment);
    });
  }

  /** The newest first, so that they stand in the queue in their order. */
  private requeueFailed(failed: Shipment): void {
    const waiting = [...this.shipments].filter((one) => one === failed || one.timer !== undefined).reverse();
    for (const shipment of waiting) {
      shipment.timer?.cancel();
      this.shipments.delete(shipment);
      for (const batch of [...shipment.batches].reverse()) batch.progress.requeue(batch);
    }
  }
}

/** Takes as many items from the front of a shipment as were answered. */
function takeFront(shipment: Shipment, itemCount: number): readonly RunBatch[] {
  const front: RunBatch[] = [];
  const rest: RunBatch[] = [];
  let left = itemCount;
  for (const batch of shipment.batches) {
    if (batch.items.length <= left) front.push(batch);
    else if (left <= 0) rest.push(batch);
    else {
      const [answered, open] = batch.progress.split(batch, left);
      front.push(answered);
      rest.push(open);
    }
    left -= batch.items.length;
  }
  shipment.batches = rest;
  return front;
}

/** The first items of some batches, as a destination takes them. */
function toItemBatch(signal: Signal, batches: readonly RunBatch[], maxItems: number): ItemBatch {
  const spans: EncodedSpan[] = [];
  const logs: EncodedLog[] = [];
  for (const { items } of batches) {
    for (const item of items) {
      if (spans.length + logs.length === maxItems) break;
      if (item.signal === 'traces') spans.push(item.span);
      else logs.push(item.log);
    }
  }
  return signal === 'traces' ? { signal, items: spans } : { signal, items: logs };
}
