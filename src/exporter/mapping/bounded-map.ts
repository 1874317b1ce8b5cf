/** A map of limited size: beyond it the entry that was set first goes. Setting a key again keeps its place. */
export class BoundedMap<K, V> {
  private readonly entries = new Map<K, V>();
  /**
   * Stands at the oldest entry. One iterator for good: a new one would pass over the places of all that went before, which
   * a Map keeps for long.
   */
  private readonly oldest = this.entries.keys();

  constructor(private readonly maxSize: number) {}

  get(key: K): V | undefined {
    return this.entries.get(key);
  }

  has(key: K): boolean {
    return this.entries.has(key);
  }

  set(key: K, value: V): void {
    this.entries.set(key, value);
    if (this.entries.size <= this.maxSize) return;
    const oldest = this.oldest.next();
    if (!oldest.done) this.entries.delete(oldest.value);
  }

  delete(key: K): void {
    this.entries.delete(key);
  }

  values(): IterableIterator<V> {
    return this.entries.values();
  }
}
