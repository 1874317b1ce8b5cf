import type { Clock, Timer } from '../component/clock.js';
import { reasonOf } from '../component/reason-of.js';
import type { RetryPolicy } from '../delivery/retry-policy.js';
import type { Signal } from '../record/record-batch.js';
import type { BatchOutcome, Destination } from './destination.js';
import type { ExportLane } from './export-lane.js';
import { LaneQueue } from './lane-queue.js';
import type { MappedItem } from './mapped-item.js';
import type { ExportStretch } from './signal-progress.js';
import { toItemBatch } from './to-item-batch.js';

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
