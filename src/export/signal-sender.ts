import type { Clock, RetryPolicy, Timer } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { BatchOutcome, Destination, SendResult } from './destination.js';
import {
  type AfterAttempt,
  ATTEMPTS_BEFORE_HALVING,
  ATTEMPTS_OF_ONE,
  deniesLogs,
  meaningOf,
  nextStep,
  type SignalBreaker,
} from './signal-breaker.js';
import type { RunBatch, SignalQueue } from './signal-queue.js';
import { countOf, cutRanges, type ItemRange } from './wire/item-window.js';

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
  /** Something threw that nothing handled. */
  readonly onFailed: (error: unknown) => void;
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
  /** Requests that the destination had taken when this one failed first; `undefined` before. */
  takenBefore: number | undefined;
  /** Whether it is to be sent as it is, for it may contain what the destination never takes: it is not mixed with others again. */
  isApart: boolean;
}

/**
 * Sends what waits in one signal's queue, several requests at a time. One that fails while others succeed is tried again by
 * itself; when the breaker pauses, everything that failed waits in the queue again. What the destination may never take is set
 * apart and halved, as `signal-breaker.ts` says, while others go on. The requests between the oldest one that is not answered and
 * the newest are bounded, and with them what is sent twice after a kill.
 */
export class SignalSender {
  readonly breaker: SignalBreaker;
  /** Requests that are not settled, oldest first. */
  private readonly shipments = new Set<Shipment>();
  /** Those of them that were set apart and may be sent now. */
  private readonly apart = new Set<Shipment>();
  /** Whether the last one that was sent was one of these: in turn, so that neither waits for the other. */
  private wasApart = false;
  /** What was done in a row without anything that was taken. */
  private fruitless = { refusedAlone: 0, halvings: 0 };
  private nextNumber = 0;
  private sendingCount = 0;

  constructor(
    readonly queue: SignalQueue,
    private readonly deps: SignalSenderDeps,
  ) {
    this.breaker = queue.breaker;
  }

  /** Returns whether nothing is under way, and nothing can be sent before a pause is over. */
  get isResting(): boolean {
    return this.sendingCount === 0 && !this.canSend(true);
  }

  /** Returns whether everything was answered that was enqueued. */
  get isDrained(): boolean {
    return this.queue.count === 0 && this.shipments.size === 0;
  }

  /** Returns whether it has something to send and waits before it tries. */
  get isWaiting(): boolean {
    return this.breaker.state === 'waiting' || (this.sendingCount === 0 && this.shipments.size > 0);
  }

  /** Returns whether a request is under way. */
  get isSending(): boolean {
    return this.sendingCount > 0;
  }

  /** Sends what may be sent now. @param isAll also less than fills a request. */
  send(isAll: boolean): void {
    if (this.breaker.state === 'off' && this.apart.size > 0) void this.forgetApart();
    while (this.mayBegin) {
      const piece = this.nextApart(this.canSendNew(isAll));
      if (piece === undefined && !this.canSendNew(isAll)) return;
      this.wasApart = piece !== undefined;
      void this.ship(piece ?? this.newShipment());
    }
  }

  private newShipment(): Shipment {
    const shipment: Shipment = {
      number: this.nextNumber,
      batches: this.queue.take(this.deps.maxBatchItems),
      failedAttempts: 0,
      timer: undefined,
      takenBefore: undefined,
      isApart: false,
    };
    this.nextNumber += 1;
    this.shipments.add(shipment);
    return shipment;
  }

  /** Finds the smallest of those that were set apart, which says soonest what is wrong; `undefined` where it is the turn of others. */
  private nextApart(areOthersReady: boolean): Shipment | undefined {
    if (areOthersReady && this.wasApart) return undefined;
    let smallest: Shipment | undefined;
    for (const one of this.apart)
      if (smallest === undefined || itemCountOf(one) < itemCountOf(smallest)) smallest = one;
    if (smallest !== undefined) this.apart.delete(smallest);
    return smallest;
  }

