import { describe, expect, it } from 'vitest';
import type { AddedJobRun, JobRunRequest, JobRunStore } from '../../../src/job/job-run-store.js';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import type { CatalogRun } from '../../../src/storage/run-catalog.js';
import { parseRunRows } from '../../../src/storage/run-rows.js';
import { RUN_STATUS } from '../../../src/storage/state-tables.js';
import type { FeatureState } from '../../fake/webhook-facts.js';
import { stepStart } from '../step-registry.contract.js';

const LIMITS = { perJob: 3, total: 4 };
let count = 0;
const request = (job: string, given: Partial<JobRunRequest> = {}): JobRunRequest => {
  count += 1;
  return {
    accountId: FIRST_ACCOUNT_ID,
    runKey: `key-${count}`,
    job,
    environment: null,
    project: null,
    reason: null,
    stepsOverride: null,
    firstCommand: 0,
    commandsDigest: 'digest',
    retriedRunId: null,
    requestedUnixMs: 1_000,
    ...given,
  };
};
const idOf = (added: AddedJobRun): number => {
  if (added.kind === 'full') throw new Error('the queue is full');
  return added.runId;
};
const add = async (store: JobRunStore, job: string, given: Partial<JobRunRequest> = {}) =>
  idOf(await store.add(request(job, given), LIMITS));
const find = async (state: FeatureState, runId: number): Promise<CatalogRun | undefined> =>
  state.catalog.findRun(FIRST_ACCOUNT_ID, runId);
const OVER = { stoppedAt: null, failure: null, nowUnixMs: 9_000 };
const ENDED = { kind: 'exited', exitCode: 0 } as const;

