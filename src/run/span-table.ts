import type { SpanId } from '../record/ids.js';
import { SpanIdTable } from '../record/span-id-table.js';

/**
 * Span ids of a trace and which of them belong together: a union-find over ids, about 30 bytes a span and nothing else
 * of it. Joining is the same in any order.
 */
export class SpanTable {
  private readonly indices = new SpanIdTable();
  private parents = new Int32Array(64);
  private known = new Uint8Array(64);

  /** @param maxSpans ids beyond this many are not taken. */
  constructor(private readonly maxSpans: number) {}

  get size(): number {
    return this.indices.size;
  }

  /** Memory that it takes, in bytes. */
  get byteCount(): number {
    return this.indices.byteCount + this.parents.byteLength + this.known.byteLength;
  }

  find(id: SpanId): number | undefined {
    return this.indices.get(id);
  }

  /** The span's index, given one if it is new; `undefined` when the table is full. */
  indexOf(id: SpanId): number | undefined {
    const known = this.indices.get(id);
    if (known !== undefined) return known;
    const index = this.add();
    if (index !== undefined) this.indices.set(id, index);
    return index;
  }

  /** As `indexOf`, for the two halves of an id. */
  indexOfHalves(high: number, low: number): number | undefined {
    const known = this.indices.getHalves(high, low);
    if (known !== undefined) return known;
    const index = this.add();
    if (index !== undefined) this.indices.setHalves(high, low, index);
    return index;
  }

  /** The index that stands for everything joined with this one. */
  rootOf(index: number): number {
    let root = index;
    for (let parent = this.parents[root]; parent !== undefined && parent !== root; parent = this.parents[root]) {
      // Halve the path on the way, so that chains stay short.
      const grandparent = this.parents[parent] ?? parent;
      this.parents[root] = grandparent;
      root = grandparent;
    }
    return root;
  }

  /** From now on everything joined with `from` is joined with `into`. Both are roots. */
  join(into: number, from: number): void {
    this.parents[from] = into;
  }

  /** Whether a record of the span itself was seen. */
  hasRecord(index: number): boolean {
    return this.known[index] === 1;
  }

  markRecord(index: number): void {
    this.known[index] = 1;
  }

  private add(): number | undefined {
    const index = this.indices.size;
    if (index >= this.maxSpans) return undefined;
    if (index === this.parents.length) this.grow();
    this.parents[index] = index;
    return index;
  }

  private grow(): void {
    const parents = new Int32Array(this.parents.length * 2);
    parents.set(this.parents);
    this.parents = parents;
    const known = new Uint8Array(this.known.length * 2);
    known.set(this.known);
    this.known = known;
  }
}