  private canSend(isAll: boolean): boolean {
    return this.mayBegin && (this.apart.size > 0 || this.canSendNew(isAll));
  }

  /** Returns whether another request may be under way. */
  private get mayBegin(): boolean {
    const { maxInFlight, stop } = this.deps;
    if (stop.aborted || this.breaker.state !== 'ready') return false;
    return this.sendingCount < (this.breaker.isProbing ? 1 : maxInFlight);
  }

  private canSendNew(isAll: boolean): boolean {
    const { maxBatchItems, maxInFlight } = this.deps;
    if (this.queue.count < (isAll ? 1 : maxBatchItems)) return false;
    // With one request at a time, a second one is begun while the first waits to be tried again only if that is set apart.
    const isOneAtATime = maxInFlight === 1;
    const window = isOneAtATime ? APART_WINDOW : 2 * maxInFlight - 1;
    for (const shipment of this.shipments) {
      if (isOneInDoubt(shipment)) continue;
      const { number, isApart } = shipment;
      if (this.nextNumber - number >= (isOneAtATime && !isApart ? 1 : window)) return false;
    }
    return true;
  }

  /** The destination does not get the signal any more. */
  private async forgetApart(): Promise<void> {
    const pieces = [...this.apart];
    this.apart.clear();
    for (const piece of pieces) {
      this.shipments.delete(piece);
      await this.deps.onAnswered(piece.batches);
    }
  }

  /** What is thrown here comes from nothing outside; it ends the worker, which a new one takes up from the cursors. */
  private async ship(shipment: Shipment): Promise<void> {
    this.sendingCount += 1;
    shipment.timer = undefined;
    try {
      await this.sendUntilAnswered(shipment);
    } catch (error) {
      this.deps.onFailed(error);
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
      const { isOneRunAtATime = false } = this.deps.destination;
      const batches = isOneRunAtATime ? shipment.batches.slice(0, 1) : shipment.batches;
      const ranges = firstOf(batches, maxItems);
      const outcome = await this.attempt(ranges);
      if (outcome === 'unsendable') {
        maxItems = Math.ceil(countOf(ranges) / 2);
        continue;
      }
      const { result, itemCount } = outcome;
      if (this.deps.stop.aborted && result.kind === 'retryable') return;
      if (result.kind === 'accepted') this.fruitless = { refusedAlone: 0, halvings: 0 };
      else {
        shipment.failedAttempts += 1;
        shipment.takenBefore ??= this.breaker.takenRequestCount;
      }
      const next = await this.settle(shipment, result, itemCount);
      if (next === 'halved') return;
      if (next === 'done') {
        await this.deps.onAnswered(takeFront(shipment, this.breaker.state === 'off' ? Infinity : itemCount));
        shipment.failedAttempts = 0;
        shipment.takenBefore = undefined;
        continue;
      }
      shipment.isApart ||= meaningOf(result) === 'failed';
      if (next === 'paused') this.requeueFailed(shipment);
      else this.retryLater(shipment);
      return;
    }
    this.shipments.delete(shipment);
  }

  /** Takes down the answer to a request, and halves what is to be tried by halves. */
  private async settle(shipment: Shipment, result: SendResult, itemCount: number): Promise<AfterAttempt | 'halved'> {
    const { breaker, fruitless } = this;
    if (breaker.state !== 'off' && breaker.isDenial(result)) {
      const isSure = await deniesLogs(this.deps.destination, breaker, this.deps.stop);
      return breaker.settle(result, itemCount, 'sent', isSure);
    }
    const { failedAttempts, takenBefore = 0 } = shipment;
    const isReceiverWell = breaker.takenRequestCount > takenBefore;
    switch (nextStep(result, { itemCount, failedAttempts, isReceiverWell }, fruitless)) {
      case 'settle':
        return breaker.settle(result, itemCount);
      case 'giveUp':
        if (itemCount === 1) this.fruitless = { ...fruitless, refusedAlone: fruitless.refusedAlone + 1 };
        return breaker.giveUp(result, itemCount);
      case 'halve':
        if (meaningOf(result) === 'failed') this.fruitless = { ...fruitless, halvings: fruitless.halvings + 1 };
        breaker.halve(result, itemCount);
        this.halve(shipment, itemCount);
        return 'halved';
    }
  }

