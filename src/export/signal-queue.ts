import type { Clock, RetryPolicy, Timer } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Logger } from '../core/logger.js';
import type { Signal } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';
import { type AnswerMeaning, ATTEMPTS_BEFORE_HALVING, ATTEMPTS_OF_ONE, meaningOf, nextStep } from './answer-rules.js';
import type { BatchOutcome, Destination, ItemBatch, SignalStatus } from './destination.js';
import type { MappedItem } from './run-mapper.js';
import type { SendResult } from './transport.js';
import type { EncodedLog, EncodedSpan } from './wire/encoded-items.js';

/** Statuses of a receiver that has no endpoint for logs. */
const NO_LOGS: ReadonlySet<number> = new Set([404, 415, 501]);
/** The circuit breaker opens after this many failures in a row, over all requests: nothing is sent to the destination for a while. */
const MAX_CHANCE_FAILURES = 4;
/** A pause for failures that may be about one record is not doubled more often: it is up to four seconds. */
const MAX_DOUBLINGS_OF_ONE = 3;
/** Different statuses of refusal that are logged, each once. */
const MAX_LOGGED_STATUSES = 20;

/**
 * What comes after an attempt. `done`: the items were taken, or refused for good. `retry`: this request failed, others may
 * go on. `paused`: the destination takes nothing now.
 */
export type AfterAttempt = 'done' | 'retry' | 'paused';

/** The circuit breaker of one signal to one destination: whether requests may be sent now, and what became of those before. */
export class SignalBreaker {
  private isOff: boolean;
  /** The pause in which nothing is sent; `undefined` when there is none. */
  private pause: Timer | undefined;
  private pausedUntilMs = 0;
  private failedInRow = 0;
  private readonly counts = { sent: 0, refused: 0, rejected: 0, forwarded: 0, failedAttempts: 0 };
  private readonly loggedStatuses = new Set<number>();
  private hasLoggedPartial = false;
  private hasLoggedFailure = false;
  private hasLoggedPause = false;
  private hasLoggedHalving = false;
  /** Requests that were taken since the start. */
  private takenCount = 0;
  /** The last failure in words; `null` after a success. */
  lastError: string | null = null;

