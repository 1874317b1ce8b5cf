import { describe, expect, it } from 'vitest';
import { parseTraceId, type TraceId } from '../../src/record/telemetry-record.js';
import { parseRunRows } from '../../src/storage/run-rows.js';
import type { State } from '../../src/storage/state.js';
import { noteOf, rowOf } from '../fake/noted-run.js';

const ACCOUNT = 10_001;
const TRACE = parseTraceId('a'.repeat(32)) as TraceId;

/** What every RowStore does. `withState` gives the body an empty state and clears it away afterwards. */
export function rowStoreContract(withState: (body: (state: State) => Promise<void>) => Promise<void>): void {
  async function add(state: State): Promise<number> {
    await state.runs.save([rowOf(TRACE, 1_000)]);
    await state.invocations.note([noteOf(TRACE, 1_000)], 1_000);
    return (await state.traces.runsOf(ACCOUNT, TRACE))[0] ?? 0;
  }

  describe('a row store', () => {
    it('lists a run once it is over, and again when something of it has changed', () =>
      withState(async (state) => {
        expect(await state.rows.isEmpty()).toBe(true);
        const runId = await add(state);
        expect(await state.rows.isEmpty()).toBe(false);
        const listed = await state.rows.listWithoutBackup(9);
        expect(listed).toMatchObject([{ runId, rows: { executions: { id: runId, status: 10 } } }]);
        expect(await state.rows.noteBackedUp(listed)).toEqual([]);
        expect(await state.rows.listWithoutBackup(9)).toEqual([]);
        await state.invocations.note([noteOf(TRACE, 2_000)], 2_000);
        expect(await state.rows.listWithoutBackup(9)).toHaveLength(1);
        // What was kept is not what there is now.
        expect(await state.rows.noteBackedUp(listed)).toEqual([]);
        expect(await state.rows.listWithoutBackup(9)).toHaveLength(1);
        expect(await state.rows.noteBackedUp([{ runId: runId + 1, revision: 1 }])).toEqual([runId + 1]);
      }));

    it('puts rows back as they were, after a way through text, and gives no number twice', () =>
      withState(async (state) => {
        const { rows, catalog, retention } = state;
        const runId = await add(state);
        const before = [await catalog.findRun(ACCOUNT, runId), await catalog.stepsOf(ACCOUNT, [runId])];
        const [listed] = await rows.listWithoutBackup(9);
        const read = parseRunRows(JSON.stringify(listed?.rows));
        expect(read).toEqual(listed?.rows);
        const group = await retention.groupOf(runId, []);
        if (group !== undefined) await retention.removeRuns(group, [], 5_000);
        expect(await catalog.findRun(ACCOUNT, runId)).toBeUndefined();
        for (let times = 0; times < 2; times += 1) if (read !== undefined) await rows.restore([read]);
        expect(await rows.restoreTraces([rowOf(TRACE, 1_000)])).toEqual([]);
        expect([await catalog.findRun(ACCOUNT, runId), await catalog.stepsOf(ACCOUNT, [runId])]).toEqual(before);
        expect(await rows.listWithoutBackup(9)).toEqual([]);
        expect(await state.invocations.listUnnoted(9)).toEqual([]);
      }));

    it('puts a step back as its account’s', () =>
      withState(async ({ rows, catalog }) => {
        const begun = { runKey: null, job: 'nightly', environment: null, project: null, reason: null };
        const times = { startedUnixMs: 1_000, endedUnixMs: 2_000, traceId: TRACE, ending: null };
        await rows.restoreNamed([
          { ...begun, ...times, runId: 1_020, command: ['dbt'], stepId: '20002/s1', stepIndex: 1 },
        ]);
        expect(await catalog.findRun(ACCOUNT, 1_020)).toBeUndefined();
        expect(await catalog.findRun(20_002, 1_020)).toMatchObject({ accountId: 20_002, job: { name: 'nightly' } });
      }));

    it('puts steps back of which only their trace tells, with the number of their run', () =>
      withState(async (state) => {
        const { rows, catalog, executions } = state;
        const begun = { runKey: 'night', job: 'nightly', environment: 'production', project: null, reason: 'by hand' };
        const times = { startedUnixMs: 1_000, endedUnixMs: 2_000, traceId: TRACE };
        const ending = { kind: 'exited', exitCode: 0 } as const;
        const named = { ...begun, ...times, runId: 1_020, command: ['dbt', 'build'], ending };
        await rows.restoreNamed([
          { ...named, stepId: 's2', stepIndex: 2 },
          { ...named, stepId: 's1', stepIndex: 1 },
        ]);
        expect(await rows.restoreTraces([rowOf(TRACE, 2_000)])).toEqual([TRACE]);
        expect(await catalog.findRun(ACCOUNT, 1_020)).toMatchObject({ job: { name: 'nightly' }, reason: 'by hand' });
        expect((await executions.listSteps(1_020)).map(({ stepId, run }) => [stepId, run.state])).toEqual([
          ['s1', 'finished'],
          ['s2', 'finished'],
        ]);
        const start = { ...begun, stepId: 's3', command: ['dbt'], startedUnixMs: 1, isLast: false };
        expect(await executions.register(start, 'local')).toMatchObject({ runId: 1_021, stepIndex: 1 });
      }));
  });
}
