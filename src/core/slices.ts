/** A list in pieces of so many, the last one of what is left; none of an empty list. */
export function* slices<T>(list: readonly T[], length: number): Generator<readonly T[], void> {
  for (let from = 0; from < list.length; from += length) yield list.slice(from, from + length);
}