/** What every JobRunStore does. `withState` gives the body an empty state and clears it away afterwards. */
export function jobRunStoreContract(withState: (body: (state: FeatureState) => Promise<void>) => Promise<void>): void {
  describe('runs that are asked for', () => {
    it('are queued runs of their job, with what was said of them', () =>
      withState(async (state) => {
        const place = { environment: 'production', project: 'shop', reason: 'by hand' };
        const runId = await add(state.jobRuns, 'nightly', { ...place, firstCommand: 2, runKey: 'x' });
        expect(await find(state, runId)).toMatchObject({
          status: RUN_STATUS.queued,
          job: { name: 'nightly' },
          environment: { name: 'production' },
          project: { name: 'shop' },
          reason: 'by hand',
          createdUnixMs: 1_000,
          dequeuedUnixMs: null,
          finishedUnixMs: null,
          stepCount: 0,
        });
        expect(await state.jobRuns.find(runId)).toEqual({
          ...{ ...place, runId, job: 'nightly', runKey: 'x', accountId: FIRST_ACCOUNT_ID },
          ...{ state: 'queued', stepsOverride: null, firstCommand: 2, commandsDigest: 'digest' },
          ...{ stoppedAt: null, isCancelled: false, pid: null },
        });
        expect(await state.jobRuns.find(runId + 1)).toBeUndefined();
      }));

    it('keep the steps that they run in place of their job, for themselves and for lists', () =>
      withState(async (state) => {
        const stepsOverride = ['dbt deps', `dbt build --select 'a "b"'`];
        const runId = await add(state.jobRuns, 'a', { stepsOverride });
        expect(await find(state, runId)).toMatchObject({ stepsOverride });
        expect(await state.jobRuns.claim()).toMatchObject({ runId, stepsOverride });
        expect(await find(state, await add(state.jobRuns, 'a'))).toMatchObject({ stepsOverride: null });
        await state.jobRuns.end(runId, { ...OVER, failure: 'The machine went down' });
        const [kept] = await state.rows.listWithoutBackup(1);
        expect(parseRunRows(JSON.stringify(kept?.rows))).toEqual(kept?.rows);
        expect(kept?.rows.job_runs).toMatchObject([{ steps_override: JSON.stringify(stepsOverride) }]);
        // Rows that were kept before there were such steps.
        const text = JSON.stringify(kept?.rows, (key, value: unknown) =>
          key === 'steps_override' ? undefined : value,
        );
        expect(parseRunRows(text)?.job_runs).toMatchObject([{ run_id: runId, steps_override: null }]);
      }));

    it('say which run they start anew', () =>
      withState(async (state) => {
        const failed = await add(state.jobRuns, 'a');
        const retry = await add(state.jobRuns, 'a', { retriedRunId: failed });
        expect(await find(state, failed)).toMatchObject({ isAskedFor: true, retriedRunId: null });
        expect(await find(state, retry)).toMatchObject({ isAskedFor: true, retriedRunId: failed });
      }));

    it('are begun in their order, those of one job one after the other', () =>
      withState(async ({ jobRuns }) => {
        expect(await jobRuns.hasWork()).toBe(false);
        const first = await add(jobRuns, 'a');
        expect(await jobRuns.hasWork()).toBe(true);
        const second = await add(jobRuns, 'a');
        const other = await add(jobRuns, 'b');
        expect(await jobRuns.claim()).toMatchObject({ runId: first, state: 'running' });
        expect(await jobRuns.claim()).toMatchObject({ runId: other });
        expect(await jobRuns.claim()).toBeUndefined();
        expect((await jobRuns.listRunning(1_000)).map(({ runId }) => runId)).toEqual([first, other]);
        await jobRuns.end(first, OVER);
        expect(await jobRuns.claim()).toMatchObject({ runId: second });
        await jobRuns.end(second, OVER);
        expect(await jobRuns.claim()).toBeUndefined();
      }));

    it('are refused when too many of a job, or of all, wait', () =>
      withState(async ({ jobRuns, executions }) => {
        const [first = 0] = [await add(jobRuns, 'a'), await add(jobRuns, 'a'), await add(jobRuns, 'a')];
        expect(await jobRuns.add(request('a'), LIMITS)).toEqual({ kind: 'full', limit: 'perJob', waitingCount: 3 });
        await add(jobRuns, 'b');
        expect(await jobRuns.add(request('c'), LIMITS)).toEqual({ kind: 'full', limit: 'total', waitingCount: 4 });
        await executions.cancel(FIRST_ACCOUNT_ID, first, 2_000);
        await add(jobRuns, 'a');
        expect(await jobRuns.claim()).toBeDefined();
        await add(jobRuns, 'c');
      }));

    it('are over and never begun when they are cancelled while they wait', () =>
      withState(async (state) => {
        const runId = await add(state.jobRuns, 'a');
        expect(await state.executions.cancel(FIRST_ACCOUNT_ID, runId, 2_000)).toEqual({ runningCount: 0 });
        expect(await find(state, runId)).toMatchObject({
          ...{ status: RUN_STATUS.cancelled, statusMessage: 'The run was canceled', finishedUnixMs: 2_000 },
        });
        expect(await state.jobRuns.claim()).toBeUndefined();
        expect(await state.jobRuns.find(runId)).toMatchObject({ isCancelled: true });
        expect(await state.executions.registerIn(runId, stepStart('s', {}), 'local')).toBeUndefined();
      }));

    it('take steps until they are over, and keep where they stopped', () =>
      withState(async (state) => {
        const runId = await add(state.jobRuns, 'a');
        const start = stepStart('s', { startedUnixMs: 3_000 });
        const run = await find(state, runId);
        expect(await state.executions.registerIn(runId, start, 'local')).toEqual({
          ...{ runId, stepIndex: 1, job: 'a', reason: null, accountId: FIRST_ACCOUNT_ID },
          ...{ jobId: run?.job.id, projectId: run?.project.id, environmentId: run?.environment.id },
        });
        expect(await state.executions.isCancelled('s')).toBe(false);
        await state.executions.end('s', { kind: 'exited', exitCode: 1 }, 4_000);
        await state.jobRuns.end(runId, { ...OVER, stoppedAt: 1 });
        expect(await find(state, runId)).toMatchObject({ status: RUN_STATUS.error, finishedUnixMs: 4_000 });
        expect(await state.jobRuns.find(runId)).toMatchObject({ state: 'ended', stoppedAt: 1 });
        expect(await state.executions.registerIn(runId, stepStart('t', {}), 'local')).toBeUndefined();
      }));

    it('fail with words where their steps do not say why', () =>
      withState(async (state) => {
        const runId = await add(state.jobRuns, 'a');
        await state.jobRuns.end(runId, { ...OVER, failure: 'The machine went down' });
        expect(await find(state, runId)).toMatchObject({
          ...{ status: RUN_STATUS.error, statusMessage: 'The machine went down', finishedUnixMs: 9_000 },
        });
        const begun = await add(state.jobRuns, 'a');
        await state.executions.registerIn(begun, stepStart('s', {}), 'local');
        await state.executions.end('s', ENDED, 4_000);
        await state.jobRuns.end(begun, { ...OVER, failure: 'The machine went down' });
        expect(await find(state, begun)).toMatchObject({ status: RUN_STATUS.error });
      }));

    it('are not taken for idle ones, however long they wait', () =>
      withState(async ({ jobRuns, executions }) => {
        const runId = await add(jobRuns, 'a');
        expect(await executions.listIdle(Number.MAX_SAFE_INTEGER)).toEqual([]);
        await jobRuns.claim();
        expect(await executions.listIdle(Number.MAX_SAFE_INTEGER)).toEqual([]);
        await jobRuns.notePid(runId, 4_711);
        expect(await jobRuns.find(runId)).toMatchObject({ pid: 4_711 });
      }));

    it("have their job's last run, however it was started", () =>
      withState(async ({ jobRuns, executions, catalog }) => {
        expect(await catalog.latestRunOf(FIRST_ACCOUNT_ID, 'a')).toBeUndefined();
        const runId = await add(jobRuns, 'a');
        expect(await catalog.latestRunOf(FIRST_ACCOUNT_ID, 'a')).toEqual({ runId, status: RUN_STATUS.queued });
        const place = await executions.register(stepStart('s', { job: 'a' }), 'remote');
        expect(await catalog.latestRunOf(FIRST_ACCOUNT_ID, 'a')).toMatchObject({ runId: place.runId });
        expect(await catalog.latestRunOf(7, 'a')).toBeUndefined();
      }));
  });

  describe('a step under way', () => {
    it('learns that its run was cancelled', () =>
      withState(async ({ executions }) => {
        const { runId } = await executions.register(stepStart('s', { runKey: 'night' }), 'remote');
        expect(await executions.isCancelled('s')).toBe(false);
        await executions.cancel(FIRST_ACCOUNT_ID, runId, 2_000);
        expect(await executions.isCancelled('s')).toBe(true);
        expect(await executions.isCancelled('unknown')).toBe(false);
      }));
  });

  it('keeps what steps wrote', () =>
    withState(async ({ jobRuns }) => {
      await jobRuns.saveOutput('s', { text: 'one\0', droppedBytes: 0 });
      await jobRuns.saveOutput('s', { text: 'two\n', droppedBytes: 3 });
      expect(await jobRuns.outputsOf(['s', 't'])).toEqual(new Map([['s', { text: 'two\n', droppedBytes: 3 }]]));
      expect(await jobRuns.outputsOf([])).toEqual(new Map());
    }));
}
