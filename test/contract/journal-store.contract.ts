import { describe, expect, it } from 'vitest';
import { parseTraceId, type TraceId } from '../../src/record/telemetry-record.js';
import type { State } from '../../src/storage/state.js';

function trace(number: number): TraceId {
  const parsed = parseTraceId(number.toString(16).padStart(32, '0'));
  if (parsed === undefined) throw new Error('no trace id');
  return parsed;
}

const FILE = { name: 'telemetry.jsonl', objectKey: 'runs/1', sizeBytes: 7 };

/** What every state's store for several processes does. `withState` gives the body an empty state and clears it away afterwards. */
export function journalStoreContract(withState: (body: (state: State) => Promise<void>) => Promise<void>): void {
  const within = (body: (journal: State['journal']) => Promise<void>) => withState(({ journal }) => body(journal));

  describe('the partitions of a journal', () => {
    it('are of whom the latest generation gives them to', () =>
      within(async (journal) => {
        await journal.claim('a', 1, new Set([0, 1]));
        expect(await journal.partitionsOf('a')).toEqual(new Set([0, 1]));
        await journal.claim('b', 2, new Set([1, 2]));
        expect([await journal.partitionsOf('a'), await journal.partitionsOf('b')]).toEqual([
          new Set([0]),
          new Set([1, 2]),
        ]);
        await expect(journal.claim('a', 1, new Set([0, 1]))).rejects.toMatchObject({ code: 'locked' });
        await journal.claim('a', 3, new Set([0, 1]));
        expect(await journal.partitionsOf('b')).toEqual(new Set([2]));
        // A generation gives each of them to one process, which may say so again.
        await expect(journal.claim('b', 3, new Set([1, 2]))).rejects.toMatchObject({ code: 'locked' });
        await journal.claim('a', 3, new Set([0, 1]));
        expect(await journal.partitionsOf('a')).toEqual(new Set([0, 1]));
      }));
  });

  describe('the traces of a journal', () => {
    const open = (journal: State['journal'], number: number) => journal.open(trace(number), number % 2);

    it('are new the first time, and looked after by whoever has their partition', () =>
      within(async (journal) => {
        expect([await open(journal, 1), await open(journal, 2)]).toEqual([true, true]);
        expect([await open(journal, 2), await open(journal, 3)]).toEqual([false, true]);
        expect(await journal.listOpen('a')).toEqual([]);
        await journal.claim('a', 1, new Set([1]));
        await journal.claim('b', 1, new Set([0]));
        const held = (await journal.listOpen('a')).map(({ traceId, partition }) => [traceId, partition]);
        expect(held.sort()).toEqual([
          [trace(1), 1],
          [trace(3), 1],
        ]);
        expect((await journal.listOpen('b')).map(({ traceId }) => traceId)).toEqual([trace(2)]);
        expect(await journal.known([trace(1), trace(9)])).toEqual(new Set([trace(1)]));
      }));

    it('are let go of by the one who has them alone, unless their steps have changed', () =>
      within(async (journal) => {
        await open(journal, 1);
        await journal.claim('a', 1, new Set([1]));
        const at = { traceId: trace(1), stepVersion: 0 };
        expect(await journal.close('b', at)).toBe(false);
        await journal.noteSteps([trace(1), trace(5)]);
        expect(await journal.close('a', at)).toBe(false);
        expect(await journal.close('a', { ...at, stepVersion: 1 })).toBe(true);
        expect(await journal.listOpen('a')).toEqual([]);
        // There is more to do for it: of its steps, or records.
        await journal.noteSteps([trace(1)]);
        expect(await journal.listOpen('a')).toMatchObject([{ traceId: trace(1), stepVersion: 2 }]);
        expect(await journal.close('a', { ...at, stepVersion: 2 })).toBe(true);
        expect(await open(journal, 1)).toBe(false);
        expect(await journal.listOpen('a')).toHaveLength(1);
      }));

    it('have files of the one who has them alone', () =>
      within(async (journal) => {
        await open(journal, 1);
        await open(journal, 2);
        await journal.claim('a', 1, new Set([1]));
        expect(await journal.putFiles('b', trace(1), [FILE], null)).toBe(false);
        expect(await journal.putFiles('a', trace(2), [FILE], null)).toBe(false);
        expect(await journal.filesOf(trace(1))).toEqual([]);
        expect(await journal.putFiles('a', trace(1), [FILE], null)).toBe(true);
        expect(await journal.putFiles('a', trace(1), [{ ...FILE, sizeBytes: 8 }], null)).toBe(true);
        expect(await journal.filesOf(trace(1))).toEqual([{ ...FILE, sizeBytes: 8 }]);
        expect(await journal.usage()).toEqual({ fileCount: 1, sizeBytes: 8 });
        expect(await journal.usage([trace(2)])).toEqual({ fileCount: 0, sizeBytes: 0 });
        expect(await journal.latestFiles([trace(1)])).toEqual([{ ...FILE, sizeBytes: 8, traceId: trace(1) }]);
        const parts = ['parts/1', 'parts/2'].map((name) => ({ ...FILE, name }));
        await open(journal, 3);
        for (const id of [trace(1), trace(3)]) expect(await journal.putFiles('a', id, parts, null)).toBe(true);
        const other = { ...FILE, name: 'other' };
        expect(await journal.putFiles('b', trace(1), [other], 'parts/')).toBe(false);
        expect(await journal.putFiles('a', trace(1), [other], 'parts/')).toBe(true);
        const left = await journal.filesOf(trace(1));
        expect(left).toHaveLength(2);
        expect(left).toEqual(expect.arrayContaining([{ ...FILE, sizeBytes: 8 }, other]));
        expect(await journal.filesOf(trace(3))).toHaveLength(2);
      }));

    it('are pending while a destination that wants their run has not got to its end', () =>
      withState(async ({ journal, runs, cursors }) => {
        const names = ['jaeger', 'tempo'];
        const traceId = trace(1);
        expect(await journal.isExportPending(traceId, names)).toBe(false);
        await cursors.register('jaeger', 0);
        await runs.save([
          {
            traceId,
            firstSeenUnixMs: 10,
            lastSeenUnixMs: 10,
            state: 'finished',
            logBytes: 5,
            summary: '{}',
            parquetBytes: 5,
          },
        ]);
        await cursors.register('tempo', 20);
        expect(await journal.isExportPending(traceId, ['tempo'])).toBe(false);
        expect(await journal.isExportPending(traceId, names)).toBe(true);
        const cursor = { destination: 'jaeger', traceId, tracesOffset: 5, logsOffset: 5 };
        await cursors.save([{ ...cursor, finishedAtBytes: null }]);
        expect(await journal.isExportPending(traceId, names)).toBe(true);
        await cursors.save([{ ...cursor, finishedAtBytes: 5 }]);
        expect(await journal.isExportPending(traceId, names)).toBe(false);
      }));
  });
}
