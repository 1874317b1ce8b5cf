import { grown } from '../core/bytes.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { SignalBreaker } from './signal-breaker.js';
import { countOf, cutRanges, type ItemRange, type ItemWindow } from './wire/item-window.js';

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

  /** Returns how many items wait. */
  get count(): number {
    return this.itemCount;
  }

  /** Takes items for one request, at most so many: a batch for each run. */
  take(maxItems: number): readonly RunBatch[] {
    const batches: RunBatch[] = [];
    let room = maxItems;
    for (const progress of this.waiting) {
      if (room === 0) break;
      const batch = progress.take(room);
      room -= batch.itemCount;
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
  readonly ranges: readonly ItemRange[];
  readonly itemCount: number;
  /** Which replay of the run gave them. */
  readonly epoch: number;
  /** The anchor of the run's last items, where there are some among them. */
  readonly closingAt: number | undefined;
}

/**
 * How far one signal of one run was answered. Requests are answered in any order, a cursor is one offset: it stands before
 * the first item that waits or is under way. Items that were answered beyond it are remembered by what identifies them, so that
 * a new replay from the cursor does not enqueue them again.
 */
export class SignalProgress {
  /** Enqueued and in no request; in the order of their anchors. */
  private waiting: ItemRange[] = [];
  private count = 0;
  private readonly underWay = new Set<RunBatch>();
  /** Items that the present replay gives although an older one gave them to a request. */
  private repeated: ReadonlySet<ItemKey> = new Set();
  private readonly answeredAhead = new AnsweredItems();
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

  get waitingCount(): number {
    return this.count;
  }

  /** Returns whether the destination does not get the signal. */
  get isOff(): boolean {
    return this.queue.breaker.state === 'off';
  }

  /** Returns whether something of it waits or is under way. */
  get isOutstanding(): boolean {
    return this.count > 0 || this.underWay.size > 0;
  }

  /** Returns whether items were evicted, which only a new replay finds again. */
  get isEvicted(): boolean {
    return this.hasEvicted && !this.isOff;
  }

  /** Returns whether items were evicted that can be sent now, or are not asked for any more. */
  get canCatchUp(): boolean {
    return this.hasEvicted && this.queue.breaker.state !== 'waiting';
  }

  /** Returns whether something of it waits for a destination that takes nothing now. */
  get isStuck(): boolean {
    return this.queue.breaker.state === 'waiting' && (this.hasEvicted || this.count > 0);
  }

  /** Every item anchored before this offset was answered. */
  get offset(): number {
    let offset = this.beforeFirst(this.waiting, this.enqueuedTo);
    for (const { ranges } of this.underWay) offset = this.beforeFirst(ranges, offset);
    return offset;
  }

  /** A new replay begins at a cursor. */
  open(offset: number): void {
    this.close();
    this.hasEvicted = false;
    this.enqueuedTo = offset;
    const repeated = new Set<ItemKey>(this.answeredAhead.keys());
    for (const { ranges, closingAt } of this.underWay) {
      for (const { window, from, to } of ranges)
        for (let index = from; index < to; index++) repeated.add(this.keyOf(window, index, closingAt));
    }
    this.repeated = repeated;
  }

  /**
   * Takes what the mapper gave of the signal, unless that is off, or a new replay gives items again.
   * @param closingAt the anchor, for a run's last items.
   */
  enqueue(ranges: readonly ItemRange[], closingAt?: number): void {
    if (this.isOff || this.hasEvicted) return;
    if (closingAt !== undefined) this.closingAt = closingAt;
    const { waiting, repeated } = this;
    for (const range of ranges) {
      if (repeated.size === 0) waiting.push(range);
      else range.pick((index) => !repeated.has(this.keyOf(range.window, index, this.closingAt)), waiting);
      this.enqueuedTo = Math.max(this.enqueuedTo, this.endOf(range));
    }
    if (closingAt !== undefined) this.enqueuedTo = Math.max(this.enqueuedTo, closingAt);
    if (ranges.length > 0) this.wait(waiting);
    if (this.queue.breaker.state === 'waiting' && this.queue.count > this.queue.maxItems) this.evict();
  }

  /** Puts as many items as go into a request under way. */
  take(maxItems: number): RunBatch {
    const { epoch, closingAt } = this;
    const [ranges, rest] = cutRanges(this.waiting, maxItems);
    const batch = { progress: this, ranges, itemCount: countOf(ranges), epoch, closingAt };
    this.underWay.add(batch);
    this.wait([...rest]);
    return batch;
  }

  /** Makes two of a batch that is under way. */
  split(batch: RunBatch, itemCount: number): readonly [RunBatch, RunBatch] {
    const [front, rest] = cutRanges(batch.ranges, itemCount);
    const first = { ...batch, ranges: front, itemCount };
    const second = { ...batch, ranges: rest, itemCount: batch.itemCount - itemCount };
    if (this.underWay.delete(batch)) this.underWay.add(first).add(second);
    return [first, second];
  }

  /** Returns whether a batch is still waited for. */
  isUnderWay(batch: RunBatch): boolean {
    return this.underWay.has(batch);
  }

  /** The items of a batch were taken, or refused for good. */
  answered(batch: RunBatch): void {
    if (!this.underWay.delete(batch)) return;
    const { offset, answeredAhead } = this;
    answeredAhead.forgetBefore(offset);
    for (const range of batch.ranges) {
      const ahead = range.anchoredFrom(offset);
      if (ahead === undefined) continue;
      for (let index = ahead.from; index < ahead.to; index++)
        answeredAhead.add(this.keyOf(ahead.window, index, batch.closingAt), ahead.window.anchorOf(index));
    }
    for (const range of batch.ranges) range.release();
  }

  /** The items of a batch are to be sent again, after a while. */
  requeue(batch: RunBatch): void {
    if (!this.underWay.delete(batch)) return;
    if (batch.epoch !== this.epoch || this.hasEvicted) this.markEvicted(batch.ranges);
    // Of one replay later windows are those with higher numbers.
    else
      this.wait(
        [...batch.ranges, ...this.waiting].sort((a, b) => a.window.number - b.window.number || a.from - b.from),
      );
  }

  /** What waits makes room; a new replay finds it again. */
  evict(): void {
    if (this.count === 0) return;
    this.markEvicted(this.waiting);
    this.wait([]);
  }

  /** The run's replay is gone: what waits is found again by the next one. */
  close(): void {
    this.enqueuedTo = this.beforeFirst(this.waiting, this.enqueuedTo);
    this.wait([]);
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

  private wait(ranges: ItemRange[]): void {
    const before = this.count;
    this.waiting = ranges;
    this.count = countOf(ranges);
    this.queue.update(this, before);
  }

  private markEvicted(ranges: readonly ItemRange[]): void {
    this.hasEvicted = true;
    this.enqueuedTo = this.beforeFirst(ranges, this.enqueuedTo);
  }

  private beforeFirst([first]: readonly ItemRange[], offset: number): number {
    return first === undefined ? offset : Math.min(offset, first.firstAnchor);
  }

  /** Returns what is enqueued with a range: at the anchor of the last items a late record may still come, and more log records that are made of spans. */
  private endOf({ window, from, to }: ItemRange): number {
    const mayGoOn = this.queue.breaker.signal === 'logs';
    for (let index = to - 1; index >= from; index--) {
      const anchor = window.anchorOf(index);
      if (anchor !== this.closingAt) return mayGoOn && window.isOfSpan(index) ? anchor : anchor + 1;
    }
    return 0;
  }

  private keyOf(window: ItemWindow, index: number, closingAt: number | undefined): ItemKey {
    const anchor = window.anchorOf(index);
    const isOfSpan = this.queue.breaker.signal === 'logs' ? window.isOfSpan(index) : anchor === closingAt;
    return isOfSpan ? window.spanIdOf(index) : anchor;
  }
}

/** What identifies an item among those of its run and signal: its anchor; the span's id where it is one of the last spans, or made of a span. */
type ItemKey = number | string;

/** Items that were answered beyond the cursor: one number for each but those that share their anchor with others. */
class AnsweredItems {
  private anchors = new Float64Array(16);
  private count = 0;
  /** Ids of spans by which items are identified, with their anchors. */
  private readonly spanIds = new Map<string, number>();

  add(key: ItemKey, anchorOffset: number): void {
    if (typeof key === 'string') {
      this.spanIds.set(key, anchorOffset);
      return;
    }
    if (this.count === this.anchors.length) this.anchors = grown(this.anchors);
    this.anchors[this.count++] = key;
  }

  /** Forgets what is anchored before an offset. */
  forgetBefore(offset: number): void {
    const { anchors } = this;
    let kept = 0;
    for (let index = 0; index < this.count; index++) {
      const anchor = anchors[index] ?? 0;
      if (anchor >= offset) anchors[kept++] = anchor;
    }
    this.count = kept;
    for (const [spanId, anchor] of this.spanIds) if (anchor < offset) this.spanIds.delete(spanId);
  }

  keys(): readonly ItemKey[] {
    return [...this.anchors.subarray(0, this.count), ...this.spanIds.keys()];
  }

  clear(): void {
    this.count = 0;
    this.spanIds.clear();
  }
}
