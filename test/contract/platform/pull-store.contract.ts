import { describe, expect, it } from 'vitest';
import type { HostedRunKey, HostedRunRow, PullStore } from '../../../src/platform/pull-store.js';

const PLATFORM = 'https://platform.example';
const key = (runId: string, platform = PLATFORM): HostedRunKey => ({ platform, accountId: '7', runId });
const row = (runId: string, given: Partial<HostedRunRow> = {}): HostedRunRow => ({
  ...key(runId),
  state: 'waiting',
  notedUnixMs: 100,
  dueUnixMs: 100,
  attemptCount: 0,
  doneSteps: [],
  ...given,
});

/** What every PullStore does. `withStore` gives the body an empty store and clears it away afterwards. */
export function pullStoreContract(withStore: (body: (store: PullStore) => Promise<void>) => Promise<void>): void {
  describe('a pull store', () => {
    it('has runs that were noted wait, once each', () =>
      withStore(async (store) => {
        expect(await store.find(key('1'))).toBeUndefined();
        expect(await store.findNext(PLATFORM)).toBeUndefined();
        expect(await store.add([key('1'), key('2'), key('1')], 100, 10)).toBe(true);
        expect(await store.add([key('1')], 200, 10)).toBe(true);
        expect(await store.find(key('1'))).toEqual(row('1'));
        expect(await store.countWaiting(PLATFORM)).toBe(2);
      }));

    it('refuses all of what would be too much, yet never what is known', () =>
      withStore(async (store) => {
        expect(await store.add([key('1'), key('2')], 100, 2)).toBe(true);
        expect(await store.add([key('2'), key('3')], 100, 2)).toBe(false);
        expect(await store.find(key('3'))).toBeUndefined();
        expect(await store.add([key('1'), key('2')], 100, 2)).toBe(true);
      }));

    it('keeps what is done as it is, and has what failed wait again with the steps that it has', () =>
      withStore(async (store) => {
        await store.save([
          row('1', { state: 'done' }),
          row('2', { state: 'failed', attemptCount: 9, doneSteps: [1, 3] }),
        ]);
        expect(await store.findNext(PLATFORM)).toBeUndefined();
        await store.add([key('1'), key('2')], 500, 10);
        expect(await store.find(key('1'))).toEqual(row('1', { state: 'done' }));
        expect(await store.findNext(PLATFORM)).toEqual(
          row('2', { notedUnixMs: 500, dueUnixMs: 500, doneSteps: [1, 3] }),
        );
      }));

    it('finds what is due first, platform by platform', () =>
      withStore(async (store) => {
        await store.save([row('1', { dueUnixMs: 300 }), row('2', { dueUnixMs: 200 }), row('3', { dueUnixMs: 250 })]);
        await store.add([key('4', 'https://other.example')], 10, 10);
        expect((await store.findNext(PLATFORM))?.runId).toBe('2');
        await store.save([row('2', { dueUnixMs: 400, attemptCount: 1 })]);
        expect((await store.findNext(PLATFORM))?.runId).toBe('3');
        expect((await store.findNext('https://other.example'))?.runId).toBe('4');
      }));

    it('tells accounts apart', () =>
      withStore(async (store) => {
        await store.save([row('1', { state: 'done' }), { ...row('1'), accountId: '8' }]);
        expect((await store.find({ ...key('1'), accountId: '8' }))?.state).toBe('waiting');
      }));

    it('keeps a cursor for each account and job', () =>
      withStore(async (store) => {
        const scope = { platform: PLATFORM, accountId: '7', jobId: null };
        expect(await store.findCursor(scope)).toBeUndefined();
        await store.saveCursor(scope, 5);
        await store.saveCursor({ ...scope, jobId: '3' }, 6);
        await store.saveCursor(scope, 7);
        expect([await store.findCursor(scope), await store.findCursor({ ...scope, jobId: '3' })]).toEqual([7, 6]);
      }));

    it('forgets what is over and old, never what waits', () =>
      withStore(async (store) => {
        await store.save([row('1', { state: 'done' }), row('2'), row('3', { state: 'done', notedUnixMs: 300 })]);
        await store.prune(200);
        expect(await store.find(key('1'))).toBeUndefined();
        expect(await store.find(key('2'))).toBeDefined();
        expect(await store.find(key('3'))).toBeDefined();
      }));
  });
}
