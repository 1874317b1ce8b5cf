/**
 * A sample for each state that something can be in: 1 for the one that it is in, 0 for the others, so that no state is a
 * series that comes and goes.
 */
export function stateSamples<S extends string, T>(
  states: readonly S[],
  current: S,
  toSample: (state: S, value: number) => T,
): readonly T[] {
  return states.map((state) => toSample(state, state === current ? 1 : 0));
}
