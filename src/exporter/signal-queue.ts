import type { TraceId } from '../record/ids.js';
import type { Signal } from '../record/record-batch.js';
import type { MappedItem } from './run-mapper.js';

/** What waits for one lane, over all runs. Runs take turns, so that a request may carry items of several and none waits for another's end. */
export class LaneQueue {
  private readonly waiting = new Set<SignalProgress>();
  private itemCount = 0;

  /** Items that wait. */
  get count(): number {
    return this.itemCount;
  }

  /** Takes what a run's mapper gave. @param closingAt the anchor, for a run's last items. */
  hand(progress: SignalProgress, items: readonly MappedItem[], closingAt?: number): void {
    this.change(progress, () => progress.hand(items, closingAt));
  }

  /** Items for one request, at most so many. */
  take(maxItems: number): ExportStretch[] {
    const stretches: ExportStretch[] = [];
    let room = maxItems;
    for (const progress of this.waiting) {
      if (room === 0) break;
      this.change(progress, () => {
        const stretch = progress.cut(room);
        room -= stretch.items.length;
        stretches.push(stretch);
      });
    }
    return stretches;
  }

  giveBack(stretch: ExportStretch): void {
    this.change(stretch.progress, () => stretch.progress.giveBack(stretch));
  }

  /** What waits of a run makes room; it is found again by a new replay. */
  passOver(progress: SignalProgress): void {
    this.change(progress, () => progress.passOver());
  }

  /** The run's replay is gone. */
  drop(progress: SignalProgress): void {
    this.change(progress, () => progress.drop());
  }

  /** A new replay of a run begins. */
  begin(progress: SignalProgress, offset: number): void {
    this.change(progress, () => progress.begin(offset));
  }

  /** Nothing of the run is waited for any more. */
  abandon(progress: SignalProgress): void {
    this.change(progress, () => progress.abandon());
  }

  /** The lane sends nothing any more: what waits is done with. Whether something waited. */
  clear(): boolean {
    const waiting = [...this.waiting];
    for (const progress of waiting) this.drop(progress);
    return waiting.length > 0;
  }

  private change(progress: SignalProgress, action: () => void): void {
    const before = progress.waitingCount;
    action();
    this.itemCount += progress.waitingCount - before;
    // At the end of the line.
    this.waiting.delete(progress);
    if (progress.waitingCount > 0) this.waiting.add(progress);
  }
}

/** Items of one run and signal, in order, that go in one request. */
export interface ExportStretch {
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
 * replay from the cursor does not hand them out again.
 */
export class SignalProgress {
  /** Handed out by the mapper and in no request; in the order of their anchors. */
  private waiting: MappedItem[] = [];
  private readonly underWay = new Set<ExportStretch>();
  /** Items that the present replay gives although an older one gave them to a request. */
  private repeated: ReadonlySet<ItemKey> = new Set();
  /** Items that were answered beyond the cursor, with their anchors. */
  private readonly answeredAhead = new Map<ItemKey, number>();
  /** Every item anchored before this offset was handed out. */
  private handedTo = 0;
  /** Anchor of the run's last items, which stand for no record there; `undefined` before. */
  private closingAt: number | undefined;
  private epoch = 0;
  private missed = false;

  constructor(
    readonly traceId: TraceId,
    readonly signal: Signal,
  ) {}

  get waitingCount(): number {
    return this.waiting.length;
  }

  /** Whether something of it waits or is under way. */
  get isOutstanding(): boolean {
    return this.waiting.length > 0 || this.underWay.size > 0;
  }

  /** Whether items were passed over, which only a new replay finds again. */
  get isMissed(): boolean {
    return this.missed;
  }

  /** Every item anchored before this offset was answered. */
  get offset(): number {
    let offset = Math.min(this.handedTo, this.waiting[0]?.anchorOffset ?? this.handedTo);
    for (const { items } of this.underWay) offset = Math.min(offset, items[0]?.anchorOffset ?? offset);
    return offset;
  }