  /** @param isAsked whether the destination is to get the signal. @param onReady called when there is nothing to wait for any more: a pause is over, or the signal is off. */
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
    return this.pause === undefined ? 'ready' : 'waiting';
  }

  /** Whether the destination failed so often that it gets one request at a time, until it takes one. */
  get isProbing(): boolean {
    return this.failedInRow > MAX_CHANCE_FAILURES;
  }

  get status(): SignalStatus {
    const { sent, refused, rejected, forwarded, failedAttempts } = this.counts;
    return {
      state: this.state,
      sentCount: sent,
      refusedCount: refused,
      rejectedCount: rejected,
      forwardedCount: forwarded,
      failedAttemptCount: failedAttempts,
    };
  }

  /** How many requests were taken since the start: whether it grows says whether the receiver is well. */
  get takenRequestCount(): number {
    return this.takenCount;
  }

  /**
   * Whether an answer may say that the receiver takes no logs at all: it may as well be ill, so it is asked for something else before it counts. One that
   * has taken some does take them.
   */
  isDenial(result: SendResult): boolean {
    const isUnproven = this.signal === 'logs' && this.takenCount === 0;
    return result.kind !== 'accepted' && isUnproven && NO_LOGS.has(result.status ?? 0);
  }

  /** A request is tried again by halves. */
  halve(result: SendResult, itemCount: number): void {
    this.counts.failedAttempts += 1;
    this.lastError = wordsOf(result);
    if (this.hasLoggedHalving) return;
    this.hasLoggedHalving = true;
    this.log(
      'warn',
      { status: result.status, answer: result.message, itemCount },
      'the destination did not take a request; trying its halves, further ones are only counted',
    );
  }

  /** A request is given up, whatever its answer was. */
  giveUp(result: SendResult, itemCount: number): 'done' {
    if (!this.isOff) this.refuse(result.status ?? 0, result.message, itemCount);
    return 'done';
  }

  /** Takes down that the destination takes nothing now, and for what reason. */
  close(result: SendResult): 'done' | 'paused' {
    if (this.isOff) return 'done';
    this.countFailure(result);
    if (this.pause !== undefined) return 'paused';
    this.failedInRow = Math.max(this.failedInRow + 1, MAX_CHANCE_FAILURES + 1);
    this.openFor(result, null, CLOSED_TEXT);
    return 'paused';
  }

  /** Takes down what became of an attempt. @param isLogDenialSure whether a receiver that denies logs is known to be well; left out: it counts as well */
  settle(
    result: SendResult,
    itemCount: number,
    kind: 'sent' | 'forwarded' = 'sent',
    isLogDenialSure = true,
  ): AfterAttempt {
    if (this.isOff) return 'done';
    if (this.isDenial(result)) {
      if (!isLogDenialSure) return this.close(result);
      this.isOff = true;
      const fields = { status: result.status, answer: result.message };
      this.log('warn', fields, 'the destination takes no logs; they go as span events alone until the next start');
      this.onReady();
      return 'done';
    }
    if (result.kind === 'accepted') {
      this.accept(result.rejectedCount, result.message, itemCount, kind);
      return 'done';
    }
    return this.afterFailure(meaningOf(result), result, itemCount);
  }

  private afterFailure(meaning: AnswerMeaning, result: SendResult, itemCount: number): AfterAttempt {
    switch (meaning) {
      case 'taken':
      case 'tooLarge':
      case 'refused':
        return this.giveUp(result, itemCount);
      case 'closed':
        return this.close(result);
      case 'later':
      case 'failed':
        return this.fail(result);
    }
  }

  private accept(rejectedCount: number, message: string, itemCount: number, kind: 'sent' | 'forwarded'): void {
    if (this.hasLoggedPause) this.log('info', {}, 'the destination accepts exports again');
    this.hasLoggedPause = false;
    this.failedInRow = 0;
    this.takenCount += 1;
    this.lastError = null;
    this.counts[kind] += Math.max(0, itemCount - rejectedCount);
    this.counts.rejected += rejectedCount;
    if (rejectedCount === 0 || this.hasLoggedPartial) return;
    this.hasLoggedPartial = true;
    this.log(
      'warn',
      { rejectedCount, answer: message },
      'the destination rejected a part of an export; further ones are counted only',
    );
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

  private fail(result: SendResult): AfterAttempt {
    const retryAfterMs = result.kind === 'retryable' ? result.retryAfterMs : null;
    this.countFailure(result);
    const isAskedToWait = result.status === 429 || (retryAfterMs !== null && retryAfterMs > 0);
    // Requests that were under way when the pause began say nothing new by failing, too.
    if (this.pause !== undefined && !isAskedToWait) return 'paused';
    this.failedInRow += 1;
    if (isAskedToWait) this.failedInRow = Math.max(this.failedInRow, MAX_CHANCE_FAILURES + 1);
    if (!this.isProbing) {
      if (this.hasLoggedFailure) return 'retry';
      this.hasLoggedFailure = true;
      const text = 'a request to the destination failed; retrying, further failures are only counted';
      this.log('warn', { status: result.status, answer: result.message }, text);
      return 'retry';
    }
    const text = 'the destination does not accept exports; they wait on disk, retrying';
    // It may be about one record: others are not to wait long for it.
    const maxDoublings = meaningOf(result) === 'failed' ? MAX_DOUBLINGS_OF_ONE : undefined;
    this.openFor(result, retryAfterMs, text, maxDoublings);
    return 'paused';
  }

  private countFailure(result: SendResult): void {
    this.counts.failedAttempts += 1;
    this.lastError = wordsOf(result);
  }

  /** Nothing is sent for a while. */
  private openFor(
    { status, message }: SendResult,
    retryAfterMs: number | null,
    text: string,
    maxDoublings = Number.POSITIVE_INFINITY,
  ): void {
    const delayMs = this.deps.policy.delayMs(
      Math.min(this.failedInRow - MAX_CHANCE_FAILURES, maxDoublings),
      retryAfterMs,
    );
    if (!this.hasLoggedPause) {
      this.hasLoggedPause = true;
      this.log('warn', { status, answer: message, delayMs }, text);
    }
    this.pauseFor(delayMs);
  }

  /** Of several pauses the one that ends last counts. */
  private pauseFor(delayMs: number): void {
    const untilMs = this.deps.clock.monotonicMs() + delayMs;
    if (this.pause !== undefined && untilMs <= this.pausedUntilMs) return;
    this.pause?.cancel();
    this.pausedUntilMs = untilMs;
    this.pause = this.deps.clock.after(delayMs, () => {
      this.pause = undefined;
      this.onReady();
    });
  }

  private log(level: 'info' | 'warn' | 'error', fields: Record<string, string | number | null>, message: string): void {
    this.deps.logger[level]({ destination: this.destination, signal: this.signal, ...fields }, message);
  }
}

