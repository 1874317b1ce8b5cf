/** One value and a list of them, both of which are to be heeded; `undefined` where neither says anything. An empty list is none. */
export function among<Value>(one: Value | undefined, list: readonly Value[] | undefined): readonly Value[] | undefined {
  const said = list?.length === 0 ? undefined : list;
  if (one === undefined) return said;
  return said === undefined || said.includes(one) ? [one] : [];
}
