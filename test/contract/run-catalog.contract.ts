import { describe, expect, it } from 'vitest';
import { parseTraceId, type TraceId } from '../../src/record/telemetry-record.js';
import { FIRST_ACCOUNT_ID } from '../../src/storage/account-store.js';
import type { InvocationNote, TraceNote } from '../../src/storage/invocation-store.js';
import type { CatalogRun, RunQuery } from '../../src/storage/run-catalog.js';
import type { State } from '../../src/storage/state.js';
import { RUN_STATUS } from '../../src/storage/state-tables.js';
import { stepStart } from './step-registry.contract.js';

const ALL: RunQuery = { orderBy: 'id', isDescending: false, limit: 100, offset: 0 };
const ENDED = { kind: 'exited', exitCode: 0 } as const;
const ACCOUNT = FIRST_ACCOUNT_ID;

/**
 * What every RunCatalog shows of what its InvocationStore and ExecutionStore were given. `withState` gives the body an
 * empty state and clears it away afterwards.
 */
export function runCatalogContract(withState: (body: (state: State) => Promise<void>) => Promise<void>): void {
  describe('invocations that nobody ran as a step', () => {
    it('are runs of the job adhoc, running from their first record on', () =>
      withState(async (state) => {
        await state.invocations.note([note(1, { verdict: null, isSaved: false })], 9_000);
        const [run] = await runs(state);
        expect(run).toMatchObject({
          job: { name: 'adhoc' },
          project: { name: 'default' },
          environment: { name: 'default' },
          status: RUN_STATUS.running,
          createdUnixMs: 1_000,
          startedUnixMs: 1_000,
          finishedUnixMs: null,
          stepCount: 1,
        });
        expect(run?.id).toBeGreaterThan(1_000);
      }));

    it.each([
      ['success', RUN_STATUS.success, null],
      ['error', RUN_STATUS.error, 'It failed'],
      ['lost', RUN_STATUS.error, 'no end seen'],
      ['canceled', RUN_STATUS.cancelled, 'It failed'],
    ] as const)('are over with the verdict %s once their Parquet can be read', (verdict, status, statusMessage) =>
      withState(async (state) => {
        const outcome = { verdict, statusMessage: verdict === 'success' ? null : 'It failed' };
        await state.invocations.note([note(1, { ...outcome, isSaved: false })], 8_000);
        expect(await runs(state)).toMatchObject([{ status: RUN_STATUS.running, finishedUnixMs: null }]);
        await state.invocations.note([note(1, { ...outcome, isSaved: true })], 9_000);
        expect(await runs(state)).toMatchObject([{ status, statusMessage, finishedUnixMs: 2_000 }]);
      }),
    );

    it("are their sender's account's, in jobs of its own, also when they are noted together", () =>
      withState(async (state) => {
        const place = { job: 'nightly', environment: 'production', project: 'shop' };
        await state.invocations.note([note(1, { scope: place }), note(2, { scope: place, accountId: 20_002 })], 8_000);
        const [own] = await runs(state);
        const { items } = await state.catalog.listRuns(20_002, ALL);
        expect(items).toMatchObject([{ accountId: 20_002, job: { name: 'nightly' }, project: { name: 'shop' } }]);
        expect(own).toMatchObject({ accountId: ACCOUNT, job: { name: 'nightly' } });
        expect(items[0]?.job.id).not.toBe(own?.job.id);
        expect(await state.traces.runsOf(ACCOUNT, traceId(2))).toEqual([]);
        expect(await state.traces.listTraces(20_002)).toEqual([traceId(2)]);
      }));

    it('stay over when records come late, and change their verdict', () =>
      withState(async (state) => {
        await state.invocations.note([note(1, { verdict: 'lost' })], 8_000);
        await state.invocations.note([note(1, { verdict: null, isSaved: false })], 9_000);
        expect(await runs(state)).toMatchObject([{ status: RUN_STATUS.error }]);
        await state.invocations.note([note(1, { verdict: 'success', endedUnixMs: 5_000 })], 9_500);
        expect(await runs(state)).toMatchObject([{ status: RUN_STATUS.success, finishedUnixMs: 5_000 }]);
      }));

    it('have a run each where several share a trace, and none is left of one that turned out to be another', () =>
      withState(async (state) => {
        const two = { traceId: traceId(1), invocations: [invocation({}), invocation({ index: 2 })] };
        await state.invocations.note([two], 9_000);
        const before = await runs(state);
        expect(before.map(({ status }) => status)).toEqual([RUN_STATUS.success, RUN_STATUS.success]);
        await state.invocations.note([note(1, {})], 9_000);
        expect((await runs(state)).map(({ id }) => id)).toEqual([before[0]?.id]);
        expect(await state.catalog.stepsOf(ACCOUNT, [before[1]?.id ?? 0])).toEqual([]);
      }));

    it('belong to what they are placed in', () =>
      withState(async (state) => {
        const place = { job: 'nightly', environment: 'production', project: 'shop' };
        await state.invocations.note(
          [note(1, { scope: place }), note(2, { scope: { ...place, environment: null } })],
          9_000,
        );
        await state.invocations.note([note(3, { scope: { ...place, project: 'other' } })], 9_000);
        const [first, second, third] = await runs(state);
        expect(first).toMatchObject({
          job: { name: 'nightly' },
          environment: { name: 'production' },
          project: { name: 'shop' },
        });
        expect(second).toMatchObject({ job: first?.job, environment: first?.environment, project: first?.project });
        expect(third).toMatchObject({ job: first?.job, project: { name: 'other' } });
      }));

    it('are found by a text in the names of what they belong to, in their own name, or by their number', () =>
      withState(async (state) => {
        const place = { job: 'Nightly 100%', environment: 'production', project: 'shop' };
        await state.invocations.note(
          [note(1, { scope: place }), note(2, {}), note(3, { scope: place, accountId: 20_002 })],
          9_000,
        );
        await state.executions.register(stepStart('a', { job: 'other', runKey: 'Night_4711' }), 'local');
        const [first, second, third] = await runs(state);
        const found = async (textContains: string) =>
          (await state.catalog.listRuns(ACCOUNT, { ...ALL, textContains })).items.map(({ id }) => id);
        for (const text of ['nightly', '100%', 'PRODUCT', 'shop', String(first?.id)]) {
          expect(await found(text), text).toEqual([first?.id]);
        }
        expect(await found('night')).toEqual([first?.id, third?.id]);
        expect(await found('night_')).toEqual([third?.id]);
        expect(await found('adhoc')).toEqual([second?.id]);
        for (const text of ['10_%', "'", '7777', '999999999999999']) expect(await found(text), text).toEqual([]);
      }));

    it('are found by their git branch, and by their errors as far as may be seen', () =>
      withState(async (state) => {
        await state.invocations.note([note(1, { gitBranch: 'feature/Orders' }), note(2, {}), note(3, {})], 9_000);
        await state.runs.save([row(1), row(2)]);
        const errors = [{ index: 1, text: "model a: no value 'Sesame'", redactedText: 'model a: no value ?' }];
        await state.measures.save(traceId(2), row(2).summary, Buffer.from('x'), errors);
        const [first, second] = await runs(state);
        const found = async (textContains: string, errorTexts?: 'whole' | 'redacted' | 'none') =>
          (
            await state.catalog.listRuns(ACCOUNT, { ...ALL, textContains, ...(errorTexts && { errorTexts }) })
          ).items.map(({ id }) => id);
        expect(await found('feature/orders')).toEqual([first?.id]);
        expect(await found('sesame', 'whole')).toEqual([second?.id]);
        expect(await found('NO VALUE', 'redacted')).toEqual([second?.id]);
        for (const texts of ['redacted', 'none', undefined] as const) expect(await found('sesame', texts)).toEqual([]);
        // It was measured again, and went well.
        await state.measures.save(traceId(2), row(2).summary, Buffer.from('x'), []);
        expect(await found('sesame', 'whole')).toEqual([]);
      }));

    it('have the runs of their job beside them, by their start', () =>
      withState(async (state) => {
        await fill(state);
        const same = { job: 'nightly', environment: 'production', project: 'shop' };
        await state.invocations.note([note(5, { scope: same, startedUnixMs: 4_000 })], 9_600);
        const all = new Map((await runs(state)).map((run) => [run.id, run]));
        const found = [...all.values()].map(async (run) => [run.id, await state.catalog.neighboursOf(run)] as const);
        // Nightly began as 4, 3, 1 and 5; hourly has one run.
        const [first, other, third, fourth, fifth] = [...all.keys()];
        expect(new Map(await Promise.all(found))).toEqual(
          new Map([
            [first, { before: third, after: fifth }],
            [other, { before: null, after: null }],
            [third, { before: fourth, after: first }],
            [fourth, { before: null, after: third }],
            [fifth, { before: first, after: null }],
          ]),
        );
      }));

    it('are noted many at a time', () =>
      withState(async (state) => {
        await state.invocations.note(
          Array.from({ length: 1_200 }, (_, index) => note(index + 1, {})),
          9_000,
        );
        expect((await state.catalog.listRuns(ACCOUNT, { ...ALL, limit: 1 })).totalCount).toBe(1_200);
      }));

    it('are listed as long as they were never noted', () =>
      withState(async (state) => {
        await state.runs.save([row(1), row(2)]);
        await state.invocations.note([note(1, {})], 9_000);
        expect((await state.invocations.listUnnoted(10)).map((one) => one.traceId)).toEqual([traceId(2)]);
        await state.runs.save([row(1)]);
        expect(await state.invocations.listUnnoted(10)).toHaveLength(1);
      }));
  });

  describe('runs whose commands somebody runs', () => {
    it('start, run with their first record, and are over when the command has ended and its records can be read', () =>
      withState(async (state) => {
        const { runId } = await state.executions.register(stepStart('a', { job: 'nightly' }), 'local');
        const status = async () => (await state.catalog.findRun(ACCOUNT, runId))?.status;
        expect(await status()).toBe(RUN_STATUS.starting);
        await state.executions.attach('a', traceId(1));
        await state.invocations.note([note(1, { stepId: 'a', verdict: null, isSaved: false })], 1_500);
        expect(await status()).toBe(RUN_STATUS.running);
        await state.executions.end('a', ENDED, 3_000);
        expect(await status()).toBe(RUN_STATUS.running);
        await state.invocations.note([note(1, { stepId: 'a', engineVersion: '2.0.0' })], 3_500);
        expect(await state.catalog.findRun(ACCOUNT, runId)).toMatchObject({
          status: RUN_STATUS.success,
          createdUnixMs: 1_000,
          dequeuedUnixMs: 1_000,
          startedUnixMs: 1_000,
          finishedUnixMs: 3_000,
          engineVersion: '2.0.0',
        });
        expect(await runs(state)).toHaveLength(1);
      }));

    it.each([
      [ENDED, RUN_STATUS.success, null],
      [{ kind: 'exited', exitCode: 2 }, RUN_STATUS.error, 'The command ended with exit code 2'],
      [{ kind: 'killed', signal: 'SIGTERM' }, RUN_STATUS.cancelled, 'The command was killed by SIGTERM'],
      [{ kind: 'killed', signal: 'SIGKILL' }, RUN_STATUS.error, 'The command was killed by SIGKILL'],
      [{ kind: 'notStarted', reason: 'not found' }, RUN_STATUS.error, 'The command could not be started (not found)'],
      [{ kind: 'unknown' }, RUN_STATUS.error, 'no end seen'],
    ] as const)('are over at once where there is no telemetry: %j', (ending, status, statusMessage) =>
      withState(async (state) => {
        const { runId } = await state.executions.register(stepStart('a', {}), 'local');
        await state.executions.end('a', ending, 3_000);
        expect(await state.catalog.findRun(ACCOUNT, runId)).toMatchObject({ status, statusMessage });
      }),
    );

    it('wait for a trace that was announced, and no longer than a while', () =>
      withState(async (state) => {
        const { runId } = await state.executions.register(stepStart('a', {}), 'remote');
        await state.executions.attach('a', traceId(1));
        await state.executions.end('a', ENDED, 3_000);
        await state.executions.settle(4_000);
        expect((await state.catalog.findRun(ACCOUNT, runId))?.status).toBe(RUN_STATUS.starting);
        await state.executions.settle(60_000);
        expect(await state.catalog.findRun(ACCOUNT, runId)).toMatchObject({
          status: RUN_STATUS.success,
          finishedUnixMs: 3_000,
        });
      }));

    it('have the worst of their steps, each of which has its own', () =>
      withState(async (state) => {
        const { runId } = await state.executions.register(stepStart('a', { runKey: 'night' }), 'local');
        await state.executions.end('a', ENDED, 2_000);
        expect((await state.catalog.findRun(ACCOUNT, runId))?.status).toBe(RUN_STATUS.running);
        await state.executions.register(stepStart('b', { runKey: 'night', isLast: true }), 'local');
        await state.executions.end('b', { kind: 'exited', exitCode: 1 }, 3_000);
        expect((await state.catalog.findRun(ACCOUNT, runId))?.status).toBe(RUN_STATUS.error);
        const steps = await state.catalog.stepsOf(ACCOUNT, [runId]);
        expect(steps.map(({ index, status, command }) => [index, status, command])).toEqual([
          [1, RUN_STATUS.success, ['dbt', 'build']],
          [2, RUN_STATUS.error, ['dbt', 'build']],
        ]);
        const [, second] = steps;
        expect(await state.catalog.findStep(ACCOUNT, second?.id ?? 0)).toEqual(second);
        expect(await state.catalog.findStep(ACCOUNT + 1, second?.id ?? 0)).toBeUndefined();
      }));

    it('are cancelled once their steps have ended', () =>
      withState(async (state) => {
        const { runId } = await state.executions.register(stepStart('a', { runKey: 'night' }), 'local');
        expect(await state.executions.cancel(ACCOUNT + 1, runId, 1_500)).toBeUndefined();
        expect(await state.executions.cancel(ACCOUNT, runId, 1_500)).toEqual({ runningCount: 1 });
        expect((await state.catalog.findRun(ACCOUNT, runId))?.status).toBe(RUN_STATUS.starting);
        await state.executions.end('a', { kind: 'killed', signal: 'SIGINT' }, 2_000);
        expect((await state.catalog.findRun(ACCOUNT, runId))?.status).toBe(RUN_STATUS.cancelled);
        expect(await state.executions.cancel(ACCOUNT, runId, 3_000)).toBeUndefined();
      }));

    it('take over what was taken for a run of its own before the step was known', () =>
      withState(async (state) => {
        await state.invocations.note([note(1, { verdict: null, isSaved: false })], 1_500);
        const { runId } = await state.executions.register(stepStart('a', {}), 'local');
        await state.invocations.note([note(1, { stepId: 'a' })], 1_600);
        expect((await runs(state)).map(({ id }) => id)).toEqual([runId]);
      }));

    it('have names of their own in each account', () =>
      withState(async (state) => {
        const mine = await state.executions.register(stepStart('a', { runKey: 'night' }), 'local');
        const other = await state.executions.register(
          stepStart('b', { runKey: 'night', accountId: ACCOUNT + 1 }),
          'local',
        );
        expect(other.runId).not.toBe(mine.runId);
        expect((await runs(state)).map(({ id }) => id)).toEqual([mine.runId]);
        expect(await state.catalog.findRun(ACCOUNT, other.runId)).toBeUndefined();
        expect(await state.catalog.findRun(ACCOUNT + 1, other.runId)).toMatchObject({ id: other.runId });
        const [job] = (await jobs(state, {}, ACCOUNT + 1)).items;
        expect(job?.id).not.toBe((await jobs(state, {})).items[0]?.id);
      }));
  });

  describe('a list of runs', () => {
    it('is sorted, in either direction, those that are not over after all others', () =>
      withState(async (state) => {
        await fill(state);
        const [a, b, c, d] = (await runs(state)).map(({ id }) => id);
        expect(await ids(state, { isDescending: true })).toEqual([d, c, b, a]);
        expect(await ids(state, { orderBy: 'created' })).toEqual([d, c, b, a]);
        expect(await ids(state, { orderBy: 'finished' })).toEqual([c, b, a, d]);
        expect(await ids(state, { orderBy: 'finished', isDescending: true })).toEqual([d, a, b, c]);
      }));

    it('is cut into pages, and says how much there is on all of them', () =>
      withState(async (state) => {
        await fill(state);
        const [, b, c] = (await runs(state)).map(({ id }) => id);
        expect(await ids(state, { limit: 2, offset: 1 })).toEqual([b, c]);
        for (const isDescending of [true, false]) {
          const whole = await ids(state, { isDescending });
          for (const [at, id] of whole.entries()) {
            expect(await ids(state, { isDescending, limit: 2, offset: at })).toEqual(whole.slice(at, at + 2));
            expect(await ids(state, { isDescending, limit: 1, offset: at })).toEqual([id]);
          }
        }
        const page = await state.catalog.listRuns(ACCOUNT, { ...ALL, limit: 2, offset: 9 });
        expect(page).toEqual({ items: [], totalCount: 4 });
      }));

    it('is filtered by whatever is asked, all of it together', () =>
      withState(async (state) => {
        await fill(state);
        const all = await runs(state);
        const [a, b, c, d] = all.map(({ id }) => id);
        const [first, second] = all;
        expect(await ids(state, { statuses: [RUN_STATUS.success] })).toEqual([a]);
        expect(await ids(state, { statuses: [RUN_STATUS.error, RUN_STATUS.running] })).toEqual([b, d]);
        expect(await ids(state, { statuses: [] })).toEqual([]);
        expect(await ids(state, { jobId: first?.job.id ?? 0 })).toEqual([a, c, d]);
        expect(await ids(state, { environmentId: second?.environment.id ?? 0 })).toEqual([b]);
        expect(await ids(state, { projectIds: [second?.project.id ?? 0, 1] })).toEqual([b]);
        expect(await ids(state, { projectIds: [] })).toEqual([]);
        expect(await ids(state, { idAbove: b ?? 0 })).toEqual([c, d]);
        expect(await ids(state, { createdRange: [2_000, 3_000] })).toEqual([b, c]);
        expect(await ids(state, { finishedRange: [0, 9e15] })).toEqual([a, b, c]);
        const both = { statuses: [RUN_STATUS.error, RUN_STATUS.success], jobId: first?.job.id ?? 0 };
        expect(await ids(state, both)).toEqual([a]);
        expect(await ids(state, { ids: [d ?? 0, b ?? 0, 9] })).toEqual([b, d]);
        expect(await ids(state, { ids: [] })).toEqual([]);
        expect(await ids(state, { engineVersions: ['2.0.0', '2.1.0'] })).toEqual([a, d]);
        expect(await ids(state, { engineVersions: ['2.1.0'], jobId: first?.job.id ?? 0 })).toEqual([d]);
        expect(await ids(state, { engineVersions: [] })).toEqual([]);
      }));
  });

  describe('what is declared', () => {
    it('has the numbers that it is given, and keeps them', () =>
      withState(async (state) => {
        expect(await state.scopes.declare(DECLARED, 1)).toEqual([]);
        expect(await state.scopes.declare({ ...DECLARED, projects: [{ name: 'shop', id: null }] }, 2)).toEqual([]);
        expect((await jobs(state, {})).items).toMatchObject([{ id: 77, name: 'nightly', projectId: 7_001 }]);
        await state.invocations.note([note(1, { scope: { job: 'nightly', environment: null, project: null } })], 9_000);
        expect(await runs(state)).toMatchObject([
          { job: { id: 77 }, environment: { name: 'production' }, project: { id: 7_001 } },
        ]);
        await state.invocations.note([note(2, { scope: { job: 'adhoc', environment: null, project: 'x' } })], 9_000);
        expect((await runs(state))[1]?.project.id).toBe(7_002);
      }));

    it('is refused whole where a number is another one already', () =>
      withState(async (state) => {
        await state.scopes.declare(DECLARED, 1);
        const others = [
          { name: 'nightly', id: 78, project: null, environment: null },
          { name: 'hourly', id: 77, project: null, environment: null },
        ];
        expect(await state.scopes.declare({ ...DECLARED, jobs: others }, 2)).toEqual([
          'jobs.nightly.id: 78: the job has had the number 77, which is kept; write 77, or leave id out',
          'jobs.hourly.id: 77 is the number of nightly; choose another, or leave id out',
        ]);
        expect((await jobs(state, {})).items.map(({ name }) => name)).toEqual(['nightly']);
      }));
  });

  describe('a list of jobs', () => {
    it('has those that were ever named, with where they belong', () =>
      withState(async (state) => {
        await fill(state);
        const { items, totalCount } = await jobs(state, {});
        expect(items.map(({ name }) => name)).toEqual(['nightly', 'Hourly_1']);
        expect(totalCount).toBe(2);
        const [nightly, hourly] = items;
        expect(await state.catalog.findJob(ACCOUNT, hourly?.id ?? 0)).toEqual(hourly);
        expect(await state.catalog.findJob(ACCOUNT + 1, hourly?.id ?? 0)).toBeUndefined();
        const named = async (query: object) => (await jobs(state, query)).items.map(({ name }) => name);
        expect(await named({ nameContains: 'URLY_' })).toEqual(['Hourly_1']);
        expect(await named({ nameContains: '%' })).toEqual([]);
        expect(await named({ projectIds: [nightly?.projectId ?? 0] })).toEqual(['nightly']);
        expect(await named({ environmentId: hourly?.environmentId ?? 0 })).toEqual(['Hourly_1']);
        expect(await named({ ids: [hourly?.id ?? 0, 9] })).toEqual(['Hourly_1']);
        expect(await named({ ids: [] })).toEqual([]);
        expect(await named({ orderBy: 'id', isDescending: true, limit: 1 })).toEqual(['Hourly_1']);
      }));

    it('says which runs are the latest of each', () =>
      withState(async (state) => {
        await fill(state);
        const found = (await jobs(state, {})).items;
        const ids = found.map(({ id }) => id);
        const latest = await state.catalog.latestRunsOf(ACCOUNT, [...ids, 9]);
        // The last run that was noted has just begun; its job's others are over.
        const [nightly, hourly] = ids.map((id) => latest.get(id));
        const all = (await runs(state)).filter(({ job }) => job.name === 'nightly').map(({ id }) => id);
        expect(nightly?.latest).toBe(Math.max(...all));
        expect(all.filter((id) => id < Math.max(...all))).toContain(nightly?.completed);
        expect(hourly?.latest).toBe(hourly?.completed);
        expect(latest.size).toBe(2);
        expect((await state.catalog.latestRunsOf(ACCOUNT + 1, ids)).size).toBe(0);
      }));

    it('says with which engine the last run of each ended, and finds them by it', () =>
      withState(async (state) => {
        await fill(state);
        const shown = async (query: object) =>
          (await jobs(state, query)).items.map(({ name, engineVersion }) => [name, engineVersion]);
        expect(await shown({})).toEqual([
          ['nightly', null],
          ['Hourly_1', null],
        ]);
        const place = { job: 'nightly', environment: null, project: null };
        await state.invocations.note([note(5, { scope: place, engineVersion: '2.2.0' })], 9_600);
        expect(await shown({ engineVersions: ['2.1.0', '2.2.0'] })).toEqual([['nightly', '2.2.0']]);
        expect(await shown({ engineVersions: ['2.1.0'] })).toEqual([]);
      }));
  });

  describe('lists of projects and environments', () => {
    const ALL = { orderBy: 'id', isDescending: false, limit: 100, offset: 0 } as const;

    it('have those that were ever named, and are filtered by whatever is asked', () =>
      withState(async (state) => {
        await fill(state);
        const projects = async (query: object) => {
          const { items } = await state.catalog.listProjects(ACCOUNT, { ...ALL, ...query });
          return items.map(({ name }) => name);
        };
        expect(await projects({})).toEqual(['shop', 'other']);
        expect(await projects({ orderBy: 'name', limit: 1 })).toEqual(['other']);
        expect(await projects({ nameContains: 'SH' })).toEqual(['shop']);
        expect(await projects({ name: 'SHOP' })).toEqual([]);
        const [shop] = (await state.catalog.listProjects(ACCOUNT, { ...ALL, name: 'shop' })).items;
        const environments = async (query: object) => {
          const { items, totalCount } = await state.catalog.listEnvironments(ACCOUNT, { ...ALL, ...query });
          expect(totalCount).toBe(items.length);
          return items.map(({ name }) => name);
        };
        expect(await environments({})).toEqual(['production', 'staging']);
        expect(await environments({ projectIds: [shop?.id] })).toEqual(['production']);
        expect(await environments({ ids: [] })).toEqual([]);
        const [first] = (await state.catalog.listEnvironments(ACCOUNT, { ...ALL, limit: 1 })).items;
        expect(await environments({ idAbove: first?.id })).toEqual(['staging']);
        const place = { job: 'nightly', environment: null, project: null };
        await state.invocations.note([note(5, { scope: place, engineVersion: '2.2.0' })], 9_600);
        // What was imported as JSONL does not say it.
        await state.invocations.note([note(6, { scope: place, engineVersion: null })], 9_700);
        expect(await environments({ engineVersions: ['2.2.0'] })).toEqual(['production']);
        expect((await state.catalog.listProjects(ACCOUNT + 1, ALL)).totalCount).toBe(0);
      }));
  });
}

