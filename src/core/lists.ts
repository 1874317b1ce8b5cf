/** A list in pieces of so many, the last one of what is left; none of an empty list. */
export function* slices<T>(list: readonly T[], length: number): Generator<readonly T[], void> {
  for (let from = 0; from < list.length; from += length) yield list.slice(from, from + length);
}

/**
 * The value below which a share of the values lies: of 0.5 the median. Between two values it is interpolated in proportion, as
 * `quantile_cont` of DuckDB and PostgreSQL's `percentile_cont` do it.
 * @param values in any order
 * @returns `undefined` without a value
 */
export function quantile(values: readonly number[], share: number): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const low = sorted[Math.floor(at)];
  const high = sorted[Math.ceil(at)];
  return low === undefined || high === undefined ? undefined : low + (high - low) * (at - Math.floor(at));
}

/** Items by what they have in common, each group in their order, groups in the order of their first item. (`Map.groupBy` comes with Node 21.) */
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
