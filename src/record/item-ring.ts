import { REGION, SLACK } from './arena.js';

/** Wants items of a batch. */
export interface ItemOwner {
  /** Copies what it still wants of a batch elsewhere: others need the room. */
  spill(batch: ItemBatch): void;
}

/** A range of the arena that holds items, until nobody wants any of them. */
export class ItemBatch {
  /** How many items are wanted, by all owners. */
  wantedCount = 0;
  private readonly owners: ItemOwner[] = [];

  constructor(
    readonly start: number,
    public end: number,
  ) {}

  /** One item more is wanted; its owner gives it back with `letGo`. */
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
/** Room that there is at the start, and by which it grows. */
const GROWTH_BYTES = 4 * MIB;
/** A batch of which no more is wanted takes no room: that is copied where the room is needed. */
const FEW_ITEMS = 8;
/** A longer batch is not taken. */
const MAX_BATCH_BYTES = 12 * MIB;

/**
 * Room for items, of all requests and runs: batches one behind the other, and from the end on from the start again. Whoever wants
 * items of the oldest one has to copy them where the room is needed and it does not grow.
 */
class ItemRing {
  /** In the order in which they were taken, which is that of their places from the oldest one on. */
  private batches: ItemBatch[] = [];
  private next: number = REGION.items;
  /** Where it ends for now: it grows where much of its start is wanted, so that a quiet server stays small. */
  private end: number = REGION.items + GROWTH_BYTES;

  /**
   * Takes room for a batch.
   * @returns `undefined` where so much never has room. Nothing is wanted of it before its owner says so.
   */
  take(byteCount: number): ItemBatch | undefined {
    if (byteCount + SLACK > MAX_BATCH_BYTES) return undefined;
    while (this.batches[0]?.wantedCount === 0) this.batches.shift();
    const needed = byteCount + 2 * SLACK;
    while (REGION.items + needed > this.end) this.grow();
    while (this.next + needed > this.end && this.end < REGION.scratch && this.isStartWanted()) this.grow();
    if (this.next + needed > this.end) {
      // What stands behind is older than what stands at the start.
      while ((this.batches[0]?.start ?? 0) >= this.next) this.dropOldest();
      this.next = REGION.items;
    }
    // Cells of items stand beside them, in numbers of four bytes.
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

  /** The batch that was taken last is no longer than this. */
  shorten(batch: ItemBatch, end: number): void {
    batch.end = end;
    if (this.batches.at(-1) === batch) this.next = end + SLACK;
  }

  /** Whether much is wanted of what stands where it would go on from the start. */
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

/** That of this thread. */
export const itemRing = new ItemRing();
