import { describe, expect, it } from 'vitest';
import { FIRST_ACCOUNT_ID } from '../../src/storage/account-store.js';
import { attempted, commandNote, eventsOf, type FeatureState, subscription } from '../fake/webhook-facts.js';

/** A text that holds NUL and half a surrogate pair, and how it is kept. */
const HOSTILE = 'a\0b\ud83dc 😀';
const KEPT = 'a␀b\ufffdc 😀';
const ALL = { isDescending: false, limit: 100, offset: 0, orderBy: 'id' } as const;

/** What every State keeps of texts and numbers that others make up. `withState` gives the body an empty one and clears it away afterwards. */
export function unusualValuesContract(
  withState: (body: (state: FeatureState) => Promise<void>) => Promise<void>,
): void {
  const runsOf = async (state: FeatureState) => (await state.catalog.listRuns(FIRST_ACCOUNT_ID, ALL)).items;

  describe('texts that hold NUL or no Unicode', () => {
    it('are kept of telemetry, and their run is found under its job', () =>
      withState(async (state) => {
        const place = { job: HOSTILE, environment: HOSTILE, project: HOSTILE };
        const facts = { command: HOSTILE, statusMessage: HOSTILE, engineVersion: HOSTILE, gitBranch: HOSTILE };
        await state.invocations.note([commandNote(1, { scope: place, ...facts }), commandNote(2)], 4_000);
        await state.invocations.note(
          [commandNote(1, { scope: place, ...facts }), commandNote(3, { scope: place })],
          5_000,
        );
        const runs = await runsOf(state);
        expect(runs.map(({ job }) => job.name)).toEqual([KEPT, 'nightly', KEPT]);
        expect(runs[0]?.job.id).toBe(runs[2]?.job.id);
        expect(runs[0]).toMatchObject({ engineVersion: KEPT, gitBranch: KEPT });
      }));

    it('are kept of steps, and found again by them', () =>
      withState(async ({ executions }) => {
        const step = { runKey: HOSTILE, job: HOSTILE, environment: null, project: HOSTILE, reason: HOSTILE };
        const begin = (stepId: string) =>
          executions.register({ ...step, stepId, command: [HOSTILE], startedUnixMs: 1, isLast: false }, 'local');
        const first = await begin('a');
        expect(await begin('b')).toMatchObject({ runId: first.runId, stepIndex: 2 });
        await executions.end('a', { kind: 'notStarted', reason: HOSTILE }, 2);
        expect(await executions.findStep('a')).toMatchObject({ ending: { kind: 'notStarted', reason: KEPT } });
      }));

    it('are kept of what commands write and what receivers of webhooks answer', () =>
      withState(async (state) => {
        await state.jobRuns.saveOutput('a', { text: HOSTILE, droppedBytes: 0 });
        expect((await state.jobRuns.outputsOf(['a'])).get('a')).toMatchObject({ text: KEPT });
        const added = await state.subscriptions.add(
          subscription('a', { name: HOSTILE, description: HOSTILE, eventTypes: ['job.run.completed'] }),
        );
        await state.invocations.note([commandNote(1)], 4_000);
        const claim = { holder: 'p', nowUnixMs: 9e12, leaseUntilUnixMs: 9e12 + 1_000 };
        const [event] = await state.webhookEvents.claim(added, 1, claim);
        if (event === undefined) throw new Error('nothing was claimed');
        const result = attempted(event);
        const attempt = {
          ...result.attempt,
          responseBody: HOSTILE,
          responseHeaders: { answer: HOSTILE },
          error: HOSTILE,
        };
        await state.webhookEvents.finish([{ ...result, attempt }], 'p', (standing) => ({
          standing,
          archiveReason: null,
        }));
        expect((await eventsOf(state, added.id)).map(({ state: is }) => is)).toEqual(['delivered']);
        expect(await state.webhookEvents.attemptsOf(event.id)).toMatchObject([{ responseBody: KEPT, error: KEPT }]);
      }));

    it('are kept of tokens', () =>
      withState(async ({ tokens }) => {
        const token = { accountId: FIRST_ACCOUNT_ID, name: HOSTILE, userName: HOSTILE, permission: 'admin' as const };
        await tokens.add({ ...token, hash: 'h', createdUnixMs: 1, expiresUnixMs: null });
        expect(await tokens.list()).toMatchObject([{ name: KEPT, userName: KEPT }]);
      }));
  });

  describe('unusual numbers', () => {
    it('of exit codes are kept as 32 bits', () =>
      withState(async ({ executions }) => {
        const start = { runKey: null, job: 'j', environment: null, project: null, reason: null };
        await executions.register({ ...start, stepId: 'a', command: ['x'], startedUnixMs: 1, isLast: true }, 'local');
        // What Windows says of a missing library.
        await executions.end('a', { kind: 'exited', exitCode: 0xc0000135 }, 2);
        expect(await executions.findStep('a')).toMatchObject({
          ending: { kind: 'exited', exitCode: 0xc0000135 - 2 ** 32 },
        });
      }));
  });

  it('sets traces aside that can never be noted, and counts them', () =>
    withState(async (state) => {
      const { traceId } = commandNote(1);
      const times = { firstSeenUnixMs: 1, lastSeenUnixMs: 2 };
      const row = { traceId, ...times, state: 'finished' as const, logBytes: 7, summary: '{}', parquetBytes: 7 };
      await state.runs.save([row]);
      expect(await state.invocations.listUnnoted(9)).toHaveLength(1);
      await state.invocations.setAside([traceId]);
      expect(await state.invocations.listUnnoted(9)).toEqual([]);
      expect(await state.invocations.countSetAside()).toBe(1);
      expect(await state.invocations.listSetAside(9)).toEqual([row]);
    }));
}