/** What is declared in a test. */
const DECLARED = {
  projects: [{ name: 'shop', id: 7_001 }],
  environments: [{ name: 'production', id: null, project: 'shop' }],
  jobs: [{ name: 'nightly', id: 77, project: 'shop', environment: 'production' }],
};

/** Four runs: the first three are over, in the order 3, 2, 1, in which they also began; the last has just begun. */
async function fill(state: State): Promise<void> {
  const nightly = { job: 'nightly', environment: 'production', project: 'shop' };
  const hourly = { job: 'Hourly_1', environment: 'staging', project: 'other' };
  const notes = [
    note(1, { scope: nightly, startedUnixMs: 4_000, endedUnixMs: 9_000, engineVersion: '2.0.0' }),
    note(2, { scope: hourly, startedUnixMs: 3_000, endedUnixMs: 8_000, verdict: 'error' }),
    note(3, { scope: nightly, startedUnixMs: 2_000, endedUnixMs: 7_000, verdict: 'canceled' }),
    note(4, { scope: nightly, startedUnixMs: 1_000, verdict: null, isSaved: false, engineVersion: '2.1.0' }),
  ];
  await state.invocations.note(notes, 9_500);
}

async function runs(state: State): Promise<readonly CatalogRun[]> {
  return (await state.catalog.listRuns(ACCOUNT, ALL)).items;
}

