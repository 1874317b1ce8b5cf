import type { MappedItem } from './mapped-item.js';
import type { ExportStretch, SignalProgress } from './signal-progress.js';

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
