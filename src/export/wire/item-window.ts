import { BufferPool, grown } from '../../core/bytes.js';
import type { Signal } from '../../record/record-batch.js';
import type { ExportGroup } from './export-group.js';
import { LOG, WireWriter } from './wire-writer.js';

const MIN_ITEMS = 64;

/**
 * Spans or log records that a run gave one after the other with one resource and scope, as OTLP has them in a ScopeSpans or
 * ScopeLogs: tag, length, message. Their bytes stand in a block, which windows of a run share; what is asked of them stands in
 * columns of numbers. A window grows at its end, and what stands in it does not change.
 */
export class ItemWindow {
  private starts = new Int32Array(MIN_ITEMS);
  private ends = new Int32Array(MIN_ITEMS);
  private anchorOffsets = new Float64Array(MIN_ITEMS);
  private itemCount = 0;

  /** @param number its position among its run's windows: one that began earlier has a lower one */
  constructor(
    readonly number: number,
    readonly group: ExportGroup,
    readonly block: ItemBlock,
  ) {}

  get count(): number {
    return this.itemCount;
  }

  /** Adds an item that stands in the block. @param anchorOffset offset in the log of the record that caused it; never less than the one before */
  add(start: number, end: number, anchorOffset: number): void {
    const index = this.itemCount;
    this.block.userCount += 1;
    if (index === this.starts.length) {
      this.starts = grown(this.starts);
      this.ends = grown(this.ends);
      this.anchorOffsets = grown(this.anchorOffsets);
    }
    this.starts[index] = start;
    this.ends[index] = end;
    this.anchorOffsets[index] = anchorOffset;
    this.itemCount = index + 1;
  }

  startOf(index: number): number {
    return this.starts[index] ?? 0;
  }

  endOf(index: number): number {
    return this.ends[index] ?? 0;
  }

  anchorOf(index: number): number {
    return this.anchorOffsets[index] ?? 0;
  }

  /** The message in an item, without its tag and length. */
  messageOf(index: number): Buffer {
    const { bytes } = this.block.out;
    let at = this.startOf(index) + 1;
    while ((bytes[at] ?? 0) >= 0x80) at++;
    return bytes.subarray(at + 1, this.endOf(index));
  }

  /** Returns whether a log record is one that was made of a span: its message begins as that of a span does, with the ids. */
  isOfSpan(index: number): boolean {
    return this.messageOf(index)[0] === LOG.traceId;
  }

  /** The id of a span, or of the one that a log record was made of, in lower-case hex: its message begins with its trace id and span id. */
  spanIdOf(index: number): string {
    return this.messageOf(index).toString('hex', 20, 28);
  }
}

/** Items in a row of a window. */
export class ItemRange {
  constructor(
    readonly window: ItemWindow,
    readonly from: number,
    readonly to: number,
  ) {}

  get count(): number {
    return this.to - this.from;
  }

  get firstAnchor(): number {
    return this.window.anchorOf(this.from);
  }

  get lastAnchor(): number {
    return this.window.anchorOf(this.to - 1);
  }

  /** Nobody reads the items any more. To be called once at most for each of them; where it is not, the block is not used again. */
  release(): void {
    this.window.block.release(this.count);
  }

  /** The items that are anchored at or behind an offset; `undefined` where none is. */
  anchoredFrom(offset: number): ItemRange | undefined {
    const { window, to } = this;
    if (this.lastAnchor < offset) return undefined;
    let from = this.from;
    while (from < to && window.anchorOf(from) < offset) from++;
    return from === this.from ? this : new ItemRange(window, from, to);
  }

  /** Adds the items that are wanted to a list, those that stand in a row together. */
  pick(isWanted: (index: number) => boolean, into: ItemRange[]): void {
    let start = this.from;
    for (let index = this.from; index < this.to; index++) {
      if (isWanted(index)) continue;
      if (index > start) into.push(new ItemRange(this.window, start, index));
      start = index + 1;
    }
    if (start === this.from) into.push(this);
    else if (start < this.to) into.push(new ItemRange(this.window, start, this.to));
  }
}

/** How many items ranges have together. */
export function countOf(ranges: readonly ItemRange[]): number {
  let count = 0;
  for (const range of ranges) count += range.count;
  return count;
}

