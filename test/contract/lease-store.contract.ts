import { describe, expect, it } from 'vitest';
import type { LeaseStore } from '../../src/storage/lease-store.js';

/** What every LeaseStore does. `withStore` gives the body an empty store and clears it away afterwards. */
export function leaseStoreContract(withStore: (body: (store: LeaseStore) => Promise<void>) => Promise<void>): void {
  describe('a lease store', () => {
    it('gives a lease to the first who asks, and renews it for that one alone', () =>
      withStore(async (store) => {
        expect(await store.take('bridge', 'a', 1_000, 500)).toEqual({
          holder: 'a',
          expiresUnixMs: 1_500,
          generation: 1,
        });
        expect(await store.take('bridge', 'b', 1_400, 500)).toEqual({
          holder: 'a',
          expiresUnixMs: 1_500,
          generation: 1,
        });
        expect(await store.take('bridge', 'a', 1_400, 500)).toEqual({
          holder: 'a',
          expiresUnixMs: 1_900,
          generation: 1,
        });
        expect((await store.take('other', 'b', 1_400, 500)).holder).toBe('b');
      }));

    it('gives a lease that has expired to another one, as a new generation', () =>
      withStore(async (store) => {
        await store.take('bridge', 'a', 1_000, 500);
        expect(await store.take('bridge', 'b', 1_500, 500)).toEqual({
          holder: 'b',
          expiresUnixMs: 2_000,
          generation: 2,
        });
        expect((await store.take('bridge', 'a', 1_600, 500)).holder).toBe('b');
      }));

    it('gives a lease that was let go of at once, and takes it from nobody else', () =>
      withStore(async (store) => {
        await store.take('bridge', 'a', 1_000, 500);
        await store.release('bridge', 'b');
        expect((await store.take('bridge', 'b', 1_001, 500)).holder).toBe('a');
        await store.release('bridge', 'a');
        expect(await store.take('bridge', 'b', 1_002, 500)).toMatchObject({ holder: 'b', generation: 2 });
      }));

    it('gives a lease to one of many who ask at the same time', () =>
      withStore(async (store) => {
        const names = Array.from({ length: 8 }, (_, index) => `program ${index}`);
        const leases = await Promise.all(names.map((name) => store.take('bridge', name, 1_000, 500)));
        expect(new Set(leases.map(({ holder }) => holder)).size).toBe(1);
      }));
  });
}
