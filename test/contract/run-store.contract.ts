import { describe, expect, it } from 'vitest';
import { parseTraceId, type TraceId } from '../../src/record/telemetry-record.js';
import type { RunMeasuresStore, RunRow, RunStore } from '../../src/storage/run-store.js';

/** What every RunStore does. `withStore` gives the body an empty store and clears it away afterwards. */
export function runStoreContract(withStore: (body: (store: RunStore) => Promise<void>) => Promise<void>): void {
  describe('a run store', () => {
    it('finds nothing where nothing was saved', () =>
      withStore(async (store) => {
        expect(await store.find(traceId(1))).toBeUndefined();
        expect(await store.list(10)).toEqual([]);
        expect(await store.listUnfinished()).toEqual([]);
        await store.save([]);
      }));

    it('gives back what was saved, large numbers and any text included', () =>
      withStore(async (store) => {
        const row = runRow(1, { logBytes: 2 ** 52, summary: '{"text":"ü \\u0000 \u{1f600} \'quoted\'"}' });
        await store.save([row]);
        expect(await store.find(row.traceId)).toEqual(row);
      }));

    it('replaces the row of a run that is saved again', () =>
      withStore(async (store) => {
        await store.save([runRow(1, {}), runRow(2, {})]);
        const later = runRow(1, { state: 'finished', lastSeenUnixMs: 99, logBytes: 20, parquetBytes: 20 });
        await store.save([later]);
        expect(await store.find(later.traceId)).toEqual(later);
        expect(await store.list(10)).toHaveLength(2);
      }));

    it('lists the newest first, as many as asked for', () =>
      withStore(async (store) => {
        await store.save([2, 3, 1].map((number) => runRow(number, { firstSeenUnixMs: number })));
        expect((await store.list(2)).map((row) => row.firstSeenUnixMs)).toEqual([3, 2]);
      }));

    it('lists as unfinished what is open and what has no Parquet up to the end of its log', () =>
      withStore(async (store) => {
        await store.save([
          runRow(1, { state: 'open', parquetBytes: 10 }),
          runRow(2, { state: 'finished', parquetBytes: 10 }),
          runRow(3, { state: 'finished', parquetBytes: null }),
          runRow(4, { state: 'finished', parquetBytes: 9 }),
        ]);
        const found = await store.listUnfinished();
        expect(found.map((row) => row.traceId)).toEqual([traceId(1), traceId(3), traceId(4)]);
      }));

    it('saves more rows at once than one statement holds', () =>
      withStore(async (store) => {
        await store.save(Array.from({ length: 1_234 }, (_, index) => runRow(index + 1, {})));
        expect(await store.list(10_000)).toHaveLength(1_234);
      }));
  });
}

/** What every RunMeasuresStore does. `withStores` gives the body two empty stores and clears them away afterwards. */
export function runMeasuresStoreContract(
  withStores: (body: (runs: RunStore, measures: RunMeasuresStore) => Promise<void>) => Promise<void>,
): void {
  describe('a store of measures', () => {
    const content = (text: string) => Buffer.from([0, 255, ...Buffer.from(text)]);
    const bytes = (found: { readonly content: Uint8Array | null } | undefined) =>
      found?.content === null || found === undefined ? found?.content : Buffer.from(found.content);

    it('has nothing of an unknown trace, nor of one that was not measured', () =>
      withStores(async (runs, measures) => {
        expect(await measures.find(traceId(1))).toBeUndefined();
        await runs.save([runRow(1, { state: 'finished', summary: '{"a":1}' })]);
        expect(await measures.find(traceId(1))).toEqual({ state: 'finished', summary: '{"a":1}', content: null });
        expect(await measures.isUsed()).toBe(false);
        await measures.save(traceId(1), '{"a":1}', content(''), []);
        expect(await measures.isUsed()).toBe(true);
      }));

    it('gives back what was measured of a summary, until the trace has another one', () =>
      withStores(async (runs, measures) => {
        const rows = [runRow(1, { summary: '{"a":1}' }), runRow(2, { summary: '{"b":1}' })];
        await runs.save(rows);
        for (const { traceId: id, summary } of rows) await measures.save(id, summary, content(summary), []);
        await measures.save(traceId(1), '{"a":1}', content('again'), []);
        expect(bytes(await measures.find(traceId(1)))).toEqual(content('again'));
        expect(bytes(await measures.find(traceId(2)))).toEqual(content('{"b":1}'));
        await runs.save([runRow(1, { summary: '{"a":2}' })]);
        expect(await measures.find(traceId(1))).toMatchObject({ summary: '{"a":2}', content: null });
        await measures.save(traceId(1), '{"a":2}', content('late'), []);
        expect(bytes(await measures.find(traceId(1)))).toEqual(content('late'));
      }));

    it('stores nothing of an earlier summary, and nothing of a trace that is gone', () =>
      withStores(async (runs, measures) => {
        await runs.save([runRow(1, { summary: '{"a":2}' })]);
        await measures.save(traceId(1), '{"a":2}', content('new'), []);
        await measures.save(traceId(1), '{"a":1}', content('old'), []);
        expect(bytes(await measures.find(traceId(1)))).toEqual(content('new'));
        await measures.save(traceId(2), '{}', content('gone'), []);
        await runs.save([runRow(2, { summary: '{}' })]);
        expect(bytes(await measures.find(traceId(2)))).toBeNull();
      }));
  });
}

function traceId(number: number): TraceId {
  const id = parseTraceId(number.toString(16).padStart(32, '0'));
  if (id === undefined) throw new Error('not a trace id');
  return id;
}

function runRow(number: number, changes: Partial<RunRow>): RunRow {
  return {
    traceId: traceId(number),
    firstSeenUnixMs: 1_700_000_000_000 + number,
    lastSeenUnixMs: 1_700_000_000_000 + number,
    state: 'open',
    logBytes: 10,
    summary: '{}',
    parquetBytes: null,
    ...changes,
  };
}
