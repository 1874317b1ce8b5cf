import { describe, expect, it } from 'vitest';
import { parseTraceId, type TraceId } from '../../src/record/telemetry-record.js';
import type { StepRegistry } from '../../src/run/step-registry.js';
import { FIRST_ACCOUNT_ID } from '../../src/storage/account-store.js';
import type { ExecutionStore } from '../../src/storage/execution-store.js';
import type { StepRow } from '../../src/storage/executions.js';
import { DEFAULT_JOB, type StepStart } from '../../src/storage/steps.js';

/**
 * What every StepRegistry does. `withRegistry` gives the body an empty registry with the store that it fills, and clears both
 * away afterwards.
 */
export function stepRegistryContract(
  kind: string,
  withRegistry: (body: (registry: StepRegistry, store: ExecutionStore) => Promise<void>) => Promise<void>,
): void {
  describe(kind, () => {
    it('makes a run of one step of a command that names no run', () =>
      withRegistry(async (registry, store) => {
        const command = ['dbt', 'build', '--select', 'ü "quoted"'];
        const details = { job: 'nightly', environment: 'prod', project: 'shop', reason: 'by hand', command };
        const place = await registry.register(stepStart('a', details));
        const { runId, jobId, projectId, environmentId } = place;
        const ids = { runId, jobId, projectId, environmentId };
        expect(Object.values(ids).every((id) => Number.isInteger(id) && id > 0)).toBe(true);
        expect(place).toEqual({ ...ids, accountId: 10_001, stepIndex: 1, job: 'nightly', reason: 'by hand' });
        expect(await step(store, 'a')).toMatchObject({ command, ending: null, startedUnixMs: 1_000 });
        await registry.end('a', { kind: 'exited', exitCode: 0 }, 2_000);
        expect((await step(store, 'a')).run).toEqual({
          runId: place.runId,
          runKey: null,
          job: 'nightly',
          environment: 'prod',
          project: 'shop',
          reason: 'by hand',
          state: 'finished',
          startedUnixMs: 1_000,
          endedUnixMs: 2_000,
          stepCount: 1,
          failedStepCount: 0,
        });
      }));

    it('never gives a number of a run again', () =>
      withRegistry(async (registry) => {
        const ids: number[] = [];
        for (const name of ['a', 'b', 'c']) {
          ids.push((await registry.register(stepStart(name, {}))).runId);
          await registry.end(name, { kind: 'exited', exitCode: 0 }, 2_000);
        }
        expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
        expect(ids[0]).toBeGreaterThan(0);
      }));

    it('counts the commands of one named run as its steps, the first of which says whose it is', () =>
      withRegistry(async (registry, store) => {
        const first = await registry.register(stepStart('a', { runKey: 'night 7', job: 'nightly' }));
        await registry.end('a', { kind: 'exited', exitCode: 0 }, 2_000);
        const second = await registry.register(stepStart('b', { runKey: 'night 7', job: 'other' }));
        expect(second).toEqual({ ...first, stepIndex: 2 });
        expect(second.job).toBe('nightly');
        expect((await step(store, 'a')).run).toMatchObject({ state: 'open', stepCount: 2, endedUnixMs: null });
      }));

    it('takes further steps into the run of another, which nobody named, until the last has ended', () =>
      withRegistry(async (registry, store) => {
        const first = await registry.register(stepStart('a', { isLast: true }));
        const second = await registry.register(stepStart('b', { runOf: 'a', startedUnixMs: 1_500 }));
        expect(second).toEqual({ ...first, stepIndex: 2 });
        await registry.end('a', { kind: 'within' }, 1_400);
        expect(await step(store, 'a')).toMatchObject({ ending: { kind: 'within' }, run: { state: 'closing' } });
        await registry.end('b', { kind: 'exited', exitCode: 0 }, 2_000);
        expect((await step(store, 'b')).run).toMatchObject({ state: 'finished', stepCount: 2, failedStepCount: 0 });
      }));

    it('keeps a run open for others while the last command goes on, of which an engine command has ended', () =>
      withRegistry(async (registry, store) => {
        const last = { runKey: 'night 7', isLast: true };
        const first = await registry.register(stepStart('a', last));
        await registry.register(stepStart('b', { ...last, runOf: 'a' }));
        await registry.end('a', { kind: 'within' }, 1_400);
        expect(await step(store, 'a')).toMatchObject({ run: { state: 'open' } });
        expect(await registry.register(stepStart('c', { runKey: 'night 7' }))).toEqual({ ...first, stepIndex: 3 });
        await registry.end('b', { kind: 'exited', exitCode: 0 }, 2_000);
        expect((await step(store, 'b')).run).toMatchObject({ state: 'closing' });
        await registry.end('c', { kind: 'exited', exitCode: 0 }, 2_100);
        expect((await step(store, 'c')).run).toMatchObject({ state: 'finished' });
      }));

    it('tells the runner of a command that its run was cancelled', () =>
      withRegistry(async (registry, store) => {
        const { runId } = await registry.register(stepStart('a', { runKey: 'night 7' }));
        expect(await registry.isCancelled('a')).toBe(false);
        await store.cancel(FIRST_ACCOUNT_ID, runId, 1_500);
        expect(await registry.isCancelled('a')).toBe(true);
      }));

    it('gives steps that begin at the same time numbers of their own', () =>
      withRegistry(async (registry) => {
        const names = Array.from({ length: 12 }, (_, index) => `step-${index}`);
        const places = await Promise.all(names.map((name) => registry.register(stepStart(name, { runKey: 'night' }))));
        expect(new Set(places.map(({ runId }) => runId)).size).toBe(1);
        expect(places.map(({ stepIndex }) => stepIndex).sort((a, b) => a - b)).toEqual(
          names.map((_, index) => index + 1),
        );
      }));

    it('ends a run with its last step, and with those that are under way then', () =>
      withRegistry(async (registry, store) => {
        await registry.register(stepStart('a', { runKey: 'night' }));
        await registry.register(stepStart('b', { runKey: 'night', isLast: true }));
        await registry.end('b', { kind: 'exited', exitCode: 0 }, 5_000);
        expect((await step(store, 'a')).run.state).toBe('closing');
        await registry.end('a', { kind: 'killed', signal: 'SIGKILL' }, 6_000);
        expect((await step(store, 'a')).run).toMatchObject({ state: 'finished', endedUnixMs: 6_000 });
        expect((await step(store, 'a')).ending).toEqual({ kind: 'killed', signal: 'SIGKILL' });
      }));

    it('begins a new run under a name whose run takes no more steps', () =>
      withRegistry(async (registry) => {
        const first = await registry.register(stepStart('a', { runKey: 'night', isLast: true }));
        await registry.end('a', { kind: 'exited', exitCode: 0 }, 2_000);
        const second = await registry.register(stepStart('b', { runKey: 'night' }));
        expect(second.stepIndex).toBe(1);
        expect(second.runId).not.toBe(first.runId);
      }));

    it('knows which artifacts a step is to have until no more come, beyond its end', () =>
      withRegistry(async (registry, store) => {
        const { runId } = await registry.register(stepStart('a', {}));
        await registry.expectArtifacts('a', ['manifest.json']);
        await registry.expectArtifacts('a', ['manifest.json', 'run/ü "quoted".sql']);
        await registry.end('a', { kind: 'exited', exitCode: 0 }, 2_000);
        const paths = ['manifest.json', 'run/ü "quoted".sql'];
        expect(await store.expectedArtifacts('a')).toEqual({ runId, stepIndex: 1, paths });
        expect((await store.listUploading()).map(({ stepId }) => stepId)).toEqual(['a']);
        for (let times = 0; times < 2; times += 1) await registry.endArtifacts('a', 'the bucket is gone');
        expect(await store.expectedArtifacts('a')).toBeUndefined();
        expect(await store.listUploading()).toEqual([]);
      }));

    it('finishes a run when asked to, once its steps have ended', () =>
      withRegistry(async (registry, store) => {
        const { runId } = await registry.register(stepStart('a', { runKey: 'night' }));
        expect(await registry.finish('night')).toMatchObject({ kind: 'closing', runningCount: 1, run: { runId } });
        await registry.end('a', { kind: 'notStarted', reason: 'not found' }, 3_000);
        expect((await step(store, 'a')).run).toMatchObject({ state: 'finished', endedUnixMs: 3_000 });
        expect((await step(store, 'a')).ending).toEqual({ kind: 'notStarted', reason: 'not found' });
        expect(await registry.finish('night')).toMatchObject({ kind: 'alreadyFinished', run: { runId } });

        await registry.register(stepStart('b', { runKey: 'noon' }));
        await registry.end('b', { kind: 'exited', exitCode: 3 }, 4_000);
        expect(await registry.finish('noon')).toMatchObject({
          kind: 'finished',
          run: { stepCount: 1, failedStepCount: 1, state: 'finished' },
        });
        expect(await registry.finish('never heard of')).toEqual({ kind: 'unknownRun' });
      }));

    it('may be called twice with everything', () =>
      withRegistry(async (registry, store) => {
        const start = stepStart('a', { runKey: 'night' });
        const place = await registry.register(start);
        expect(await registry.register(start)).toEqual(place);
        await registry.attach('a', traceId(1));
        await registry.attach('a', traceId(1));
        await registry.end('a', { kind: 'exited', exitCode: 1 }, 2_000);
        await registry.end('a', { kind: 'exited', exitCode: 0 }, 9_000);
        expect(await registry.register(start)).toEqual(place);
        expect(await step(store, 'a')).toMatchObject({ ending: { kind: 'exited', exitCode: 1 }, endedUnixMs: 2_000 });
        expect(await store.tracesOf('a')).toEqual([traceId(1)]);
      }));

    it('knows which steps a trace holds, and which traces a step has', () =>
      withRegistry(async (registry, store) => {
        await registry.register(stepStart('a', { runKey: 'night', startedUnixMs: 1_000 }));
        await registry.register(stepStart('b', { runKey: 'night', startedUnixMs: 1_500 }));
        await registry.attach('b', traceId(1));
        await registry.attach('a', traceId(1));
        await registry.attach('a', traceId(2));
        expect((await store.stepsOf(traceId(1))).map(({ stepId }) => stepId)).toEqual(['a', 'b']);
        expect(await store.tracesOf('a')).toEqual([traceId(1), traceId(2)]);
        expect(await store.stepsOf(traceId(3))).toEqual([]);
      }));

    it('refuses calls for a step that never began', () =>
      withRegistry(async (registry) => {
        const unknown = { name: 'StepRegistryError', code: 'unknownStep' };
        await expect(registry.attach('nobody', traceId(1))).rejects.toMatchObject(unknown);
        await expect(registry.end('nobody', { kind: 'exited', exitCode: 0 }, 1)).rejects.toMatchObject(unknown);
      }));
  });
}

/** A step's beginning, with what the test says of it. */
export function stepStart(stepId: string, details: Partial<StepStart>): StepStart {
  return {
    stepId,
    runKey: null,
    job: DEFAULT_JOB,
    environment: null,
    project: null,
    reason: null,
    command: ['dbt', 'build'],
    startedUnixMs: 1_000,
    isLast: false,
    ...details,
  };
}

async function step(store: ExecutionStore, stepId: string): Promise<StepRow> {
  const found = await store.findStep(stepId);
  if (found === undefined) throw new Error(`no step ${stepId}`);
  return found;
}

function traceId(number: number): TraceId {
  const id = parseTraceId(number.toString(16).padStart(32, '0'));
  if (id === undefined) throw new Error('not a trace id');
  return id;
}
