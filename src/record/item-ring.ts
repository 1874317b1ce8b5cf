import { REGION, SLACK } from './arena.js';

/** Uses items of a batch. */
export interface ItemOwner {
  /** Copies the items that it still needs elsewhere, because the batch's memory is needed. */
  spill(batch: ItemBatch): void;
}

/** A range of the arena with items, which is kept until no item in it is needed. */
export class ItemBatch {
  /** The number of items that any owner still needs. */
  wantedCount = 0;
  private readonly owners: ItemOwner[] = [];

  constructor(
    readonly start: number,
    public end: number,
  ) {}

  /** Registers one more item that `owner` needs, until it calls `letGo`. */
  want(owner: ItemOwner): void {
    this.wantedCount += 1;
    if (!this.owners.includes(owner)) this.owners.push(owner);
  }

  letGo(): void {
    this.wantedCount -= 1;
  }

  spill(): void {
    for (const owner of this.owners) owner.spill(this);
  }
}

const MIB = 1024 * 1024;
/** The initial size of the ring, and the size by which it grows. */
const GROWTH_BYTES = 4 * MIB;
/** A batch of which at most this many items are needed does not make the ring grow: they are copied when its memory is needed. */
const FEW_ITEMS = 8;
/** A longer batch is not accepted. */
const MAX_BATCH_BYTES = 12 * MIB;

/**
 * A ring buffer for the items of all requests and runs: batches follow each other and wrap around at the end. When memory is needed and the ring does not grow, owners have to copy the items of the
 * oldest batch that they need.
 */
class ItemRing {
  /** The batches in the order in which they were taken, the oldest first. */
  private batches: ItemBatch[] = [];
  private next: number = REGION.items;
  /** The current end of the ring. It grows if much of its start is still needed, so that a quiet server stays small. */
  private end: number = REGION.items + GROWTH_BYTES;

  /**
   * Reserves memory for a batch, of which no item is needed until an owner says so.
   * @returns `undefined` if a batch of this size is not accepted
   */
  take(byteCount: number): ItemBatch | undefined {
    if (byteCount + SLACK > MAX_BATCH_BYTES) return undefined;
    while (this.batches[0]?.wantedCount === 0) this.batches.shift();
    const needed = byteCount + 2 * SLACK;
    while (REGION.items + needed > this.end) this.grow();
    while (this.next + needed > this.end && this.end < REGION.scratch && this.isStartWanted()) this.grow();
    if (this.next + needed > this.end) {
      // Batches after `next` are older than those at the start.
      while ((this.batches[0]?.start ?? 0) >= this.next) this.dropOldest();
      this.next = REGION.items;
    }
    // Cells beside the items need an offset that is a multiple of four.
    const start = (this.next + 3) & ~3;
    const end = start + byteCount;
    for (let oldest = this.batches[0]; oldest !== undefined; oldest = this.batches[0]) {
      const isInTheWay = oldest.start >= start && oldest.start < end + SLACK;
      if (!isInTheWay && oldest.wantedCount > 0) break;
      this.dropOldest();
    }
    const batch = new ItemBatch(start, end);
    this.batches.push(batch);
    this.next = end + SLACK;
    return batch;
  }

  /** Sets the end of a batch that was reserved too long. */
  shorten(batch: ItemBatch, end: number): void {
    batch.end = end;
    if (this.batches.at(-1) === batch) this.next = end + SLACK;
  }

  /** Whether many items are needed in the part of the ring where the next batches would go. */
  private isStartWanted(): boolean {
    let byteCount = 0;
    for (const { start, end, wantedCount } of this.batches) {
      const isInTheWay = start < Math.min(this.next, REGION.items + GROWTH_BYTES);
      if (isInTheWay && wantedCount > FEW_ITEMS) byteCount += end - start;
    }
    return byteCount > GROWTH_BYTES / 4;
  }

  private grow(): void {
    this.end = Math.min(REGION.scratch, this.end + GROWTH_BYTES);
  }

  private dropOldest(): void {
    const oldest = this.batches.shift();
    if (oldest !== undefined && oldest.wantedCount > 0) oldest.spill();
  }
}

/** The ring of this thread. */
export const itemRing = new ItemRing();
