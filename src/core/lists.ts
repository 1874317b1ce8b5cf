/** Cuts a list into pieces of `length` items; the last one has the rest. An empty list has no pieces. */
export function* slices<T>(list: readonly T[], length: number): Generator<readonly T[], void> {
  for (let from = 0; from < list.length; from += length) yield list.slice(from, from + length);
}

/**
 * Returns the value below which a share of the values lies: for 0.5 the median. Interpolates between two values, as DuckDB's `quantile_cont` and PostgreSQL's `percentile_cont` do.
 * @param values in any order
 * @returns `undefined` without values
 */
export function quantile(values: readonly number[], share: number): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const low = sorted[Math.floor(at)];
  const high = sorted[Math.ceil(at)];
  return low === undefined || high === undefined ? undefined : low + (high - low) * (at - Math.floor(at));
}

/** Groups items by key; groups and their items keep the order of `items`. (`Map.groupBy` needs Node 21.) */
export function groupBy<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

/** Sets an entry of a map that remembers the entries that were set last, at most so many. */
export function setLatest<K, V>(map: Map<K, V>, key: K, value: V, maxCount: number): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > maxCount && oldest !== undefined) map.delete(oldest);
}
