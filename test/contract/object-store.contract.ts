import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ObjectStore } from '../../src/storage/bucket/object-store.js';

/** What every ObjectStore does. `withStore` gives the body an empty one and clears it away afterwards. */
export function objectStoreContract(withStore: (body: (store: ObjectStore) => Promise<void>) => Promise<void>): void {
  describe('an object store', () => {
    it('gives back what was put, whole, in parts and as a stream', () =>
      withStore(async (store) => {
        await store.put('a/b', Buffer.from('0123456789'));
        expect(String(await store.get('a/b'))).toBe('0123456789');
        expect(String(await store.get('a/b', 2, 5))).toBe('234');
        expect(Buffer.concat((await (await store.open('a/b'))?.toArray()) ?? []).toString()).toBe('0123456789');
        await store.put('a/b', Buffer.from('other'));
        expect(String(await store.get('a/b'))).toBe('other');
        await store.put('empty', Buffer.alloc(0));
        expect((await store.get('empty'))?.length).toBe(0);
      }));

    it('says of what is not there that it is not', () =>
      withStore(async (store) => {
        expect(await store.get('nothing')).toBeUndefined();
        expect(await store.open('nothing')).toBeUndefined();
        await store.remove(['nothing']);
        expect(await store.list('')).toEqual([]);
      }));

    it('lists by prefix, in order, and removes', () =>
      withStore(async (store) => {
        for (const key of ['runs/2', 'runs/1', 'journal/1']) await store.put(key, Buffer.from(key));
        expect(await store.list('runs/')).toEqual(['runs/1', 'runs/2']);
        await store.remove(['runs/1', 'journal/1', 'runs/none']);
        expect(await store.list('')).toEqual(['runs/2']);
      }));

    it.each([0, 10, 20 * 1024 * 1024])('uploads the first %i bytes of a file', (sizeBytes) =>
      withStore(async (store) => {
        const folder = mkdtempSync(join(tmpdir(), 'run-bridge-objects-'));
        try {
          const bytes = Buffer.alloc(sizeBytes + 5, 'run-bridge ');
          writeFileSync(join(folder, 'file'), bytes);
          await store.putFile('file', join(folder, 'file'), sizeBytes);
          expect((await store.get('file'))?.equals(bytes.subarray(0, sizeBytes))).toBe(true);
        } finally {
          rmSync(folder, { recursive: true });
        }
      }),
    );
  });
}
