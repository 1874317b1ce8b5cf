import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseTraceId, type TraceId } from '../../../src/record/telemetry-record.js';
import {
  LocalStepRegistry,
  type LocalStepRegistryDeps,
  REPORTER_LEASE_MS,
} from '../../../src/run/local-step-registry.js';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import { parseArtifactPath } from '../../../src/storage/artifacts.js';
import type { State } from '../../../src/storage/state.js';
import { stepStart } from '../../contract/step-registry.contract.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { openFreshState } from '../../fake/fresh-state.js';
import { RecordingLogger } from '../../fake/recording-logger.js';
import { commandNote } from '../../fake/webhook-facts.js';
import { until } from '../../tool/until.js';

const DAY_MS = 86_400_000;
let folder: string;
let clock: FakeClock;
let logger: RecordingLogger;
let changed: TraceId[];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'run-bridge-registry-'));
  clock = new FakeClock();
  logger = new RecordingLogger();
  changed = [];
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function withRegistry(
  body: (registry: LocalStepRegistry, state: State) => Promise<void>,
  artifacts: Partial<Pick<LocalStepRegistryDeps, 'openArtifacts' | 'areSpooled'>> = {},
): Promise<void> {
  const state = await openFreshState(join(folder, 'state.db'));
  const listeners = [{ onStepChanged: (traceIds: readonly TraceId[]) => void changed.push(...traceIds) }];
  const registry = new LocalStepRegistry({
    ...{ store: state.executions, runs: state.runs, listeners, clock, logger },
    ...artifacts,
  });
  await registry.start();
  try {
    await body(registry, state);
  } finally {
    await registry.shutdown();
    await state.close();
  }
}