  /** Makes two requests of one whose first items were not taken. */
  private halve(shipment: Shipment, itemCount: number): void {
    const first = { ...shipment, batches: takeFront(shipment, Math.ceil(itemCount / 2)) };
    this.shipments.add(first);
    for (const piece of [first, shipment]) {
      piece.isApart = true;
      piece.failedAttempts = ATTEMPTS_BEFORE_HALVING - 1;
      this.apart.add(piece);
    }
  }

  /** Makes one attempt. Items that the destination cannot even encode are tried by halves, until the one that is at fault is alone. */
  private async attempt(ranges: readonly ItemRange[]): Promise<BatchOutcome | 'unsendable'> {
    const { destination, stop } = this.deps;
    try {
      return await destination.send({ signal: this.breaker.signal, ranges }, stop);
    } catch (error) {
      if (countOf(ranges) > 1) return 'unsendable';
      const message = `the item could not be sent: ${reasonOf(error)}`;
      return { result: { kind: 'refused', status: 0, message }, itemCount: 1 };
    }
  }

  private retryLater(shipment: Shipment): void {
    const delayMs = this.deps.retryPolicy.delayMs(shipment.failedAttempts, null);
    shipment.timer = this.deps.clock.after(delayMs, () => {
      if (this.deps.stop.aborted) return;
      if (!shipment.isApart) void this.ship(shipment);
      else {
        shipment.timer = undefined;
        this.apart.add(shipment);
        this.deps.onSettled();
      }
    });
  }

  /** The newest first, so that they stand in the queue in their order. */
  private requeueFailed(failed: Shipment): void {
    for (const shipment of this.shipments) {
      if (!shipment.isApart || (shipment !== failed && shipment.timer === undefined)) continue;
      shipment.timer?.cancel();
      shipment.timer = undefined;
      this.apart.add(shipment);
    }
    const waiting = [...this.shipments]
      .filter((one) => !one.isApart && (one === failed || one.timer !== undefined))
      .reverse();
    for (const shipment of waiting) {
      shipment.timer?.cancel();
      this.shipments.delete(shipment);
      for (const batch of [...shipment.batches].reverse()) batch.progress.requeue(batch);
    }
  }
}

/** Requests that may follow one that is set apart, where one is sent at a time. */
const APART_WINDOW = 7;

function itemCountOf({ batches }: Shipment): number {
  return batches.reduce((count, { itemCount }) => count + itemCount, 0);
}

/** Returns whether a shipment is a record alone whose fate only requests behind it decide: it holds none of them up. */
function isOneInDoubt(shipment: Shipment): boolean {
  return shipment.isApart && shipment.failedAttempts >= ATTEMPTS_OF_ONE && itemCountOf(shipment) === 1;
}

/** Takes as many items from the front of a shipment as were answered. */
function takeFront(shipment: Shipment, itemCount: number): readonly RunBatch[] {
  const front: RunBatch[] = [];
  const rest: RunBatch[] = [];
  let left = itemCount;
  for (const batch of shipment.batches) {
    if (batch.itemCount <= left) front.push(batch);
    else if (left <= 0) rest.push(batch);
    else {
      const [answered, open] = batch.progress.split(batch, left);
      front.push(answered);
      rest.push(open);
    }
    left -= batch.itemCount;
  }
  shipment.batches = rest;
  return front;
}

/** Returns the first items of some batches, as a destination takes them. */
function firstOf(batches: readonly RunBatch[], maxItems: number): readonly ItemRange[] {
  const ranges = batches.flatMap((batch) => batch.ranges);
  return cutRanges(ranges, maxItems)[0];
}
