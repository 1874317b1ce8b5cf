import { describe, expect, it } from 'vitest';
import { parseTraceId, type TraceId } from '../../src/record/telemetry-record.js';
import type { State } from '../../src/storage/state.js';
import { noteOf, rowOf } from '../fake/noted-run.js';

const ACCOUNT = 10_001;
const [A, B, C] = ['a', 'b', 'c'].map((digit) => parseTraceId(digit.repeat(32)) as TraceId) as [
  TraceId,
  TraceId,
  TraceId,
];

/** What every RetentionStore does. `withState` gives the body an empty state and clears it away afterwards. */
export function retentionStoreContract(withState: (body: (state: State) => Promise<void>) => Promise<void>): void {
  /** A run of its own for each trace, which ended at that time. */
  async function add(state: State, traceId: TraceId, endedUnixMs: number, isOpen = false): Promise<number> {
    await state.runs.save([rowOf(traceId, endedUnixMs, isOpen)]);
    await state.invocations.note([noteOf(traceId, endedUnixMs, isOpen)], endedUnixMs);
    const [runId] = await state.traces.runsOf(ACCOUNT, traceId);
    return runId ?? 0;
  }

  describe('a retention store', () => {
    it('lists runs that are over, the oldest end first, page by page', () =>
      withState(async (state) => {
        const late = await add(state, A, 3_000);
        const early = await add(state, B, 1_000);
        await add(state, C, 500, true);
        const { retention } = state;
        const first = await retention.listEnded('telemetry', 3_000, null, 1);
        expect(first).toEqual([{ runId: early, finishedUnixMs: 1_000 }]);
        expect(await retention.listEnded('telemetry', 3_000, first[0] ?? null, 1)).toEqual([
          { runId: late, finishedUnixMs: 3_000 },
        ]);
        expect(await retention.listEnded('telemetry', 2_999, first[0] ?? null, 9)).toEqual([]);
      }));

    it('removes a run with all its rows, and remembers its files until they are gone', () =>
      withState(async (state) => {
        const runId = await add(state, A, 1_000);
        const other = await add(state, B, 1_000);
        await state.cursors.register('own', 0);
        const cursor = { tracesOffset: 10, logsOffset: 10, finishedAtBytes: 10 };
        await state.cursors.save([{ destination: 'own', traceId: A, ...cursor }]);
        const measured = Buffer.from('measured');
        for (const id of [A, B])
          await state.measures.save(id, (await state.runs.find(id))?.summary ?? '', measured, []);
        const { retention } = state;
        const group = await retention.groupOf(runId, ['own']);
        expect(group).toEqual({ runIds: [runId], traceIds: [A], endedUnixMs: 1_000, isLive: false, isPending: false });
        const removals = [
          { kind: 'run', id: String(runId) },
          { kind: 'trace', id: A },
        ];
        expect(group && (await retention.removeRuns(group, ['own'], 5_000))).toEqual(removals.toReversed());
        expect(await state.catalog.findRun(ACCOUNT, runId)).toBeUndefined();
        expect(await state.catalog.stepsOf(ACCOUNT, [runId])).toEqual([]);
        expect(await state.runs.find(A)).toBeUndefined();
        expect(await state.cursors.find('own', A)).toBeUndefined();
        const left = await state.db.selectFrom('run_measures').select('trace_id').execute();
        expect(left).toEqual([{ trace_id: B }]);
        expect(await state.traces.listTraces(ACCOUNT)).toEqual([B]);
        expect(await state.catalog.findRun(ACCOUNT, other)).toBeDefined();
        expect(await retention.listRemovals()).toEqual(removals);
        expect(group && (await retention.removeRuns(group, ['own'], 5_000))).toBeUndefined();
        for (const removal of await retention.listRemovals()) await retention.endRemoval(removal);
        expect(await retention.listRemovals()).toEqual([]);
        // Its number is not given again.
        expect(await add(state, A, 9_000)).toBeGreaterThan(other);
      }));

    it('says of what goes together whether any of it is under way', () =>
      withState(async (state) => {
        const { retention, executions } = state;
        const begun = { runKey: 'night', job: 'nightly', environment: null, project: null, reason: null };
        const start = { ...begun, stepId: 's1', command: ['dbt'], startedUnixMs: 1, isLast: false };
        const { runId } = await executions.register(start, 'local');
        await executions.attach('s1', A);
        const alone = await add(state, B, 1_000);
        await executions.attach('s1', B);
        const group = await retention.groupOf(alone, []);
        expect(group).toMatchObject({ runIds: [runId, alone].toSorted(), traceIds: [A, B], isLive: true });
        await executions.end('s1', { kind: 'exited', exitCode: 0 }, 2_000);
        // Something has changed since it was looked at.
        await executions.finish('night');
        await executions.settle(1_000_000);
        expect(group && (await retention.removeRuns(group, [], 5_000))).toBeUndefined();
        expect(await retention.groupOf(alone, [])).toMatchObject({ isLive: false });
      }));

    it('says whether a destination has not got all of it; one that came later does not count', () =>
      withState(async (state) => {
        await state.cursors.register('own', 0);
        const runId = await add(state, A, 1_000);
        await state.cursors.register('later', 2_000);
        const isPending = async (...names: string[]) => (await state.retention.groupOf(runId, names))?.isPending;
        expect(await isPending()).toBe(false);
        expect(await isPending('later', 'unknown')).toBe(false);
        expect(await isPending('later', 'own')).toBe(true);
        const cursor = { destination: 'own', traceId: A, tracesOffset: 10, logsOffset: 10 };
        await state.cursors.save([{ ...cursor, finishedAtBytes: null }]);
        expect(await isPending('own')).toBe(true);
        await state.cursors.save([{ ...cursor, finishedAtBytes: 10 }]);
        expect(await isPending('own')).toBe(false);
      }));

    it('leaves what one of several processes looks after; removes the rest with what they know of it', () =>
      withState(async (state) => {
        const runId = await add(state, A, 1_000);
        const { retention, journal } = state;
        await journal.claim('p', 1, new Set([0]));
        await journal.open(A, 0);
        expect(await retention.groupOf(runId, [])).toMatchObject({ isLive: true });
        const file = { name: 'run.json', objectKey: `runs/${A}/p-1/run.json`, sizeBytes: 7 };
        await journal.putFiles('p', A, [file], null);
        expect(await journal.close('p', { traceId: A, stepVersion: 0 })).toBe(true);
        const group = await retention.groupOf(runId, []);
        expect(group).toMatchObject({ isLive: false });
        // More of it has come since it was looked at.
        await journal.open(A, 0);
        expect(group && (await retention.removeRuns(group, [], 5_000))).toBeUndefined();
        expect(await journal.usage()).toEqual({ fileCount: 1, sizeBytes: 7 });
        await journal.close('p', { traceId: A, stepVersion: 1 });
        expect(group && (await retention.removeRuns(group, [], 5_000))).toEqual([
          { kind: 'trace', id: A },
          { kind: 'object', id: file.objectKey },
          { kind: 'run', id: String(runId) },
        ]);
        expect((await journal.known([A])).size).toBe(0);
        expect(await journal.usage([A])).toEqual({ fileCount: 0, sizeBytes: 0 });
      }));

    it('tells folders that were moved away from those that come under their names afterwards', () =>
      withState(async (state) => {
        const { retention } = state;
        for (const endedUnixMs of [1_000, 2_000]) {
          const runId = await add(state, A, endedUnixMs);
          const group = await retention.groupOf(runId, []);
          const removals = (group && (await retention.removeRuns(group, [], 5_000))) ?? [];
          expect(removals).toContainEqual({ kind: 'trace', id: A });
          const moved = await retention.noteMoved(removals);
          expect(moved).toEqual([
            { kind: 'moved', id: A },
            { kind: 'run', id: String(runId) },
          ]);
          expect(await retention.listRemovals()).toEqual(expect.arrayContaining([...moved]));
          expect(await retention.listRemovals()).not.toContainEqual({ kind: 'trace', id: A });
        }
      }));

    it('remembers of whose run artifacts were removed', () =>
      withState(async (state) => {
        const runId = await add(state, A, 1_000);
        const { retention } = state;
        expect(await retention.listEnded('artifacts', 1_000, null, 9)).toHaveLength(1);
        expect(await retention.removeArtifacts(runId, 2_000)).toEqual({ kind: 'artifacts', id: String(runId) });
        expect(await retention.listEnded('artifacts', 1_000, null, 9)).toEqual([]);
        expect(await retention.listEnded('telemetry', 1_000, null, 9)).toHaveLength(1);
        expect(await retention.removeArtifacts(runId + 1, 2_000)).toBeUndefined();
      }));
  });
}
