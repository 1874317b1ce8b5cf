import type { TraceId } from '../record/ids.js';
import type { RunStore } from '../store/run-store.js';

/** Runs that others left open are not for an import to judge. */
export function onlyImported(store: RunStore, imported: ReadonlySet<TraceId>): RunStore {
  return {
    find: (traceId) => store.find(traceId),
    save: (rows) => store.save(rows),
    list: (limit) => store.list(limit),
    listUnfinished: async () => (await store.listUnfinished()).filter(({ traceId }) => imported.has(traceId)),
  };
}