const CLOSED_TEXT =
  'the destination lets nothing in; check its endpoint, headers and the rights that they give; exports wait on disk, retrying';

/** A failure in words. */
function wordsOf({ status, message }: SendResult): string {
  return status === null ? message : `status ${status}: ${message}`;
}

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
  /** Requests that the destination had taken when this one failed first; `undefined` before. */
  takenBefore: number | undefined;
  /** Whether it is to be sent as it is, for it may hold what the destination never takes: it is not mixed with others again. */
  isApart: boolean;
}

/**
 * Sends what waits in one signal's queue, several requests at a time. One that fails while others succeed is tried again by
 * itself; when the breaker pauses, everything that failed waits in the queue again. What the destination may never take is set
 * apart and halved, as `answer-rules.ts` says, while others go on. The requests between the oldest one that is not answered and
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

  /** The smallest of those that were set apart, which says soonest what is wrong; `undefined` where it is the turn of others. */
  private nextApart(areOthersReady: boolean): Shipment | undefined {
    if (areOthersReady && this.wasApart) return undefined;
    let smallest: Shipment | undefined;
    for (const one of this.apart) if (smallest === undefined || countOf(one) < countOf(smallest)) smallest = one;
    if (smallest !== undefined) this.apart.delete(smallest);
    return smallest;
  }

  private canSend(isAll: boolean): boolean {
    return this.mayBegin && (this.apart.size > 0 || this.canSendNew(isAll));
  }

  /** Whether another request may be under way. */
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
      const { isOneRunAtATime = false } = this.deps.destination;
      const batches = isOneRunAtATime ? shipment.batches.slice(0, 1) : shipment.batches;
      const request = toItemBatch(this.breaker.signal, batches, maxItems);
      const outcome = await this.attempt(request);
      if (outcome === 'unsendable') {
        maxItems = Math.ceil(request.items.length / 2);
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

function countOf({ batches }: Shipment): number {
  return batches.reduce((count, { items }) => count + items.length, 0);
}

/** Whether a shipment is a record alone whose fate only requests behind it decide: it holds none of them up. */
function isOneInDoubt(shipment: Shipment): boolean {
  return shipment.isApart && shipment.failedAttempts >= ATTEMPTS_OF_ONE && countOf(shipment) === 1;
}

/** Whether a destination that has denied logs takes spans and denies logs all the same; for one that cannot be asked its answer counts. */
export async function deniesLogs(
  destination: Destination,
  breaker: SignalBreaker,
  abort: AbortSignal,
): Promise<boolean> {
  if (destination.ask === undefined) return true;
  if (!destination.signals.includes('traces')) return false;
  const meaning = meaningOf(await destination.ask('traces', abort));
  if (meaning !== 'taken' && meaning !== 'refused') return false;
  // It may be well only since it denied them.
  return breaker.isDenial(await destination.ask('logs', abort));
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

/**
 * The mapped items of one signal that wait for a request, over all runs. Runs take turns, so that a request may carry items
 * of several and none waits for another's end.
 */
export class SignalQueue {
  /** Runs with items that wait, the next one first. */
  private readonly waiting = new Set<SignalProgress>();
  private itemCount = 0;

  /** @param maxItems beyond it there is no room; what is enqueued while the breaker waits is evicted then. */
  constructor(
    readonly breaker: SignalBreaker,
    readonly maxItems: number,
  ) {}

  /** Items that wait. */
  get count(): number {
    return this.itemCount;
  }

  /** Items for one request, at most so many: a batch for each run. */
  take(maxItems: number): readonly RunBatch[] {
    const batches: RunBatch[] = [];
    let room = maxItems;
    for (const progress of this.waiting) {
      if (room === 0) break;
      const batch = progress.take(room);
      room -= batch.items.length;
      batches.push(batch);
    }
    return batches;
  }

  /** Drops what waits, when nothing is sent any more. Whether something waited. */
  clear(): boolean {
    const waiting = [...this.waiting];
    for (const progress of waiting) progress.close();
    return waiting.length > 0;
  }

  /** Called by a run whose number of waiting items has changed: it is the last in line now. */
  update(progress: SignalProgress, before: number): void {
    this.itemCount += progress.waitingCount - before;
    this.waiting.delete(progress);
    if (progress.waitingCount > 0) this.waiting.add(progress);
  }
}

/** Items of one run and signal, in order, that go in one request. */
export interface RunBatch {
  readonly progress: SignalProgress;
  readonly items: readonly MappedItem[];
  /** Which replay of the run gave them. */
  readonly epoch: number;
  /** The anchor of the run's last items, where there are some among them. */
  readonly closingAt: number | undefined;
}

/**
 * How far one signal of one run was answered. Requests are answered in any order, a cursor is one offset: it stands before
 * the first item that waits or is under way. Items that were answered beyond it are remembered by their ids, so that a new
 * replay from the cursor does not enqueue them again.
 */
export class SignalProgress {
  /** Enqueued and in no request; in the order of their anchors. */
  private waiting: MappedItem[] = [];
  private readonly underWay = new Set<RunBatch>();
  /** Items that the present replay gives although an older one gave them to a request. */
  private repeated: ReadonlySet<ItemKey> = new Set();
  /** Items that were answered beyond the cursor, with their anchors. */
  private readonly answeredAhead = new Map<ItemKey, number>();
  /** Every item anchored before this offset was enqueued. */
  private enqueuedTo = 0;
  /** Anchor of the run's last items, which stand for no record there; `undefined` before. */
  private closingAt: number | undefined;
  private epoch = 0;
  private hasEvicted = false;

  constructor(
    readonly traceId: TraceId,
    private readonly queue: SignalQueue,
  ) {}

  get signal(): Signal {
    return this.queue.breaker.signal;
  }

  get waitingCount(): number {
    return this.waiting.length;
  }

  /** Whether the destination does not get the signal. */
  get isOff(): boolean {
    return this.queue.breaker.state === 'off';
  }

  /** Whether something of it waits or is under way. */
  get isOutstanding(): boolean {
    return this.waiting.length > 0 || this.underWay.size > 0;
  }

  /** Whether items were evicted, which only a new replay finds again. */
  get isEvicted(): boolean {
    return this.hasEvicted && !this.isOff;
  }

  /** Whether items were evicted that can be sent now, or are not asked for any more. */
  get canCatchUp(): boolean {
    return this.hasEvicted && this.queue.breaker.state !== 'waiting';
  }

  /** Whether something of it waits for a destination that takes nothing now. */
  get isStuck(): boolean {
    return this.queue.breaker.state === 'waiting' && (this.hasEvicted || this.waiting.length > 0);
  }

  /** Every item anchored before this offset was answered. */
  get offset(): number {
    let offset = Math.min(this.enqueuedTo, this.waiting[0]?.anchorOffset ?? this.enqueuedTo);
    for (const { items } of this.underWay) offset = Math.min(offset, items[0]?.anchorOffset ?? offset);
    return offset;
  }

  /** A new replay begins at a cursor. */
  open(offset: number): void {
    this.close();
    this.hasEvicted = false;
    this.enqueuedTo = offset;
    this.repeated = new Set(
      [...this.underWay].flatMap((batch) => batch.items.map((item) => keyOf(item, batch.closingAt))),
    );
  }

  /**
   * Takes those items of the mapper that are its own, unless the signal is off, or a new replay gives them again.
   * @param closingAt the anchor, for a run's last items.
   */
  enqueue(items: readonly MappedItem[], closingAt?: number): void {
    if (this.isOff || this.hasEvicted) return;
    if (closingAt !== undefined) this.closingAt = closingAt;
    const mayRepeat = this.repeated.size > 0 || this.answeredAhead.size > 0;
    const before = this.waiting.length;
    const { signal } = this;
    for (const item of items) {
      if (item.signal !== signal) continue;
      if (!mayRepeat || !this.isRepeated(item)) this.waiting.push(item);
      // At the anchor of the last items a late record may still come.
      this.enqueuedTo = Math.max(this.enqueuedTo, item.anchorOffset === this.closingAt ? 0 : item.anchorOffset + 1);
    }
    if (closingAt !== undefined) this.enqueuedTo = Math.max(this.enqueuedTo, closingAt);
    this.queue.update(this, before);
    if (this.queue.breaker.state === 'waiting' && this.queue.count > this.queue.maxItems) this.evict();
  }

  /** Puts as many items as go into a request under way. */
  take(maxItems: number): RunBatch {
    const before = this.waiting.length;
    const { epoch, closingAt } = this;
    const batch = { progress: this, items: this.waiting.splice(0, maxItems), epoch, closingAt };
    this.underWay.add(batch);
    this.queue.update(this, before);
    return batch;
  }

  /** Makes two of a batch that is under way. */
  split(batch: RunBatch, itemCount: number): readonly [RunBatch, RunBatch] {
    const first = { ...batch, items: batch.items.slice(0, itemCount) };
    const second = { ...batch, items: batch.items.slice(itemCount) };
    if (this.underWay.delete(batch)) this.underWay.add(first).add(second);
    return [first, second];
  }

  /** Whether a batch is still waited for. */
  isUnderWay(batch: RunBatch): boolean {
    return this.underWay.has(batch);
  }

  /** The items of a batch were taken, or refused for good. */
  answered(batch: RunBatch): void {
    if (!this.underWay.delete(batch)) return;
    const { offset } = this;
    if ((batch.items.at(-1)?.anchorOffset ?? 0) >= offset) {
      for (const item of batch.items) {
        if (item.anchorOffset >= offset) this.answeredAhead.set(keyOf(item, batch.closingAt), item.anchorOffset);
      }
    }
    for (const [key, anchor] of this.answeredAhead) if (anchor < offset) this.answeredAhead.delete(key);
  }

  /** The items of a batch are to be sent again, after a while. */
  requeue(batch: RunBatch): void {
    if (!this.underWay.delete(batch)) return;
    if (batch.epoch !== this.epoch || this.hasEvicted) {
      this.markEvicted(batch.items[0]);
      return;
    }
    const before = this.waiting.length;
    this.waiting = [...batch.items, ...this.waiting].sort((a, b) => a.anchorOffset - b.anchorOffset);
    this.queue.update(this, before);
  }

  /** What waits makes room; a new replay finds it again. */
  evict(): void {
    if (this.waiting.length === 0) return;
    this.markEvicted(this.waiting[0]);
    this.clearWaiting();
  }

  /** The run's replay is gone: what waits is found again by the next one. */
  close(): void {
    this.enqueuedTo = Math.min(this.enqueuedTo, this.waiting[0]?.anchorOffset ?? this.enqueuedTo);
    this.clearWaiting();
    this.closingAt = undefined;
    this.epoch += 1;
  }

  /** Nothing of it is waited for any more, whatever becomes of the requests that carry it. */
  abandon(): void {
    this.close();
    this.hasEvicted = false;
    this.underWay.clear();
    this.answeredAhead.clear();
  }

  private clearWaiting(): void {
    const before = this.waiting.length;
    this.waiting = [];
    this.queue.update(this, before);
  }

  private markEvicted(first: MappedItem | undefined): void {
    this.hasEvicted = true;
    this.enqueuedTo = Math.min(this.enqueuedTo, first?.anchorOffset ?? this.enqueuedTo);
  }

  private isRepeated(item: MappedItem): boolean {
    const key = keyOf(item, this.closingAt);
    return this.repeated.has(key) || this.answeredAhead.has(key);
  }
}

/** What identifies an item among those of its run and signal: its anchor, and the span's id where it is one of the last. */
type ItemKey = number | string;

function keyOf(item: MappedItem, closingAt: number | undefined): ItemKey {
  if (item.anchorOffset !== closingAt || item.signal === 'logs') return item.anchorOffset;
  return item.span.spanContext().spanId;
}
