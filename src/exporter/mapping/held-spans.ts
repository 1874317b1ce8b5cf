import type { Resource } from '../../record/resource.js';
import type { LineBlock } from '../lines/line-blocks.js';

/** A span's end that waited for late events. */
export interface HeldSpan {
  readonly anchorOffset: number;
  readonly resource: Resource;
  /** The block that its line is in, and the line's index there. */
  readonly block: LineBlock;
  readonly index: number;
}

const MIN_CAPACITY = 64;
/** More places than these are given back once nothing is held. */
const MAX_IDLE_CAPACITY = 4096;

/**
 * Ended spans in the order of the log, first in, first out. At full load they are a hundred thousand, so they are kept in
 * columns of numbers, a ring in each: as objects they are most of what V8 has to look at and to move when it collects garbage.
 */
export class HeldSpans {
  private capacity = MIN_CAPACITY;
  private from = 0;
  private heldCount = 0;
  private columns = new Columns(MIN_CAPACITY);

  get count(): number {
    return this.heldCount;
  }

  /** @param index of its line in the block */
  add(
    anchorOffset: number,
    resource: Resource,
    endSeconds: number,
    endNanos: number,
    block: LineBlock,
    index: number,
  ): void {
    if (this.heldCount === this.capacity) this.resize(2 * this.capacity);
    const { columns } = this;
    const at = (this.from + this.heldCount) & (this.capacity - 1);
    this.heldCount++;
    columns.anchorOffsets[at] = anchorOffset;
    columns.resources[at] = resource;
    columns.endSeconds[at] = endSeconds;
    columns.endNanos[at] = endNanos;
    columns.blocks[at] = block;
    columns.indexes[at] = index;
  }

  /** Whether the oldest one ended before a time; not where there is none. */
  isOldestBefore(seconds: number, nanos: number): boolean {
    if (this.heldCount === 0) return false;
    const { endSeconds, endNanos } = this.columns;
    const own = endSeconds[this.from] as number;
    return own < seconds || (own === seconds && (endNanos[this.from] as number) < nanos);
  }

  takeOldest(): HeldSpan | undefined {
    if (this.heldCount === 0) return undefined;
    const at = this.from;
    const { anchorOffsets, resources, blocks, indexes } = this.columns;
    const anchorOffset = anchorOffsets[at] as number;
    const index = indexes[at] as number;
    const resource = resources[at] as Resource;
    const block = blocks[at] as LineBlock;
    // Let go at once: it keeps a block of lines.
    blocks[at] = undefined;
    this.from = (at + 1) & (this.capacity - 1);
    this.heldCount--;
    if (this.heldCount === 0 && this.capacity > MAX_IDLE_CAPACITY) this.resize(MIN_CAPACITY);
    return { anchorOffset, resource, block, index };
  }

  private resize(capacity: number): void {
    const columns = new Columns(capacity);
    for (let index = 0; index < this.heldCount; index++) {
      columns.take(index, this.columns, (this.from + index) & (this.capacity - 1));
    }
    this.columns = columns;
    this.capacity = capacity;
    this.from = 0;
  }
}

/** What is held, one place in each column a span. */
class Columns {
  readonly anchorOffsets: Float64Array;
  readonly endSeconds: Float64Array;
  readonly endNanos: Int32Array;
  readonly indexes: Int32Array;
  readonly resources: (Resource | undefined)[];
  readonly blocks: (LineBlock | undefined)[];

  constructor(capacity: number) {
    this.anchorOffsets = new Float64Array(capacity);
    this.endSeconds = new Float64Array(capacity);
    this.endNanos = new Int32Array(capacity);
    this.indexes = new Int32Array(capacity);
    this.resources = new Array(capacity).fill(undefined);
    this.blocks = new Array(capacity).fill(undefined);
  }

  take(at: number, from: Columns, place: number): void {
    this.anchorOffsets[at] = from.anchorOffsets[place] as number;
    this.endSeconds[at] = from.endSeconds[place] as number;
    this.endNanos[at] = from.endNanos[place] as number;
    this.indexes[at] = from.indexes[place] as number;
    this.resources[at] = from.resources[place];
    this.blocks[at] = from.blocks[place];
  }
}
