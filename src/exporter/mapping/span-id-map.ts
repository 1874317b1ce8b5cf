import { randomInt } from 'node:crypto';
import type { IdHalves } from './id-halves.js';

interface Entry<V> {
  readonly high: number;
  readonly low: number;
  value: V;
  /** Another id with the same hash. */
  next: Entry<V> | undefined;
}

/**
 * Values by span id, without a text for each id. Of limited size: beyond it the entry that was added first goes, and with it
 * those whose ids have the same hash. The hash is seeded, so that a sender cannot choose ids that all meet in one place.
 */
export class SpanIdMap<V> {
  private readonly entries = new Map<number, Entry<V>>();
  /**
   * Stands at the oldest entry. One iterator for good: a new one would pass over the places of all that went before, which
   * a Map keeps for long.
   */
  private readonly oldest = this.entries.values();
  private count = 0;

  /** @param seed any 32 bits. What the map holds does not depend on it. */
  constructor(
    private readonly maxSize = Number.POSITIVE_INFINITY,
    private readonly seed = randomInt(2 ** 32),
  ) {}

  get size(): number {
    return this.count;
  }

  get(high: number, low: number): V | undefined {
    let entry = this.entries.get(this.hashOf(high, low));
    while (entry !== undefined && (entry.high !== high || entry.low !== low)) entry = entry.next;
    return entry?.value;
  }

  /** Adds an id that is not there. */
  add(high: number, low: number, value: V): void {
    const hash = this.hashOf(high, low);
    const others = this.entries.get(hash);
    if (others === undefined) this.entries.set(hash, { high, low, value, next: undefined });
    else others.next = { high, low, value, next: others.next };
    this.count++;
    if (this.count <= this.maxSize) return;
    const oldest = this.oldest.next();
    if (!oldest.done) this.forget(oldest.value);
  }

  delete(high: number, low: number): void {
    const hash = this.hashOf(high, low);
    const first = this.entries.get(hash);
    if (first === undefined) return;
    if (first.high === high && first.low === low) {
      if (first.next === undefined) this.entries.delete(hash);
      else this.entries.set(hash, first.next);
      this.count--;
      return;
    }
    for (let entry = first; entry.next !== undefined; entry = entry.next) {
      if (entry.next.high !== high || entry.next.low !== low) continue;
      entry.next = entry.next.next;
      this.count--;
      return;
    }
  }

  /** Deletes all ids with the hash of one. */
  private forget(first: Entry<V>): void {
    for (let entry: Entry<V> | undefined = first; entry !== undefined; entry = entry.next) this.count--;
    this.entries.delete(this.hashOf(first.high, first.low));
  }

  /** In the order in which they were added. */
  *[Symbol.iterator](): Generator<readonly [id: IdHalves, value: V]> {
    for (const first of this.entries.values()) {
      for (let entry: Entry<V> | undefined = first; entry !== undefined; entry = entry.next) {
        yield [[entry.high, entry.low], entry.value];
      }
    }
  }

  private hashOf(high: number, low: number): number {
    const hash = Math.imul(high ^ this.seed, 0x9e3779b1) ^ low;
    return Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
  }
}
