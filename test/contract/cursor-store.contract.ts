import { describe, expect, it } from 'vitest';
import { parseTraceId, type TraceId } from '../../src/record/telemetry-record.js';
import type { CursorStore, ExportCursor } from '../../src/storage/cursor-store.js';
import type { RunRow, RunStore } from '../../src/storage/run-store.js';

/** The two stores of one database. */
export interface CursorStoreFixture {
  readonly runs: RunStore;
  readonly cursors: CursorStore;
}

/** What every CursorStore does. `withStores` gives the body empty stores and clears them away afterwards. */
export function cursorStoreContract(
  withStores: (body: (stores: CursorStoreFixture) => Promise<void>) => Promise<void>,
): void {
  describe('a cursor store', () => {
    it('finds no cursor where none was saved', () =>
      withStores(async ({ cursors }) => {
        expect(await cursors.find('jaeger', traceId(1))).toBeUndefined();
        await cursors.save([]);
      }));

    it('keeps the last cursor of each destination and run apart', () =>
      withStores(async ({ cursors }) => {
        await cursors.save([
          cursor('jaeger', 1, 5, 6, null),
          cursor('tempo', 1, 7, 8, 9),
          cursor('jaeger', 2, 1, 1, null),
        ]);
        await cursors.save([cursor('jaeger', 1, 50, 60, 70)]);
        expect(await cursors.find('jaeger', traceId(1))).toEqual(cursor('jaeger', 1, 50, 60, 70));
        expect(await cursors.find('tempo', traceId(1))).toEqual(cursor('tempo', 1, 7, 8, 9));
        expect(await cursors.find('jaeger', traceId(2))).toEqual(cursor('jaeger', 2, 1, 1, null));
      }));

    it('keeps the time of the first registration', () =>
      withStores(async ({ cursors }) => {
        expect(await cursors.register('jaeger', 1_000)).toBe(1_000);
        expect(await cursors.register('jaeger', 2_000)).toBe(1_000);
        expect(await cursors.register('tempo', 3_000)).toBe(3_000);
      }));

    it('has pending what came after the registration, also where the clock was set back between the two', () =>
      withStores(async ({ runs, cursors }) => {
        await cursors.register('jaeger', 1_000_000);
        await saveRun(runs, 1, { firstSeenUnixMs: 1_000, state: 'finished' });
        expect(await pendingRuns(cursors)).toEqual([traceId(1)]);
        expect(await cursors.isWanted('jaeger', traceId(1))).toBe(true);
      }));

    it('has nothing pending for a destination that was never registered', () =>
      withStores(async ({ runs, cursors }) => {
        await saveRun(runs, 1, { firstSeenUnixMs: 5_000 });
        expect(await cursors.listPending('jaeger')).toEqual([]);
      }));

    it('has pending what was first seen since the registration, oldest first', () =>
      withStores(async ({ runs, cursors }) => {
        await saveRun(runs, 1, { firstSeenUnixMs: 999, state: 'finished' });
        await cursors.register('jaeger', 1_000);
        await saveRun(runs, 2, { firstSeenUnixMs: 3_000, state: 'finished' });
        await saveRun(runs, 3, { firstSeenUnixMs: 1_000, state: 'open' });
        expect(await pendingRuns(cursors)).toEqual([traceId(3), traceId(2)]);
        expect(await cursors.isWanted('jaeger', traceId(1))).toBe(false);
        expect(await cursors.isWanted('jaeger', traceId(2))).toBe(true);
        expect(await cursors.isWanted('jaeger', traceId(4))).toBe(true);
      }));

    it('has pending an older run that was open at the registration, also once it is finished', () =>
      withStores(async ({ runs, cursors }) => {
        await saveRun(runs, 1, { firstSeenUnixMs: 10, state: 'open' });
        await saveRun(runs, 2, { firstSeenUnixMs: 10, state: 'finished' });
        await cursors.register('jaeger', 1_000);
        await saveRun(runs, 1, { firstSeenUnixMs: 10, state: 'finished' });
        expect(await pendingRuns(cursors)).toEqual([traceId(1)]);
        expect(await cursors.isWanted('jaeger', traceId(1))).toBe(true);
        expect(await cursors.isWanted('jaeger', traceId(2))).toBe(false);
      }));

    it('has pending a run until its last items were sent for the whole log, and again when the log grows', () =>
      withStores(async ({ runs, cursors }) => {
        await cursors.register('jaeger', 0);
        await saveRun(runs, 1, { logBytes: 100, state: 'finished' });
        const isPending = async () => (await cursors.listPending('jaeger')).length === 1;
        expect(await isPending()).toBe(true);
        await cursors.save([cursor('jaeger', 1, 100, 50, null)]);
        expect(await isPending()).toBe(true);
        await cursors.save([cursor('jaeger', 1, 100, 100, null)]);
        expect(await isPending()).toBe(true);
        await cursors.save([cursor('jaeger', 1, 100, 100, 100)]);
        expect(await isPending()).toBe(false);
        await saveRun(runs, 1, { logBytes: 120, state: 'finished' });
        expect(await isPending()).toBe(true);
      }));

    it('says of a pending run how long its log is, how much of it was sent, and when it was seen', () =>
      withStores(async ({ runs, cursors }) => {
        await cursors.register('jaeger', 0);
        await saveRun(runs, 1, { logBytes: 100, firstSeenUnixMs: 4_000 });
        await saveRun(runs, 2, { logBytes: 200 });
        await cursors.save([cursor('jaeger', 2, 150, 120, null)]);
        const times = { firstSeenUnixMs: 4_000, lastSeenUnixMs: 5_000 };
        expect(await cursors.listPending('jaeger')).toEqual([
          { traceId: traceId(1), cursor: cursor('jaeger', 1, 0, 0, null), logBytes: 100, ...times },
          {
            traceId: traceId(2),
            cursor: cursor('jaeger', 2, 150, 120, null),
            logBytes: 200,
            firstSeenUnixMs: 5_000,
            lastSeenUnixMs: 5_000,
          },
        ]);
      }));

    it('knows the pending runs of one destination among ten thousand finished ones within a second', () =>
      withStores(async ({ runs, cursors }) => {
        await cursors.register('jaeger', 0);
        const numbers = Array.from({ length: 10_000 }, (_, index) => index + 1);
        await runs.save(numbers.map((number) => runRow(number, { logBytes: 100, state: 'finished' })));
        for (let from = 0; from < numbers.length; from += 500) {
          await cursors.save(numbers.slice(from, from + 500).map((number) => cursor('jaeger', number, 100, 100, 100)));
        }
        await saveRun(runs, 10_001, { logBytes: 1, state: 'open' });
        const started = performance.now();
        expect(await pendingRuns(cursors)).toEqual([traceId(10_001)]);
        expect(performance.now() - started).toBeLessThan(1_000);
      }));

    it('keeps a place in the foreign telemetry for each registered destination', () =>
      withStores(async ({ cursors }) => {
        await cursors.register('jaeger', 0);
        expect(await cursors.findPassthrough('jaeger')).toBeUndefined();
        await cursors.savePassthrough('jaeger', { segment: 'a.jsonl', offset: 2 ** 40 });
        await cursors.savePassthrough('jaeger', { segment: 'b.jsonl', offset: 7 });
        expect(await cursors.findPassthrough('jaeger')).toEqual({ segment: 'b.jsonl', offset: 7 });
        expect(await cursors.findPassthrough('tempo')).toBeUndefined();
        await expect(cursors.savePassthrough('tempo', { segment: 'b.jsonl', offset: 7 })).rejects.toThrow(
          'not registered',
        );
      }));
  });
}

async function pendingRuns(cursors: CursorStore): Promise<readonly TraceId[]> {
  return (await cursors.listPending('jaeger')).map((run) => run.traceId);
}

function traceId(number: number): TraceId {
  const id = parseTraceId(number.toString(16).padStart(32, '0'));
  if (id === undefined) throw new Error('not a trace id');
  return id;
}

function cursor(
  destination: string,
  run: number,
  tracesOffset: number,
  logsOffset: number,
  finishedAtBytes: number | null,
): ExportCursor {
  return { destination, traceId: traceId(run), tracesOffset, logsOffset, finishedAtBytes };
}

interface RunChanges {
  readonly firstSeenUnixMs?: number;
  readonly state?: 'open' | 'finished';
  readonly logBytes?: number;
}

async function saveRun(runs: RunStore, number: number, changes: RunChanges): Promise<void> {
  await runs.save([runRow(number, changes)]);
}

function runRow(number: number, changes: RunChanges): RunRow {
  return {
    traceId: traceId(number),
    firstSeenUnixMs: 5_000,
    lastSeenUnixMs: 5_000,
    state: 'open',
    logBytes: 10,
    summary: '{}',
    parquetBytes: null,
    ...changes,
  };
}