async function ids(state: State, query: Partial<RunQuery>): Promise<number[]> {
  return (await state.catalog.listRuns(ACCOUNT, { ...ALL, ...query })).items.map(({ id }) => id);
}

function jobs(state: State, query: object, accountId = ACCOUNT) {
  return state.catalog.listJobs(accountId, { ...ALL, orderBy: 'id', ...query });
}

function note(trace: number, details: Partial<InvocationNote>): TraceNote {
  return { traceId: traceId(trace), invocations: [invocation(details)] };
}

function invocation(details: Partial<InvocationNote>): InvocationNote {
  return {
    index: 1,
    accountId: null,
    stepId: null,
    namedStepId: null,
    command: 'dbt build',
    verdict: 'success',
    statusMessage: null,
    startedUnixMs: 1_000,
    endedUnixMs: 2_000,
    isSaved: true,
    parquetFile: 'telemetry.parquet',
    engineVersion: null,
    gitBranch: null,
    gitSha: null,
    scope: { job: 'adhoc', environment: null, project: null },
    ...details,
  };
}

function row(trace: number) {
  return {
    ...{ traceId: traceId(trace), firstSeenUnixMs: trace, lastSeenUnixMs: trace, state: 'finished' as const },
    ...{ logBytes: 1, summary: '{}', parquetBytes: 1 },
  };
}

function traceId(number: number): TraceId {
  const id = parseTraceId(number.toString(16).padStart(32, '0'));
  if (id === undefined) throw new Error('not a trace id');
  return id;
}
