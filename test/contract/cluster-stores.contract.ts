import { describe, expect, it } from 'vitest';
import { parseTraceId, type TraceId } from '../../src/record/telemetry-record.js';
import type { State } from '../../src/storage/state.js';

const LEASE_MS = 60_000;
const ALL = ['a', 'b', 'c', ...Array.from({ length: 8 }, (_, index) => `p${index}`)];

function trace(number: number): TraceId {
  const parsed = parseTraceId(number.toString(16).padStart(32, '0'));
  if (parsed === undefined) throw new Error('no trace id');
  return parsed;
}

const parts = (...traceIds: readonly TraceId[]) =>
  traceIds.map((traceId, index) => ({ traceId, fromByte: index * 10, toByte: index * 10 + 10 }));

/** What every state's stores for several processes do. `withState` gives the body an empty state and clears it away afterwards. */
export function clusterStoresContract(withState: (body: (state: State) => Promise<void>) => Promise<void>): void {
  const within = (body: (stores: State['cluster']) => Promise<void>) => withState(({ cluster }) => body(cluster));
  const among = (names: readonly string[], body: (stores: State['cluster']) => Promise<void>) =>
    within(async (stores) => {
      for (const name of names) await stores.members.join(name, LEASE_MS);
      await body(stores);
    });

  describe('the members of a cluster', () => {
    it('are alive for their lease, and dead for good once somebody found that it ran out', () =>
      within(async ({ members }) => {
        await members.join('a', LEASE_MS);
        await members.join('b', -1);
        expect(await members.renew('a', LEASE_MS)).toBe(true);
        expect(await members.bury()).toEqual(['b']);
        expect(await members.listAlive()).toEqual(['a']);
        expect(await members.renew('b', LEASE_MS)).toBe(false);
        expect(await members.renew('nobody', LEASE_MS)).toBe(false);
      }));

    it('may renew a lease that ran out when nobody has noticed', () =>
      within(async ({ members }) => {
        await members.join('a', -1);
        expect(await members.renew('a', LEASE_MS)).toBe(true);
        expect(await members.bury()).toEqual([]);
      }));

    it('are dead at once when they leave, and forgotten only when they are dead', () =>
      within(async ({ members }) => {
        await members.join('a', LEASE_MS);
        await members.join('b', LEASE_MS);
        await members.leave('a');
        await members.forget(['a', 'b']);
        expect(await members.bury()).toEqual([]);
        expect(await members.renew('b', LEASE_MS)).toBe(true);
      }));
  });

  describe('the journal of a cluster', () => {
    it('counts the parts of each trace without gaps, whichever process adds them', () =>
      among(ALL, async ({ journal, traces }) => {
        await journal.add('a', 'one', parts(trace(2), trace(1), trace(2)));
        await Promise.all(
          Array.from({ length: 8 }, (_, index) =>
            journal.add(`p${index}`, `object ${index}`, parts(trace(1), trace(2), trace(1))),
          ),
        );
        const [first, second] = [await journal.list(trace(1), 0, 100), await journal.list(trace(2), 0, 100)];
        expect(first.map(({ part }) => part)).toEqual(Array.from({ length: 17 }, (_, index) => index + 1));
        expect(second.map(({ part }) => part)).toEqual(Array.from({ length: 10 }, (_, index) => index + 1));
        expect(second[1]).toEqual({ traceId: trace(2), part: 2, objectKey: 'one', fromByte: 20, toByte: 30 });
        expect(await journal.list(trace(1), 15, 1)).toMatchObject([{ part: 16 }]);
        expect(await traces.find(trace(1))).toMatchObject({ owner: 'a', generation: 1, lastPart: 17, storedPart: 0 });
      }));

    it('takes a part that ends a wait from the one who has the trace alone', () =>
      among(ALL, async ({ journal }) => {
        await journal.add('a', 'one', parts(trace(1)));
        expect(await journal.addRelease('b', trace(1), 1)).toBe(false);
        expect(await journal.addRelease('a', trace(1), 1)).toBe(true);
        expect(await journal.list(trace(1), 0, 10)).toMatchObject([
          { objectKey: 'one' },
          { objectKey: null, toByte: 1 },
        ]);
      }));

    it('takes nothing from a process that counts as dead', () =>
      among(ALL, async ({ members, journal, traces }) => {
        await members.leave('a');
        await expect(journal.add('a', 'one', parts(trace(1)))).rejects.toMatchObject({ code: 'locked' });
        await expect(journal.add('nobody', 'one', parts(trace(1)))).rejects.toMatchObject({ code: 'locked' });
        expect(await traces.find(trace(1))).toBeUndefined();
      }));

    it('knows which objects nobody needs', () =>
      among(ALL, async ({ journal, traces }) => {
        await journal.add('a', 'both', parts(trace(1), trace(2)));
        await journal.add('a', 'first', parts(trace(1)));
        expect(await traces.putFiles('a', trace(1), [], 2)).toBe(true);
        expect(await journal.listUnneeded(10)).toEqual(['first']);
        expect(await traces.putFiles('a', trace(2), [], 1)).toBe(true);
        expect([...(await journal.listUnneeded(10))].sort()).toEqual(['both', 'first']);
        await journal.forget(['both']);
        expect(await journal.known(['both', 'first', 'other'])).toEqual(new Set(['first']));
        expect(await journal.listUnneeded(10)).toEqual(['first']);
      }));
  });

  describe('traces of a cluster', () => {
    it('are claimed from the dead, each by one, as a new generation', () =>
      among(ALL, async ({ members, journal, traces }) => {
        await journal.add('a', 'one', parts(trace(1), trace(2), trace(3)));
        await journal.add('c', 'two', parts(trace(4)));
        expect(await traces.claim('b', 10)).toBe(0);
        await members.leave('a');
        expect(await traces.claim('b', 2)).toBe(2);
        const claimed = await Promise.all([traces.claim('b', 10), traces.claim('c', 10)]);
        expect(claimed.reduce((a, b) => a + b)).toBe(1);
        const held = [...(await traces.listOf('b')), ...(await traces.listOf('c'))];
        expect(held.map(({ traceId, generation }) => [traceId, generation]).sort()).toEqual([
          [trace(1), 2],
          [trace(2), 2],
          [trace(3), 2],
          [trace(4), 1],
        ]);
      }));

    it('are stored by the one who has them alone', () =>
      among(ALL, async ({ journal, traces }) => {
        const file = { name: 'telemetry.jsonl', objectKey: 'runs/1', sizeBytes: 7 };
        await journal.add('a', 'one', parts(trace(1)));
        expect(await traces.putFiles('b', trace(1), [file], 1)).toBe(false);
        expect(await traces.filesOf(trace(1))).toEqual([]);
        expect(await traces.putFiles('a', trace(1), [file], 1)).toBe(true);
        expect(await traces.putFiles('a', trace(1), [{ ...file, sizeBytes: 8 }])).toBe(true);
        expect(await traces.filesOf(trace(1))).toEqual([{ ...file, sizeBytes: 8 }]);
        expect(await traces.find(trace(1))).toMatchObject({ storedPart: 1 });
        expect(await journal.list(trace(1), 0, 10)).toEqual([]);
        await traces.removeFile('b', trace(1), file.name);
        expect(await traces.filesOf(trace(1))).toHaveLength(1);
        await traces.removeFile('a', trace(1), file.name);
        expect(await traces.filesOf(trace(1))).toEqual([]);
      }));

    it('are released when all of them is stored, and belong to the process that gets more', () =>
      among(ALL, async ({ journal, traces }) => {
        await journal.add('a', 'one', parts(trace(1)));
        const at = { traceId: trace(1), stepVersion: 0 };
        expect(await traces.release('a', at)).toBe(false);
        await traces.putFiles('a', trace(1), [], 1);
        expect(await traces.release('b', at)).toBe(false);
        expect(await traces.release('a', { ...at, stepVersion: 1 })).toBe(false);
        expect(await traces.release('a', at)).toBe(true);
        expect(await traces.find(trace(1))).toMatchObject({ owner: null });
        await journal.add('b', 'two', parts(trace(1)));
        expect(await traces.find(trace(1))).toMatchObject({ owner: 'b', generation: 2, lastPart: 2, storedPart: 1 });
      }));

    it('are taken up again when more is known of their steps', () =>
      among(ALL, async ({ journal, traces }) => {
        await journal.add('a', 'one', parts(trace(1), trace(2)));
        await traces.putFiles('a', trace(1), [], 1);
        await traces.release('a', { traceId: trace(1), stepVersion: 0 });
        await traces.noteSteps('b', [trace(1), trace(2), trace(3)]);
        expect(await traces.find(trace(1))).toMatchObject({ owner: 'b', generation: 2, stepVersion: 1 });
        expect(await traces.find(trace(2))).toMatchObject({ owner: 'a', generation: 1, stepVersion: 1 });
        expect(await traces.find(trace(3))).toBeUndefined();
      }));

    it('are distinguished from what they were when they come again after they were removed', () =>
      withState(async (state) => {
        const { members, journal, traces } = state.cluster;
        await members.join('a', LEASE_MS);
        await journal.add('a', 'one', parts(trace(1), trace(2)));
        expect(await traces.known([trace(1), trace(2), trace(3)])).toEqual(new Set([trace(1), trace(2)]));
        const before = await traces.find(trace(1));
        await journal.add('a', 'two', parts(trace(1)));
        expect((await traces.find(trace(1)))?.bornUnixMs).toBe(before?.bornUnixMs);
        expect(Math.abs((before?.bornUnixMs ?? 0) - Date.now())).toBeLessThan(600_000);
      }));

    it('are pending while a destination that wants their run has not got to its end', () =>
      withState(async ({ cluster: { traces }, runs, cursors }) => {
        const names = ['jaeger', 'tempo'];
        const traceId = trace(1);
        expect(await traces.isExportPending(traceId, names)).toBe(false);
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
        expect(await traces.isExportPending(traceId, ['tempo'])).toBe(false);
        expect(await traces.isExportPending(traceId, names)).toBe(true);
        const cursor = { destination: 'jaeger', traceId, tracesOffset: 5, logsOffset: 5 };
        await cursors.save([{ ...cursor, finishedAtBytes: null }]);
        expect(await traces.isExportPending(traceId, names)).toBe(true);
        await cursors.save([{ ...cursor, finishedAtBytes: 5 }]);
        expect(await traces.isExportPending(traceId, names)).toBe(false);
      }));
  });
}