  /** A new replay begins at a cursor. */
  begin(offset: number): void {
    this.drop();
    this.missed = false;
    this.handedTo = offset;
    this.repeated = new Set(
      [...this.underWay].flatMap((stretch) => stretch.items.map((item) => keyOf(item, stretch.closingAt))),
    );
  }

  /**
   * Takes what the mapper gave.
   * @param closingAt the anchor, for a run's last items.
   */
  hand(items: readonly MappedItem[], closingAt?: number): void {
    if (closingAt !== undefined) this.closingAt = closingAt;
    const mayRepeat = this.repeated.size > 0 || this.answeredAhead.size > 0;
    for (const item of items) {
      if (!mayRepeat || !this.isRepeated(item)) this.waiting.push(item);
      // At the anchor of the last items a late record may still come.
      this.handedTo = Math.max(this.handedTo, item.anchorOffset === this.closingAt ? 0 : item.anchorOffset + 1);
    }
    if (closingAt !== undefined) this.handedTo = Math.max(this.handedTo, closingAt);
  }

  /** Puts as many items as go into a request under way. */
  cut(maxItems: number): ExportStretch {
    const { epoch, closingAt } = this;
    const stretch = { progress: this, items: this.waiting.splice(0, maxItems), epoch, closingAt };
    this.underWay.add(stretch);
    return stretch;
  }

  /** Makes two of a stretch that is under way. */
  split(stretch: ExportStretch, itemCount: number): readonly [ExportStretch, ExportStretch] {
    const first = { ...stretch, items: stretch.items.slice(0, itemCount) };
    const second = { ...stretch, items: stretch.items.slice(itemCount) };
    if (this.underWay.delete(stretch)) this.underWay.add(first).add(second);
    return [first, second];
  }

  /** Whether a stretch is still waited for. */
  isUnderWay(stretch: ExportStretch): boolean {
    return this.underWay.has(stretch);
  }

  /** The items of a stretch were taken, or refused for good. */
  answered(stretch: ExportStretch): void {
    if (!this.underWay.delete(stretch)) return;
    const { offset } = this;
    if ((stretch.items.at(-1)?.anchorOffset ?? 0) >= offset) {
      for (const item of stretch.items) {
        if (item.anchorOffset >= offset) this.answeredAhead.set(keyOf(item, stretch.closingAt), item.anchorOffset);
      }
    }
    for (const [key, anchor] of this.answeredAhead) if (anchor < offset) this.answeredAhead.delete(key);
  }

  /** The items of a stretch are to be sent again, after a while. */
  giveBack(stretch: ExportStretch): void {
    if (!this.underWay.delete(stretch)) return;
    if (stretch.epoch === this.epoch && !this.missed) {
      this.waiting = [...stretch.items, ...this.waiting].sort((a, b) => a.anchorOffset - b.anchorOffset);
      return;
    }
    this.miss(stretch.items[0]);
  }

  /** What waits makes room; a new replay finds it again. */
  passOver(): void {
    if (this.waiting.length === 0) return;
    this.miss(this.waiting[0]);
    this.waiting = [];
  }

  /** The run's replay is gone: what waits is found again by the next one. */
  drop(): void {
    this.handedTo = Math.min(this.handedTo, this.waiting[0]?.anchorOffset ?? this.handedTo);
    this.waiting = [];
    this.closingAt = undefined;
    this.epoch += 1;
  }

  /** Nothing of it is waited for any more, whatever becomes of the requests that carry it. */
  abandon(): void {
    this.drop();
    this.missed = false;
    this.underWay.clear();
    this.answeredAhead.clear();
  }

  private miss(first: MappedItem | undefined): void {
    this.missed = true;
    this.handedTo = Math.min(this.handedTo, first?.anchorOffset ?? this.handedTo);
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
