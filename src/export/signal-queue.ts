import type { TraceId } from '../record/ids.js';
import type { Signal } from '../record/record-batch.js';
import type { MappedItem } from './run-mapper.js';
import type { SignalBreaker } from './signal-breaker.js';

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

/** What tells an item from the others of its run and signal: its anchor, and the span's id where it is one of the last. */
type ItemKey = number | string;

function keyOf(item: MappedItem, closingAt: number | undefined): ItemKey {
  if (item.anchorOffset !== closingAt || item.signal === 'logs') return item.anchorOffset;
  return item.span.spanContext().spanId;
}
