import { describe, expect, it } from 'vitest';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import type { InvocationNote } from '../../../src/storage/invocation-store.js';
import { NO_FILTER, type WebhookFilter } from '../../../src/webhook/subscription.js';
import { commandNote, eventsOf, type FeatureState, subscription } from '../../fake/webhook-facts.js';
import { stepStart } from '../step-registry.contract.js';

const ACCOUNT = FIRST_ACCOUNT_ID;
const RUNNING = { verdict: null, isSaved: false } as const;
const EXITED = { kind: 'exited', exitCode: 0 } as const;

/** Type and status of each event of the subscription `a`: `started 3`. */
async function notified(state: FeatureState, id = 'wsu_a'): Promise<string[]> {
  return (await eventsOf(state, id)).map(({ eventType, facts }) => `${eventType.slice(8)} ${facts.status}`);
}

/** The events of runs, whatever changes them: written with the change, and once. `withState` gives an empty state. */
export function webhookNewsContract(withState: (body: (state: FeatureState) => Promise<void>) => Promise<void>): void {
  const withA = (body: (state: FeatureState) => Promise<void>) =>
    withState(async (state) => {
      await state.subscriptions.add(subscription('a'));
      await body(state);
    });

  describe('events of runs', () => {
    it.each([
      ['success', ['started 3', 'completed 10']],
      ['error', ['started 3', 'errored 20', 'completed 20']],
      ['lost', ['started 3', 'errored 20', 'completed 20']],
      ['canceled', ['started 3', 'completed 30']],
    ] as const)('is, of a command of nobody that ends in %s: %s', (verdict, expected) =>
      withA(async (state) => {
        await state.invocations.note([commandNote(1, RUNNING)], 3_000);
        expect(await notified(state)).toEqual(['started 3']);
        for (let times = 0; times < 2; times += 1) await state.invocations.note([commandNote(1, { verdict })], 4_000);
        expect(await notified(state)).toEqual(expected);
      }),
    );

    it('is the whole story of a run that was over before it was noted, in order', () =>
      withA(async (state) => {
        await state.invocations.note([commandNote(1, { verdict: 'error' }), commandNote(2)], 4_000);
        expect(await notified(state)).toEqual(['started 3', 'errored 20', 'completed 20', 'started 3', 'completed 10']);
      }));

    it("is of the subscription's account alone, also where runs of several are noted together", () =>
      withA(async (state) => {
        await state.subscriptions.add(subscription('b', { accountId: 20_002 }));
        const theirs = commandNote(2, { accountId: 20_002, verdict: 'error' });
        await state.invocations.note([commandNote(1), theirs], 4_000);
        expect(await notified(state)).toEqual(['started 3', 'completed 10']);
        const events = await eventsOf(state, 'wsu_b', 20_002);
        expect(events.map(({ facts }) => facts.status)).toEqual([3, 20, 20]);
      }));

    it('is that a run errored before its files can be read, and that it is over only afterwards', () =>
      withA(async (state) => {
        await state.invocations.note([commandNote(1, RUNNING)], 3_000);
        const error = { verdict: 'error', statusMessage: 'Boom' } as const;
        await state.invocations.note([commandNote(1, { ...error, isSaved: false })], 3_500);
        expect(await notified(state)).toEqual(['started 3', 'errored 20']);
        const [, errored] = await eventsOf(state, 'wsu_a');
        expect(errored?.facts).toMatchObject({ statusMessage: 'Boom', finishedUnixMs: null });
        await state.invocations.note([commandNote(1, error)], 4_000);
        expect(await notified(state)).toEqual(['started 3', 'errored 20', 'completed 20']);
      }));

    it('is that a run is over only when its artifacts can be downloaded, however long that takes', () =>
      withA(async (state) => {
        const { executions } = state;
        await executions.register(stepStart('a', {}), 'remote');
        await executions.expectArtifacts('a', ['manifest.json', 'run_results.json']);
        await executions.end('a', EXITED, 5_000);
        await executions.settle(500_000);
        expect(await notified(state)).toEqual(['started 3']);
        await executions.endArtifacts('a', null, 600_000);
        expect(await notified(state)).toEqual(['started 3', 'completed 10']);
        expect((await eventsOf(state, 'wsu_a')).at(-1)?.facts).not.toHaveProperty('missingArtifacts');
      }));

    it('is that a run is over only when the artifacts of all its steps can be downloaded, also of one that had ended before', () =>
      withA(async (state) => {
        const { executions } = state;
        await executions.register(stepStart('a', {}), 'remote');
        await executions.register({ ...stepStart('a.b', {}), runOf: 'a' }, 'remote');
        await executions.end('a', EXITED, 4_000);
        await executions.settle(400_000);
        await executions.expectArtifacts('a', ['manifest.json']);
        await executions.end('a.b', EXITED, 500_000);
        await executions.settle(550_000);
        expect(await notified(state)).toEqual(['started 3']);
        await executions.endArtifacts('a', null, 600_000);
        expect(await notified(state)).toEqual(['started 3', 'completed 10']);
      }));

    it('says which artifacts of a run never came, and why', () =>
      withA(async (state) => {
        const { executions, catalog } = state;
        const { runId } = await executions.register(stepStart('a', {}), 'remote');
        const paths = Array.from({ length: 30 }, (_, index) => `run/${index}.sql`);
        await executions.expectArtifacts('a', [...paths, 'manifest.json']);
        await executions.end('a', EXITED, 5_000);
        await executions.endArtifacts('a', { paths, reason: 'the bucket is gone' }, 600_000);
        const missingArtifacts = { count: 30, paths: paths.slice(0, 20), reason: 'the bucket is gone' };
        expect((await eventsOf(state, 'wsu_a')).map(({ facts }) => facts.missingArtifacts)).toEqual([
          undefined,
          missingArtifacts,
        ]);
        expect((await catalog.findRun(ACCOUNT, runId))?.missingArtifactCount).toBe(30);
        const [step] = await catalog.stepsOf(ACCOUNT, [runId]);
        const incomplete = { state: 'incomplete', expectedCount: 31, missing: paths, reason: 'the bucket is gone' };
        expect(step?.artifacts).toEqual(incomplete);
        // They come after all: the run has them, and there is no further event.
        await executions.expectArtifacts('a', paths);
        await executions.endArtifacts('a', null, 700_000);
        expect((await catalog.stepsOf(ACCOUNT, [runId]))[0]?.artifacts).toBeNull();
        expect(await notified(state)).toEqual(['started 3', 'completed 10']);
      }));

    it('is nothing of a run that an import brings and that had ended before it, and all of one that ended later', () =>
      withA(async (state) => {
        const past = { importBeganUnixMs: 2_001, endedUnixMs: 2_000 };
        await state.invocations.note([commandNote(1, { ...RUNNING, ...past, endedUnixMs: 1_500 })], 3_000);
        await state.invocations.note([commandNote(1, { verdict: 'error', ...past })], 3_500);
        await state.invocations.note([commandNote(2, { ...RUNNING, ...past })], 4_000);
        expect(await notified(state)).toEqual([]);
        const later = { importBeganUnixMs: 2_001, endedUnixMs: 5_000 };
        await state.invocations.note([commandNote(2, { verdict: 'success', ...later })], 6_000);
        expect(await notified(state)).toEqual(['started 3', 'completed 10']);
        await state.invocations.note([commandNote(1, { verdict: 'error', ...past })], 7_000);
        expect(await notified(state)).toEqual(['started 3', 'completed 10']);
      }));

    it('have the times of the run, whenever they are written: live, late, and of a run that was over before it was noted', () =>
      withA(async (state) => {
        const ended = { verdict: 'error', endedUnixMs: 2_500 } as const;
        await state.invocations.note([commandNote(1, RUNNING)], 3_000);
        await state.invocations.note([commandNote(1, { ...ended, isSaved: false })], 60_000);
        await state.invocations.note([commandNote(1, ended)], 90_000);
        await state.invocations.note([commandNote(2, ended)], 120_000_000);
        const times = (await eventsOf(state, 'wsu_a')).map(({ facts }) => [
          ...[facts.startedUnixMs, facts.erroredUnixMs, facts.finishedUnixMs],
        ]);
        const ofEach = [
          [1_000, null, null],
          [1_000, 2_500, null],
          [1_000, null, 2_500],
        ];
        expect(times).toEqual([...ofEach, ...ofEach]);
      }));

    it('has one start of a run with steps, and the time at which the first of them errored, before the run was over', () =>
      withA(async (state) => {
        const { executions, invocations } = state;
        await executions.register(stepStart('s1', { runKey: 'k', startedUnixMs: 900 }), 'local');
        const error = { stepId: 's1', verdict: 'error', startedUnixMs: 1_400, endedUnixMs: 3_000 } as const;
        await invocations.note([commandNote(1, error)], 3_100);
        await executions.attach('s1', commandNote(1).traceId);
        await executions.end('s1', { kind: 'exited', exitCode: 1 }, 3_500);
        await executions.register(stepStart('s2', { runKey: 'k', isLast: true, startedUnixMs: 4_000 }), 'local');
        await executions.end('s2', { kind: 'exited', exitCode: 2 }, 7_000);
        const events = await eventsOf(state, 'wsu_a');
        expect(events.map(({ facts }) => [facts.startedUnixMs, facts.erroredUnixMs, facts.finishedUnixMs])).toEqual([
          [900, null, null],
          [900, 3_000, null],
          [900, null, 7_000],
        ]);
      }));

    it('is never more, when records come late and change how it ended', () =>
      withA(async (state) => {
        await state.invocations.note([commandNote(1, { verdict: 'lost' })], 4_000);
        const before = await notified(state);
        await state.invocations.note([commandNote(1, RUNNING)], 5_000);
        await state.invocations.note([commandNote(1, { verdict: 'success' })], 6_000);
        expect(await notified(state)).toEqual(before);
      }));

    it('is, of a run with several steps, one start, its first error at once, and its end', () =>
      withA(async (state) => {
        const { executions, invocations } = state;
        await executions.register(stepStart('s1', { runKey: 'k' }), 'local');
        expect(await notified(state)).toEqual(['started 3']);
        await invocations.note([commandNote(1, { stepId: 's1', verdict: 'error' })], 3_000);
        expect(await notified(state)).toEqual(['started 3', 'errored 20']);
        await executions.attach('s1', commandNote(1).traceId);
        await executions.end('s1', { kind: 'exited', exitCode: 1 }, 3_500);
        await executions.register(stepStart('s2', { runKey: 'k', isLast: true }), 'local');
        await executions.end('s2', EXITED, 4_000);
        expect(await notified(state)).toEqual(['started 3', 'errored 20', 'completed 20']);
      }));

    it('is that a run errored when a process of it died without telemetry', () =>
      withA(async (state) => {
        await state.executions.register(stepStart('s1', { runKey: 'k' }), 'local');
        await state.executions.end('s1', { kind: 'killed', signal: 'SIGKILL' }, 3_000);
        expect(await notified(state)).toEqual(['started 3', 'errored 20']);
        await state.executions.finish('k');
        expect(await notified(state)).toEqual(['started 3', 'errored 20', 'completed 20']);
      }));

    it('is that a run is over alone, when it is cancelled before it begins', () =>
      withA(async (state) => {
        const request = { accountId: ACCOUNT, runKey: 'k', job: 'nightly', environment: null, project: null };
        const queued = {
          stepsOverride: null,
          firstCommand: 0,
          commandsDigest: '',
          retriedRunId: null,
          requestedUnixMs: 1_000,
        };
        const asked = { ...request, reason: null, ...queued };
        const added = await state.jobRuns.add(asked, { perJob: 9, total: 9 });
        if (added.kind === 'full') throw new Error('the queue is full');
        expect(await notified(state)).toEqual([]);
        await state.executions.cancel(ACCOUNT, added.runId, 2_000);
        expect(await notified(state)).toEqual(['completed 30']);
        const failed = await state.jobRuns.add({ ...asked, runKey: 'l' }, { perJob: 9, total: 9 });
        if (failed.kind === 'full') throw new Error('the queue is full');
        await state.jobRuns.end(failed.runId, { stoppedAt: null, failure: 'no such folder', nowUnixMs: 5_000 });
        expect(await notified(state)).toEqual(['completed 30', 'errored 20', 'completed 20']);
      }));

    it('is no error of a run that was cancelled, whatever its commands say', () =>
      withA(async (state) => {
        const { runId } = await state.executions.register(stepStart('s1', { runKey: 'k' }), 'local');
        await state.executions.cancel(ACCOUNT, runId, 2_000);
        await state.executions.end('s1', { kind: 'exited', exitCode: 2 }, 3_000);
        expect(await notified(state)).toEqual(['started 3', 'completed 30']);
      }));

    it('has the facts of the run as they were then', () =>
      withA(async (state) => {
        await state.invocations.note([commandNote(1, { verdict: 'error', statusMessage: 'Boom' })], 4_000);
        const [started, errored, completed] = await eventsOf(state, 'wsu_a');
        const run = (await state.catalog.listRuns(ACCOUNT, QUERY)).items[0];
        const facts = {
          ...{ jobId: run?.job.id, jobName: 'nightly', runId: run?.id, environmentId: run?.environment.id },
          ...{ environmentName: 'production', projectId: run?.project.id, projectName: 'shop' },
          ...{ engineVersion: '2.0.0', reason: null, startedUnixMs: 1_000, finishedUnixMs: null, erroredUnixMs: null },
        };
        expect(started?.facts).toEqual({ ...facts, status: 3, statusMessage: null });
        const failed = { ...facts, status: 20, statusMessage: 'Boom', transition: 'first_failure' };
        expect(errored?.facts).toEqual({ ...failed, erroredUnixMs: 2_000 });
        expect(completed?.facts).toEqual({ ...failed, finishedUnixMs: 2_000 });
        expect(new Set([started?.id, errored?.id, completed?.id]).size).toBe(3);
        expect(started?.id).toMatch(/^wev_[0-9A-Za-z]{27}$/);
      }));

    it('goes to each subscription that is for it, and is kept for those that are not active', () =>
      withState(async (state) => {
        const job = await jobId(state);
        const given = {
          all: {},
          off: { state: 'inactive' },
          gone: { state: 'archived' },
          job: { jobIds: [job] },
          other: { jobIds: [job + 1] },
          ends: { eventTypes: ['job.run.completed'] },
          passthrough: { accountId: 7 },
        } as const;
        for (const [name, one] of Object.entries(given)) await state.subscriptions.add(subscription(name, one));
        await state.invocations.note([commandNote(1)], 4_000);
        const found = await Promise.all(
          Object.keys(given).map(async (name) =>
            (await eventsOf(state, `wsu_${name}`, name === 'foreign' ? 7 : ACCOUNT)).map((one) => one.state),
          ),
        );
        const [two, skipped] = [
          ['pending', 'pending'],
          ['skipped', 'skipped'],
        ];
        expect(found).toEqual([two, skipped, skipped, two, [], ['pending'], []]);
      }));

    it.each<readonly [string, Partial<WebhookFilter>, readonly string[]]>([
      ['environments', { environments: ['production'] }, ['started 3', 'completed 10']],
      ['other environments', { environments: ['ci'] }, []],
      ['projects', { projects: ['shop', 'x'] }, ['started 3', 'completed 10']],
      ['other projects', { projects: ['x'] }, []],
      ['statuses', { statuses: [20, 30] }, ['started 3']],
    ])('is filtered by %s', (_name, filter, expected) =>
      withState(async (state) => {
        await state.subscriptions.add(subscription('a', { filter: { ...NO_FILTER, ...filter } }));
        await state.invocations.note([commandNote(1)], 4_000);
        expect(await notified(state)).toEqual(expected);
      }),
    );

    it.each(['slack', 'teams', 'email'] as const)(
      'is, for people by %s, one message of a run that failed, when it errors',
      (kind) =>
        withState(async (state) => {
          await state.subscriptions.add(subscription('a', { kind }));
          await state.subscriptions.add(subscription('b', { kind, eventTypes: ['job.run.completed'] }));
          for (const [at, verdict] of (['success', 'error', 'canceled'] as const).entries())
            await state.invocations.note([commandNote(at + 1, { verdict })], 4_000);
          const ofOthers = ['completed 10', 'started 3', 'errored 20', 'started 3', 'completed 30'];
          expect(await notified(state)).toEqual(['started 3', ...ofOthers]);
          expect(await notified(state, 'wsu_b')).toEqual(['completed 10', 'completed 20', 'completed 30']);
        }),
    );

    it('says how a run differs from the one before it', () =>
      withA(async (state) => {
        for (const [at, verdict] of (['success', 'error', 'error', 'success'] as const).entries())
          await state.invocations.note([commandNote(at + 1, { verdict })], 4_000);
        const all = (await eventsOf(state, 'wsu_a')).filter(({ eventType }) => eventType === 'job.run.completed');
        expect(all.map(({ facts }) => facts.transition)).toEqual([undefined, 'first_failure', undefined, 'recovery']);
      }));

    it('is, of each success behind a failure, that it may be a recovery, over what executed nothing', () =>
      withA(async (state) => {
        const runs = [
          ['dbt build', 'error'],
          ['dbt compile', 'success'],
          ['dbt build', 'error'],
          ['dbt compile', 'success'],
          ['dbt build', 'success'],
          ['dbt build', 'error'],
        ] as const;
        for (const [at, [command, verdict]] of runs.entries())
          await state.invocations.note([commandNote(at + 1, { command, verdict })], 4_000);
        const all = (await eventsOf(state, 'wsu_a')).filter(({ eventType }) => eventType === 'job.run.completed');
        expect(all.map(({ facts }) => facts.transition)).toEqual([
          ...['first_failure', 'recovery', undefined],
          ...['recovery', 'recovery', 'first_failure'],
        ]);
      }));

    it('goes by when runs began: a failure of last week that is imported later hides no first one', () =>
      withA(async (state) => {
        const times = (startedUnixMs: number) => ({ startedUnixMs, endedUnixMs: startedUnixMs + 1_000 });
        await state.invocations.note([commandNote(1, times(700_000))], 800_000);
        const imported = { ...times(100_000), importBeganUnixMs: 800_000, verdict: 'error' } as const;
        await state.invocations.note([commandNote(2, imported)], 800_000);
        await state.invocations.note([commandNote(3, { ...times(900_000), verdict: 'error' })], 1_000_000);
        const { facts } = (await eventsOf(state, 'wsu_a')).at(-1) ?? {};
        expect(facts).toMatchObject({ status: 20, transition: 'first_failure' });
      }));

    it('is, where only changes are asked for, the first failure and the recovery', () =>
      withState(async (state) => {
        const transitions = ['first_failure', 'recovery'] as const;
        await state.subscriptions.add(subscription('a', { filter: { ...NO_FILTER, transitions } }));
        const endings: InvocationNote['verdict'][] = [
          'success',
          'error',
          'canceled',
          'error',
          'success',
          'success',
          'lost',
        ];
        for (const [at, verdict] of endings.entries())
          await state.invocations.note([commandNote(at + 1, { verdict })], 4_000);
        const elsewhere = { job: 'nightly', environment: 'ci', project: 'shop' };
        await state.invocations.note([commandNote(50, { verdict: 'success', scope: elsewhere })], 4_000);
        expect(await notified(state)).toEqual([
          ...['errored 20', 'completed 20', 'completed 10'],
          // Whether it is one is decided by what the runs executed, when it is due.
          ...['completed 10', 'errored 20', 'completed 20'],
        ]);
      }));

    it('are none of a run that turns out to be a step of another one before its first event', () =>
      withA(async (state) => {
        await state.executions.register(stepStart('s1', { runKey: 'k' }), 'local');
        await state.invocations.note([commandNote(1, RUNNING)], 3_000);
        expect(await notified(state)).toEqual(['started 3', 'started 3']);
        const [sure, doubtful] = await eventsOf(state, 'wsu_a');
        expect(sure?.dueUnixMs).toBe(sure?.createdUnixMs);
        expect(doubtful?.dueUnixMs).toBe((doubtful?.createdUnixMs ?? 0) + 3_000);
        await state.invocations.note([commandNote(1, { ...RUNNING, stepId: 's1' })], 3_100);
        expect((await eventsOf(state, 'wsu_a')).map(({ id }) => id)).toEqual([sure?.id]);
      }));

    it('is kept back as a whole, of a run that is over before it turns out to be a step of another one', () =>
      withA(async (state) => {
        await state.executions.register(stepStart('s1', { runKey: 'k' }), 'local');
        await state.invocations.note([commandNote(1, { verdict: 'error' })], 3_000);
        const [sure, ...doubtful] = await eventsOf(state, 'wsu_a');
        expect(doubtful.map(({ dueUnixMs, createdUnixMs }) => dueUnixMs - createdUnixMs)).toEqual([
          3_000, 3_000, 3_000,
        ]);
        await state.invocations.note([commandNote(1, { verdict: 'error', stepId: 's1' })], 3_100);
        const left = await eventsOf(state, 'wsu_a');
        expect(left.map(({ eventType, facts }) => [eventType, facts.runId])).toEqual([
          ['job.run.started', sure?.facts.runId],
          ['job.run.errored', sure?.facts.runId],
        ]);
      }));

    it('are held back of a run whose telemetry names a step that is not registered yet, until it is', () =>
      withA(async (state) => {
        await state.invocations.note([commandNote(1, { ...RUNNING, namedStepId: 's1' })], 3_000);
        const [early] = await eventsOf(state, 'wsu_a');
        expect((early?.dueUnixMs ?? 0) - (early?.createdUnixMs ?? 0)).toBe(10_000);
        const { runId } = await state.executions.register(stepStart('s1', {}), 'remote');
        expect(await state.executions.tracesOf('s1')).toEqual([commandNote(1).traceId]);
        await state.invocations.note([commandNote(1, { ...RUNNING, namedStepId: 's1', stepId: 's1' })], 3_100);
        const left = await eventsOf(state, 'wsu_a');
        expect(left.map(({ eventType, facts }) => [eventType, facts.runId])).toEqual([['job.run.started', runId]]);
      }));

    it('are no more of a run whose telemetry names a step that was registered in between', () =>
      withA(async (state) => {
        const { runId } = await state.executions.register(stepStart('s1', {}), 'remote');
        await state.invocations.note([commandNote(1, { ...RUNNING, namedStepId: 's1' })], 3_000);
        const notified = await eventsOf(state, 'wsu_a');
        expect(notified.map(({ eventType, facts }) => [eventType, facts.runId])).toEqual([['job.run.started', runId]]);
        expect(await state.executions.tracesOf('s1')).toEqual([commandNote(1).traceId]);
      }));

    it('are written at once of a run without a step, while no command runs', () =>
      withA(async (state) => {
        await state.executions.register(stepStart('s1', {}), 'local');
        await state.executions.end('s1', EXITED, 2_000);
        await state.invocations.note([commandNote(1, { verdict: 'error' })], 3_000);
        const waits = (await eventsOf(state, 'wsu_a')).map(({ dueUnixMs, createdUnixMs }) => dueUnixMs - createdUnixMs);
        expect(waits).toEqual([0, 0, 0, 0, 0]);
      }));

    it('is nothing when what changed the run is undone', () =>
      withA(async (state) => {
        const broken = commandNote(2, { command: '\ud800', startedUnixMs: Number.NaN });
        await expect(state.invocations.note([commandNote(1), broken], 4_000)).rejects.toThrow();
        expect([await notified(state), (await state.catalog.listRuns(ACCOUNT, QUERY)).totalCount]).toEqual([[], 0]);
      }));
  });
}

const QUERY = { orderBy: 'id', isDescending: true, limit: 1, offset: 0 } as const;

/** Makes the job `nightly` be there. */
async function jobId(state: FeatureState): Promise<number> {
  await state.invocations.note([commandNote(90)], 1_000);
  return (await state.catalog.listRuns(ACCOUNT, QUERY)).items[0]?.job.id ?? 0;
}
