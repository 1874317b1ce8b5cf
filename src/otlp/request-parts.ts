import type { ExportRequest, ResourceGroup, ScopeGroup } from './export-request.js';

/** A request's records by their trace ids, in lower-case hex, empty for none; each with its resource and scope, in their order. */
export function partsByTrace(request: ExportRequest): ReadonlyMap<string, ExportRequest> {
  return parts(request, ({ traceId }) => traceId);
}

/** The first and the second half of a request's records; of one record there is no second half. */
export function halvesOf(request: ExportRequest): readonly ExportRequest[] {
  const { resources } = request;
  const count = resources.reduce(
    (sum, { scopes }) => sum + scopes.reduce((all, one) => all + one.records.length, 0),
    0,
  );
  let index = 0;
  return [...parts(request, () => (index++ < count / 2 ? 0 : 1)).values()];
}

interface TracedRecord {
  readonly traceId: string;
}

function parts<Key>(request: ExportRequest, keyOf: (record: TracedRecord) => Key): ReadonlyMap<Key, ExportRequest> {
  const made = new Map<Key, ExportRequest>();
  if (request.signal === 'traces') {
    for (const [key, resources] of divide(request.resources, keyOf)) made.set(key, { signal: 'traces', resources });
  } else {
    for (const [key, resources] of divide(request.resources, keyOf)) made.set(key, { signal: 'logs', resources });
  }
  return made;
}

function divide<T extends TracedRecord, Key>(
  groups: readonly ResourceGroup<T>[],
  keyOf: (record: T) => Key,
): ReadonlyMap<Key, readonly ResourceGroup<T>[]> {
  const divided = new Map<Key, ResourceGroup<T>[]>();
  for (const group of groups) {
    const scopesByKey = new Map<Key, ScopeGroup<T>[]>();
    for (const scope of group.scopes) {
      for (const [key, records] of grouped(scope.records, keyOf)) {
        listAt(scopesByKey, key).push({ ...scope, records });
      }
    }
    for (const [key, scopes] of scopesByKey) listAt(divided, key).push({ ...group, scopes });
  }
  return divided;
}

function grouped<T, Key>(values: readonly T[], keyOf: (value: T) => Key): ReadonlyMap<Key, readonly T[]> {
  const byKey = new Map<Key, T[]>();
  for (const value of values) listAt(byKey, keyOf(value)).push(value);
  return byKey;
}

function listAt<Key, Value>(lists: Map<Key, Value[]>, key: Key): Value[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}
