import { REGION, SLACK } from './arena.js';

/** A range of the arena that holds items of one owner, until the last of them was let go. */
export interface ItemBatch {
  readonly start: number;
  end: number;
  /** Items in it that are still wanted. */
  wantedCount: number;
  /** Copies those that are still wanted elsewhere: others need the room. */
  readonly spill: (batch: ItemBatch) => void;
}

const MIB = 1024 * 1024;
const FIRST_BYTES = 4 * MIB;
/** A longer batch is not taken: it might have no room. */
const MAX_BATCH_BYTES = 3 * MIB;

/**
 * Room for items that wait, of all runs: batches one behind the other, and from the end on from the start again. Whoever holds the
 * oldest one has to copy what it wants of it where the room is needed.
 */
class ItemRing {
  /** In the order in which they were taken, which is that of their places from the oldest one on. */
  private batches: ItemBatch[] = [];
  private next: number = REGION.items;
  /** Where it ends for now: it grows where all of it is wanted, so that a quiet server stays small. */
  private end: number = REGION.items + FIRST_BYTES;

  /**
   * Takes room for a batch.
   * @returns `undefined` where so much never has room. Nothing is wanted of it before its owner says so.
   */
  take(byteCount: number, spill: ItemBatch['spill']): ItemBatch | undefined {
    if (byteCount + SLACK > MAX_BATCH_BYTES) return undefined;
    while (this.batches[0]?.wantedCount === 0) this.batches.shift();
    const needed = byteCount + 2 * SLACK;
    const isStartWanted = (this.batches[0]?.start ?? REGION.scratch) < REGION.items + needed;
    if (this.next + needed > this.end && isStartWanted) this.end = Math.min(REGION.scratch, this.end + FIRST_BYTES);
    if (this.next + needed > this.end) {
      // What stands behind is older than what stands at the start.
      while ((this.batches[0]?.start ?? 0) >= this.next) this.dropOldest();
      this.next = REGION.items;
    }
    // Cells of items are found by their places.
    const start = (this.next + 3) & ~3;
    const end = start + byteCount;
    for (let oldest = this.batches[0]; oldest !== undefined; oldest = this.batches[0]) {
      const isInTheWay = oldest.start >= start && oldest.start < end + SLACK;
      if (!isInTheWay && oldest.wantedCount > 0) break;
      this.dropOldest();
    }
    const batch = { start, end, wantedCount: 0, spill };
    this.batches.push(batch);
    this.next = end + SLACK;
    return batch;
  }

  /** The batch that was taken last is no longer than this. */
  shorten(batch: ItemBatch, end: number): void {
    batch.end = end;
    if (this.batches.at(-1) === batch) this.next = end + SLACK;
  }

  private dropOldest(): void {
    const oldest = this.batches.shift();
    if (oldest !== undefined && oldest.wantedCount > 0) oldest.spill(oldest);
  }
}

/** That of this thread. */
export const itemRing = new ItemRing();
