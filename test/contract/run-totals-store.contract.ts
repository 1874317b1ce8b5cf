import { describe, expect, it } from 'vitest';
import { parseTraceId, type TraceId } from '../../src/record/telemetry-record.js';
import type { State } from '../../src/storage/state.js';
import { RUN_STATUS } from '../../src/storage/state-tables.js';
import { noteOf, rowOf } from '../fake/noted-run.js';

const traceId = (digit: string): TraceId => parseTraceId(digit.repeat(32)) as TraceId;
const [A, B, C] = [traceId('a'), traceId('b'), traceId('c')];

/** What every RunTotalsStore does. `withState` gives the body an empty state and clears it away afterwards. */
export function runTotalsStoreContract(withState: (body: (state: State) => Promise<void>) => Promise<void>): void {
  /** A run of the job adhoc that began at `startedUnixMs` and ended with that result. */
  async function add(
    state: State,
    id: TraceId,
    startedUnixMs: number,
    endedUnixMs: number,
    verdict: 'success' | 'error' | null,
  ) {
    const note = noteOf(id, endedUnixMs, verdict === null);
    await state.runs.save([rowOf(id, endedUnixMs, verdict === null)]);
    const invocations = note.invocations.map((one) => ({ ...one, startedUnixMs, verdict }));
    await state.invocations.note([{ ...note, invocations }], endedUnixMs);
  }

  const brief = async (state: State) =>
    (await state.runTotals.read())
      .map(({ status, boundSeconds, runCount, durationMs, startedUnixMs }) => [
        status,
        boundSeconds,
        runCount,
        durationMs,
        startedUnixMs,
      ])
      .toSorted(([one = 0], [other = 0]) => one - other);

  describe('a store of how many runs there were', () => {
    it('counts runs by results and durations, and knows the latest of each', () =>
      withState(async (state) => {
        expect(await state.runTotals.read()).toEqual([]);
        await add(state, A, 10_000, 14_000, 'success');
        await add(state, B, 20_000, 25_000, 'success');
        await add(state, C, 30_000, 20_030_001, 'error');
        expect(await brief(state)).toEqual([
          [RUN_STATUS.success, 5, 2, 9_000, 20_000],
          [RUN_STATUS.error, 0, 1, 20_000_001, 30_000],
        ]);
        const totals = await state.runTotals.read();
        const examples = await state.runTotals.examples(totals.map(({ latestRunId }) => latestRunId));
        expect(examples.map(({ traceId, durationMs }) => [traceId, durationMs]).toSorted()).toEqual([
          [B, 5_000],
          [C, 20_000_001],
        ]);
        const { jobs } = await state.runTotals.names();
        expect(totals.map(({ jobId }) => jobs.get(jobId))).toEqual(['adhoc', 'adhoc']);
      }));

    it('knows the run that ended last, also where an earlier one came after it', () =>
      withState(async (state) => {
        await add(state, A, 20_000, 25_000, 'success');
        await add(state, B, 10_000, 14_000, 'success');
        const [latest] = await state.traces.runsOf(10_001, A);
        expect((await state.runTotals.read()).map(({ latestRunId }) => latestRunId)).toEqual([latest]);
      }));

    it('counts a run that is not over, without a duration', () =>
      withState(async (state) => {
        await add(state, A, 10_000, 14_000, null);
        expect(await brief(state)).toEqual([[RUN_STATUS.running, 0, 1, 0, 10_000]]);
      }));

    it('goes on counting runs that were removed', () =>
      withState(async (state) => {
        await add(state, A, 10_000, 14_000, 'success');
        await add(state, B, 20_000, 25_000, 'success');
        await add(state, C, 30_000, 30_500, 'error');
        const before = await brief(state);
        for (const [index, id] of [A, B, C].entries()) {
          const [runId = 0] = await state.traces.runsOf(10_001, id);
          const group = await state.retention.groupOf(runId, []);
          expect(group && (await state.retention.removeRuns(group, [], 40_000))).toHaveLength(2);
          expect(await brief(state), `after ${index + 1}`).toEqual(before);
        }
        expect((await state.runTotals.read()).map(({ latestRunId }) => latestRunId)).toEqual([0, 0]);
      }));
  });
}
