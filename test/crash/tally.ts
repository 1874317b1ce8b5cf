/** How what is there compares with what has to be there. */
export interface Tally {
  readonly expected: number;
  /** Of the expected, how many are there at least once. */
  readonly found: number;
  readonly missing: number;
  /** How many are there more often than they have to be, counted by each one too many. */
  readonly excess: number;
}

/** Nothing, to add to. */
export const EMPTY_TALLY: Tally = { expected: 0, found: 0, missing: 0, excess: 0 };

/** Compares how often something is there with how often it has to be. What is not expected at all is not counted. */
export function tally<K>(expected: ReadonlyMap<K, number>, there: ReadonlyMap<K, number>): Tally {
  let sum = 0;
  let found = 0;
  let excess = 0;
  for (const [key, count] of expected) {
    const seen = there.get(key) ?? 0;
    sum += count;
    found += Math.min(seen, count);
    excess += Math.max(0, seen - count);
  }
  return { expected: sum, found, missing: sum - found, excess };
}

/** Both together. */
export function addTallies(a: Tally, b: Tally): Tally {
  return {
    expected: a.expected + b.expected,
    found: a.found + b.found,
    missing: a.missing + b.missing,
    excess: a.excess + b.excess,
  };
}
