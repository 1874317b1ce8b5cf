import { describe, expect, it } from 'vitest';
import {
  type AccountStore,
  FIRST_ACCOUNT_ID,
  type NewToken,
  type TokenStore,
} from '../../src/storage/account-store.js';

/** The stores of one state. */
interface AccessStores {
  readonly accounts: AccountStore;
  readonly tokens: TokenStore;
}

const token = (name: string, given: Partial<NewToken> = {}): NewToken => ({
  accountId: FIRST_ACCOUNT_ID,
  name,
  userName: null,
  permission: 'admin',
  hash: name.padEnd(64, '0'),
  createdUnixMs: 100,
  expiresUnixMs: null,
  ...given,
});

/** What every TokenStore and AccountStore does. `withStores` gives the body fresh ones and clears them away afterwards. */
export function tokenStoreContract(withStores: (body: (stores: AccessStores) => Promise<void>) => Promise<void>): void {
  describe('a token store', () => {
    it('has an account from the beginning, whose id is not 1', () =>
      withStores(async ({ accounts }) => {
        expect(await accounts.list()).toEqual([{ id: 10_001, name: 'run-bridge' }]);
        expect(await accounts.find(FIRST_ACCOUNT_ID)).toEqual({ id: 10_001, name: 'run-bridge' });
        expect(await accounts.find(1)).toBeUndefined();
      }));

    it('knows whether there is another account, or another user with a token', () =>
      withStores(async ({ accounts, tokens }) => {
        await tokens.add(token('service'));
        await tokens.add(token('a', { userName: 'anna' }));
        await tokens.add(token('b', { userName: 'anna' }));
        expect(await accounts.isAlone()).toBe(true);
        const { id } = await tokens.add(token('c', { userName: 'berta' }));
        expect(await accounts.isAlone()).toBe(false);
        await tokens.revoke(id, 200);
        expect(await accounts.isAlone()).toBe(true);
        await accounts.add({ name: 'finance', id: null }, 100);
        expect(await accounts.isAlone()).toBe(false);
      }));

    it('adds accounts under numbers that nothing had, or under the one that is wanted', () =>
      withStores(async ({ accounts }) => {
        expect(await accounts.add({ name: 'finance', id: null }, 100)).toEqual({ id: 10_002, name: 'finance' });
        expect(await accounts.add({ name: 'back', id: 10_007 }, 100)).toEqual({ id: 10_007, name: 'back' });
        expect(await accounts.add({ name: 'finance', id: null }, 100)).toEqual({ id: 10_008, name: 'finance' });
        expect(await accounts.add({ name: 'other', id: 10_002 }, 100)).toBeUndefined();
        expect((await accounts.list()).map(({ id }) => id)).toEqual([10_001, 10_002, 10_007, 10_008]);
        expect(await accounts.find(10_002)).toEqual({ id: 10_002, name: 'finance' });
      }));

    it('finds a token by its hash, with all that was said of it', () =>
      withStores(async ({ tokens }) => {
        const given = token('a', { userName: 'anna', permission: 'read_only', expiresUnixMs: 5_000_000_000_000 });
        const kept = await tokens.add(given);
        expect(kept).toEqual({ ...given, id: 1_001, revokedUnixMs: null, usedUnixMs: null });
        expect(await tokens.findGood(given.hash, 4_999_999_999_999)).toEqual(kept);
        expect(await tokens.findGood('b'.padEnd(64, '0'), 0)).toBeUndefined();
      }));

    it('finds no token that is expired or revoked', () =>
      withStores(async ({ tokens }) => {
        const { hash } = await tokens.add(token('a', { expiresUnixMs: 1_000 }));
        expect(await tokens.findGood(hash, 999)).toMatchObject({ name: 'a' });
        expect(await tokens.findGood(hash, 1_000)).toBeUndefined();
        const revoked = await tokens.add(token('b'));
        await tokens.revoke(revoked.id, 200);
        expect(await tokens.findGood(revoked.hash, 100)).toBeUndefined();
      }));

    it('lists tokens as they were made, those that are no good too', () =>
      withStores(async ({ tokens }) => {
        const first = await tokens.add(token('a', { expiresUnixMs: 1 }));
        const second = await tokens.add(token('b'));
        await tokens.revoke(second.id, 300);
        expect((await tokens.list()).map(({ name, revokedUnixMs }) => [name, revokedUnixMs])).toEqual([
          ['a', null],
          ['b', 300],
        ]);
        expect(second.id).toBeGreaterThan(first.id);
      }));

    it('adds a first token once, even when several would, and none where there has been one', () =>
      withStores(async ({ tokens }) => {
        expect(await tokens.isEmpty()).toBe(true);
        const added = await Promise.all(['a', 'b', 'c'].map((name) => tokens.addFirst(token(name))));
        expect(added.filter((row) => row !== undefined)).toHaveLength(1);
        expect(await tokens.isEmpty()).toBe(false);
        const [only] = await tokens.list();
        await tokens.revoke(only?.id ?? 0, 1);
        expect(await tokens.addFirst(token('d'))).toBeUndefined();
        expect(await tokens.list()).toHaveLength(1);
      }));

    it('revokes a token for good', () =>
      withStores(async ({ tokens }) => {
        const { id, hash } = await tokens.add(token('a'));
        expect(await tokens.revoke(id, 200)).toMatchObject({ kind: 'revoked', token: { id, revokedUnixMs: 200 } });
        expect(await tokens.revoke(id, 300)).toMatchObject({ kind: 'alreadyRevoked', token: { revokedUnixMs: 200 } });
        expect(await tokens.list()).toMatchObject([{ hash, revokedUnixMs: 200 }]);
        expect(await tokens.revoke(7, 200)).toEqual({ kind: 'unknown' });
      }));

    const exchange = { hash: 'new'.padEnd(64, '0'), expiresUnixMs: 9_000, nowUnixMs: 999 };

    it('makes a link a token once, of several that would, and not after its time', () =>
      withStores(async ({ tokens }) => {
        const link = token('link', { expiresUnixMs: 1_000 });
        await tokens.addLink(link);
        expect(await tokens.exchangeLink(link.hash, { ...exchange, nowUnixMs: 1_000 })).toBe(false);
        expect(await tokens.exchangeLink('other'.padEnd(64, '0'), exchange)).toBe(false);
        const used = await Promise.all(
          ['a', 'b', 'c'].map((name) => tokens.exchangeLink(link.hash, { ...exchange, hash: name.padEnd(64, '0') })),
        );
        expect(used.filter(Boolean)).toHaveLength(1);
        expect(await tokens.list()).toMatchObject([{ name: 'link', createdUnixMs: 999, expiresUnixMs: 9_000 }]);
        expect(await tokens.exchangeLink(link.hash, exchange)).toBe(false);
      }));

    it('takes no link for a token, neither to find, to list, to count nor to revoke it', () =>
      withStores(async ({ tokens }) => {
        const link = token('link', { expiresUnixMs: 1_000 });
        await tokens.addLink(link);
        expect(await tokens.findGood(link.hash, 0)).toBeUndefined();
        expect(await tokens.list()).toEqual([]);
        expect(await tokens.isEmpty()).toBe(true);
        expect(await tokens.addFirst(token('a'))).toMatchObject({ name: 'a' });
        expect(await tokens.revoke(1_001, 200)).toEqual({ kind: 'unknown' });
        expect(await tokens.exchangeLink(link.hash, exchange)).toBe(true);
        expect(await tokens.findGood(exchange.hash, 0)).toMatchObject({ id: 1_001 });
      }));

    it('forgets links that expired unused when the next one is made', () =>
      withStores(async ({ tokens }) => {
        await tokens.addLink(token('old', { expiresUnixMs: 1_000 }));
        await tokens.addLink(token('other', { expiresUnixMs: 5_000 }));
        await tokens.addLink(token('new', { createdUnixMs: 2_000, expiresUnixMs: 5_000 }));
        expect(await tokens.exchangeLink(token('old').hash, exchange)).toBe(false);
        expect(await tokens.exchangeLink(token('other').hash, exchange)).toBe(true);
      }));

    it('notes when a token was used', () =>
      withStores(async ({ tokens }) => {
        const { id, hash } = await tokens.add(token('a'));
        await tokens.noteUse(id, 1_700_000_000_000);
        expect(await tokens.findGood(hash, 0)).toMatchObject({ usedUnixMs: 1_700_000_000_000 });
      }));
  });
}