describe('the registry of a data folder', () => {
  const TRACE = parseTraceId('0af7651916cd43dd8448eb211c80319c') as TraceId;

  it('tells at once that a trace belongs to a step, and that the step ended', () =>
    withRegistry(async (registry) => {
      await registry.register(stepStart('a', {}));
      await registry.attach('a', TRACE);
      expect(changed).toEqual([TRACE]);
      await registry.end('a', { kind: 'exited', exitCode: 0 }, 2_000);
      expect(changed).toEqual([TRACE, TRACE]);
    }));

  it('tells at once that a step has begun whose telemetry is there already', () =>
    withRegistry(async (registry, state) => {
      const note = commandNote(1, { verdict: null, isSaved: false, namedStepId: 'a' });
      await state.invocations.note([note], 1_000);
      await registry.register(stepStart('a', {}));
      expect(changed).toEqual([note.traceId]);
    }));

  it('closes at the start what a process left open that died, as of its last sign of life', async () => {
    await withRegistry(async (registry, state) => {
      await registry.register(stepStart('a', {}));
      await registry.register(stepStart('b', {}));
      await registry.attach('b', TRACE);
      const row = { firstSeenUnixMs: 1_100, state: 'open', logBytes: 5, summary: '', parquetBytes: null } as const;
      await state.runs.save([{ ...row, traceId: TRACE, lastSeenUnixMs: 7_000 }]);
    });
    await withRegistry(async (_, { executions }) => {
      expect(await executions.listRunning()).toEqual([]);
      expect(await executions.findStep('a')).toMatchObject({ ending: { kind: 'unknown' }, endedUnixMs: 1_000 });
      expect(await executions.findStep('b')).toMatchObject({ endedUnixMs: 7_000, run: { state: 'finished' } });
    });
  });

  it('leaves what programs elsewhere run open over a restart, until they are silent', async () => {
    await withRegistry((registry) => registry.register(stepStart('a', {}), 'remote').then(() => undefined));
    await withRegistry(async (registry, { executions }) => {
      clock.advance(REPORTER_LEASE_MS - 60_000);
      await swept();
      await registry.register(stepStart('a', {}), 'remote');
      clock.advance(REPORTER_LEASE_MS - 60_000);
      await swept();
      expect((await executions.findStep('a'))?.ending).toBeNull();
      clock.advance(60_000);
      await swept();
      expect((await executions.findStep('a'))?.ending).toEqual({ kind: 'unknown' });
      // It was cut off from the bridge, not dead.
      await registry.end('a', { kind: 'exited', exitCode: 1 }, 9_000);
      expect(await executions.findStep('a')).toMatchObject({ ending: { exitCode: 1 }, endedUnixMs: 9_000 });
    });
  });

  it('finishes a run that nobody finished a day after its last step', () =>
    withRegistry(async (registry, { executions }) => {
      const startedUnixMs = clock.nowUnixMs();
      await registry.register(stepStart('a', { runKey: 'night', startedUnixMs }));
      await registry.register(stepStart('b', { runKey: 'long', startedUnixMs }));
      await registry.end('a', { kind: 'exited', exitCode: 0 }, startedUnixMs);
      for (const forMs of [DAY_MS, 60_000]) {
        clock.advance(forMs);
        await swept();
      }
      expect((await executions.findStep('a'))?.run.state).toBe('finished');
      expect((await executions.findStep('b'))?.run.state).toBe('open');
    }));

  describe('of artifacts that are uploaded', () => {
    const BOTH = ['manifest.json', 'run_results.json'];
    const statusOf = async (state: State, runId: number) =>
      (await state.catalog.findRun(FIRST_ACCOUNT_ID, runId))?.status;
    const artifactsOf = async (state: State, runId: number) =>
      (await state.catalog.stepsOf(FIRST_ACCOUNT_ID, [runId]))[0]?.artifacts;
    /** A store that has these. */
    const having = (...names: readonly string[]) => ({
      openArtifacts: async () => ({
        list: async () =>
          names.flatMap((name) => {
            const path = parseArtifactPath(name);
            return path === undefined ? [] : [{ path, sizeBytes: 1, modifiedUnixMs: 1, etag: '""' }];
          }),
      }),
    });

    it('says that the run is over when all are kept, and which are missing where some are not', async () => {
      for (const [kept, status] of [
        [BOTH, null],
        [['manifest.json'], 'incomplete'],
      ] as const) {
        await withRegistry(
          async (registry, state) => {
            const { runId } = await registry.register(stepStart(kept.join(), {}));
            await registry.expectArtifacts(kept.join(), BOTH);
            await registry.end(kept.join(), { kind: 'exited', exitCode: 0 }, 2_000);
            expect(await statusOf(state, runId)).toBeLessThan(10);
            await registry.endArtifacts(kept.join(), null);
            expect(await statusOf(state, runId)).toBe(10);
            expect((await artifactsOf(state, runId))?.state ?? null).toBe(status);
          },
          having(...kept),
        );
      }
    });

    it('waits for a sender elsewhere as long as it is heard of, and notes what is missing when it has gone', () =>
      withRegistry(async (registry, state) => {
        const { runId } = await registry.register(stepStart('a', {}), 'remote');
        await registry.expectArtifacts('a', BOTH);
        await registry.end('a', { kind: 'exited', exitCode: 0 }, 2_000);
        for (let hours = 0; hours < 3; hours += 1) {
          for (let minute = 0; minute < 60; minute += 5) {
            clock.advance(300_000);
            await registry.register(stepStart('a', {}), 'remote');
          }
        }
        expect(await statusOf(state, runId)).toBeLessThan(10);
        await until('it is given up', async () => {
          clock.advance(REPORTER_LEASE_MS);
          return (await statusOf(state, runId)) === 10;
        });
        const missing = ['run_results.json'];
        expect(await artifactsOf(state, runId)).toMatchObject({ state: 'incomplete', expectedCount: 2, missing });
      }, having('manifest.json')));

    it('leaves those of an earlier process to what takes in its folder, and gives others up', async () => {
      let runIds: readonly number[] = [];
      await withRegistry(async (registry) => {
        const places = [
          await registry.register(stepStart('spooled', {})),
          await registry.register(stepStart('gone', {})),
        ];
        runIds = places.map(({ runId }) => runId);
        for (const stepId of ['spooled', 'gone']) {
          await registry.expectArtifacts(stepId, BOTH);
          await registry.end(stepId, { kind: 'exited', exitCode: 0 }, 2_000);
        }
      });
      await withRegistry(
        async (_book, state) => {
          const [spooled = 0, gone = 0] = runIds;
          await until('one is given up', async () => (await statusOf(state, gone)) === 10);
          expect(await artifactsOf(state, gone)).toMatchObject({ state: 'incomplete', missing: BOTH });
          expect(await artifactsOf(state, spooled)).toMatchObject({ state: 'uploading', missing: [] });
        },
        { areSpooled: (stepId) => stepId === 'spooled' },
      );
    });

    it('asks to be told again where nobody can say just now what is kept', () =>
      withRegistry(
        async (registry, state) => {
          const { runId } = await registry.register(stepStart('a', {}));
          await registry.expectArtifacts('a', BOTH);
          await registry.end('a', { kind: 'exited', exitCode: 0 }, 2_000);
          await expect(registry.endArtifacts('a', null)).rejects.toMatchObject({ code: 'unavailable' });
          expect(await statusOf(state, runId)).toBeLessThan(10);
          await registry.endArtifacts('a', 'the bucket is gone for good');
          expect(await artifactsOf(state, runId)).toMatchObject({
            missing: BOTH,
            reason: 'the bucket is gone for good',
          });
        },
        {
          openArtifacts: async () => {
            throw new Error('no such bucket');
          },
        },
      ));
  });
});

/** Resolves when the look at open steps that was due is done: the next one is planned. */
function swept(): Promise<boolean> {
  return until('a look at open steps', () => clock.nextTimerMs !== undefined);
}