/** Cuts ranges in two: so many items from the front, and the others. */
export function cutRanges(
  ranges: readonly ItemRange[],
  itemCount: number,
): readonly [front: readonly ItemRange[], rest: readonly ItemRange[]] {
  let left = itemCount;
  for (const [position, range] of ranges.entries()) {
    if (left < range.count) {
      const { window, from, to } = range;
      const rest = [new ItemRange(window, from + left, to), ...ranges.slice(position + 1)];
      const front = ranges.slice(0, position);
      if (left > 0) front.push(new ItemRange(window, from, from + left));
      return [front, rest];
    }
    left -= range.count;
  }
  return [ranges, []];
}

/** What a mapper gave: items of each signal in the order of their anchors, so that a cursor is one offset: everything anchored before it has been sent. */
export type MappedItems = Readonly<Record<Signal, readonly ItemRange[]>>;

/** Windows share blocks of about this many bytes; an item that is larger makes its block grow. */
const BLOCK_BYTES = 256 * 1024;
/** A block with less room than this is full: most items need no more, and those that do make it grow. */
const ROOM_BYTES = 4 * 1024;

const BLOCKS = new BufferPool();

/** The bytes of items, which windows share. They go to another block as soon as nobody uses them. */
export class ItemBlock {
  readonly out: WireWriter;
  /** Items that somebody may read, and one for who writes them. */
  userCount = 1;

  /** @param pool lends the block's bytes */
  constructor(
    byteCount: number,
    private readonly pool: BufferPool,
  ) {
    this.out = new WireWriter(byteCount === 0 ? 0 : pool.take(byteCount));
  }

  release(count: number): void {
    this.userCount -= count;
    if (this.userCount === 0) this.pool.giveBack(this.out.bytes);
  }
}

/** A signal's windows that are being filled. */
interface OpenWindows {
  last: ItemWindow | undefined;
  /** Items of the last window that were taken. */
  takenCount: number;
  /** What was not taken of those before it. */
  ready: ItemRange[];
}

/** Writes a run's items into windows. */
export class WindowWriter {
  private block: ItemBlock;
  /** Where the last item in the block ends. */
  private end = 0;
  private nextNumber = 0;
  private readonly open: Readonly<Record<Signal, OpenWindows>> = {
    traces: { last: undefined, takenCount: 0, ready: [] },
    logs: { last: undefined, takenCount: 0, ready: [] },
  };

  constructor(
    private readonly blockBytes = BLOCK_BYTES,
    private readonly pool = BLOCKS,
  ) {
    this.block = new ItemBlock(0, pool);
  }

  /** Where the next item is to be written, its tag and length included. What was begun and not added is written over. */
  begin(): WireWriter {
    const { block, end } = this;
    if (end + ROOM_BYTES <= block.out.bytes.length) {
      block.out.length = end;
      return block.out;
    }
    if (end > 0) block.release(1);
    this.block = new ItemBlock(this.blockBytes, this.pool);
    this.end = 0;
    return this.block.out;
  }

  /** Adds the item that was written since `begin`. */
  add(signal: Signal, group: ExportGroup, anchorOffset: number): void {
    const { block, end: start } = this;
    const open = this.open[signal];
    let { last } = open;
    if (last === undefined || last.block !== block || last.group !== group) {
      this.close(open);
      last = new ItemWindow(this.nextNumber++, group, block);
      open.last = last;
    }
    this.end = block.out.length;
    last.add(start, this.end, anchorOffset);
  }

  /** Takes what was added since it was called before. */
  take(): MappedItems {
    return { traces: this.takeOf('traces'), logs: this.takeOf('logs') };
  }

  private takeOf(signal: Signal): readonly ItemRange[] {
    const open = this.open[signal];
    const { last, takenCount, ready } = open;
    if (last !== undefined && last.count > takenCount) {
      ready.push(new ItemRange(last, takenCount, last.count));
      open.takenCount = last.count;
    }
    open.ready = [];
    return ready;
  }

  private close(open: OpenWindows): void {
    const { last, takenCount, ready } = open;
    if (last !== undefined && last.count > takenCount) ready.push(new ItemRange(last, takenCount, last.count));
    open.takenCount = 0;
  }
}
