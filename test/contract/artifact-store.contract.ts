import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { type ArtifactKey, type ArtifactStore, parseArtifactPath } from '../../src/storage/artifacts.js';

function key(path: string, stepIndex = 1, runId = 1001): ArtifactKey {
  const parsed = parseArtifactPath(path);
  if (parsed === undefined) throw new Error(`${path} is no path`);
  return { runId, stepIndex, path: parsed };
}

/** A source of pieces of bytes. */
const pieces = (...texts: readonly string[]) => Readable.from(texts.map((each) => Buffer.from(each)));

/** Breaks off after a while, as a connection does. */
async function* brokenOff(byteCount: number): AsyncGenerator<Uint8Array> {
  for (let sent = 0; sent < byteCount; sent += PIECE.length) yield PIECE;
  throw new Error('the sender has gone');
}

const PIECE = Buffer.alloc(256 * 1024, 'abcdefghijklmnop');

/** What every ArtifactStore does. `withStore` gives the body an empty store and clears it away afterwards. */
export function artifactStoreContract(
  withStore: (body: (store: ArtifactStore) => Promise<void>) => Promise<void>,
): void {
  describe('an artifact store', () => {
    it('knows nothing of what was never kept', () =>
      withStore(async (store) => {
        expect(await store.list(1001, 1)).toEqual([]);
        expect(await store.stat(key('manifest.json'))).toBeUndefined();
        expect(await store.open(key('manifest.json'))).toBeUndefined();
        expect(await store.remove(key('manifest.json'))).toBe(false);
        expect(await store.usage(1001)).toEqual({ count: 0, sizeBytes: 0 });
        expect(await store.removeRun(1001)).toEqual({ count: 0, sizeBytes: 0 });
      }));

    it('gives back what it was given, whole and in parts', () =>
      withStore(async (store) => {
        await store.put(key('run_results.json'), pieces('{"results"', ': []}'));
        const whole = await store.open(key('run_results.json'));
        expect(whole && (await text(whole.content))).toBe('{"results": []}');
        const part = await store.open(key('run_results.json'), { from: 2, to: 9 });
        expect(part && (await text(part.content))).toBe('results');
        expect(part?.artifact).toEqual(whole?.artifact);
        expect(whole?.artifact).toEqual(await store.stat(key('run_results.json')));
        expect(whole?.artifact.sizeBytes).toBe(15);
      }));

    it('keeps an empty one', () =>
      withStore(async (store) => {
        await store.put(key('empty.sql'), pieces());
        const found = await store.open(key('empty.sql'));
        expect(found?.artifact.sizeBytes).toBe(0);
        expect(found && (await text(found.content))).toBe('');
      }));

    it('lists what a step has, and nothing of another step or run', () =>
      withStore(async (store) => {
        const names = ['run/shop/b c.sql', 'manifest.json', 'run/shop/ä.sql', 'compiled/100%/x+y&z.sql'];
        for (const name of names) await store.put(key(name), pieces(name));
        await store.put(key('catalog.json', 11), pieces('{}'));
        await store.put(key('sources.json', 1, 10011), pieces('{}'));
        const listed = await store.list(1001, 1);
        expect(listed.map(({ path }) => path)).toEqual([...names].sort());
        for (const artifact of listed) {
          expect(await store.stat({ ...key('x'), path: artifact.path })).toEqual(artifact);
          const found = await store.open({ ...key('x'), path: artifact.path });
          expect(found && (await text(found.content))).toBe(artifact.path);
        }
        expect((await store.list(1001, 11)).map(({ path }) => path)).toEqual(['catalog.json']);
      }));

    it('lists a folder without what its folders have', () =>
      withStore(async (store) => {
        const names = ['run/shop/b.sql', 'run/a.sql', 'manifest.json', 'runs/c.sql', 'run/shop/deep/d.sql'];
        for (const name of names) await store.put(key(name), pieces(name));
        await store.put(key('run/other.sql', 11), pieces('{}'));
        const seen = async (path: string) => {
          const { folders, files } = await store.listFolder(1001, 1, path === '' ? '' : key(path).path);
          return [folders, files.map((file) => file.path)];
        };
        expect(await seen('')).toEqual([['run', 'runs'], ['manifest.json']]);
        expect(await seen('run')).toEqual([['run/shop'], ['run/a.sql']]);
        expect(await seen('run/shop')).toEqual([['run/shop/deep'], ['run/shop/b.sql']]);
        for (const none of ['run/none', 'manifest.json', 'ru']) expect(await seen(none), none).toEqual([[], []]);
        expect((await store.listFolder(1001, 1, '')).files).toEqual([await store.stat(key('manifest.json'))]);
      }));

    it('replaces one, which then has another entity tag', () =>
      withStore(async (store) => {
        await store.put(key('manifest.json'), pieces('first'));
        const first = await store.stat(key('manifest.json'));
        await store.put(key('manifest.json'), pieces('other'));
        const second = await store.stat(key('manifest.json'));
        const found = await store.open(key('manifest.json'));
        expect(found && (await text(found.content))).toBe('other');
        expect(second?.etag).not.toBe(first?.etag);
        expect(second?.etag).toMatch(/^"[^"]+"$/);
        expect(await store.list(1001, 1)).toHaveLength(1);
      }));

    it('keeps nothing of what broke off, and what was there before stays', () =>
      withStore(async (store) => {
        await store.put(key('manifest.json'), pieces('first'));
        for (const byteCount of [1, 20 * 1024 * 1024]) {
          for (const name of ['manifest.json', 'catalog.json']) {
            await expect(store.put(key(name), brokenOff(byteCount))).rejects.toThrow('the sender has gone');
          }
        }
        expect((await store.list(1001, 1)).map(({ path }) => path)).toEqual(['manifest.json']);
        const found = await store.open(key('manifest.json'));
        expect(found && (await text(found.content))).toBe('first');
      }));

    it('takes and gives large ones in pieces', () =>
      withStore(async (store) => {
        const count = 80;
        await store.put(key('manifest.json'), Readable.from(Array.from({ length: count }, () => PIECE)));
        const found = await store.open(key('manifest.json'));
        let sizeBytes = 0;
        for await (const chunk of found?.content ?? []) {
          sizeBytes += chunk.length;
          expect(chunk.length).toBeLessThanOrEqual(PIECE.length * 4);
        }
        expect(sizeBytes).toBe(count * PIECE.length);
        const from = count * PIECE.length - 17;
        const end = await store.open(key('manifest.json'), { from, to: from + 17 });
        expect(end && (await buffer(end.content)).toString()).toBe('pabcdefghijklmnop');
        expect(end?.artifact.sizeBytes).toBe(count * PIECE.length);
      }));

    it('removes one, or all of a run', () =>
      withStore(async (store) => {
        for (const name of ['manifest.json', 'run/a.sql', 'run/b.sql']) await store.put(key(name), pieces('abc'));
        await store.put(key('manifest.json', 2), pieces('abc'));
        await store.put(key('manifest.json', 1, 1002), pieces('abc'));
        expect(await store.remove(key('run/a.sql'))).toBe(true);
        expect((await store.list(1001, 1)).map(({ path }) => path)).toEqual(['manifest.json', 'run/b.sql']);
        expect(await store.usage(1001)).toEqual({ count: 3, sizeBytes: 9 });
        expect(await store.usage()).toEqual({ count: 4, sizeBytes: 12 });
        expect(await store.removeRun(1001)).toEqual({ count: 3, sizeBytes: 9 });
        expect(await store.list(1001, 1)).toEqual([]);
        expect(await store.list(1001, 2)).toEqual([]);
        expect(await store.list(1002, 1)).toHaveLength(1);
      }));

    it('keeps many at a time', () =>
      withStore(async (store) => {
        const names = Array.from({ length: 40 }, (_, index) => `compiled/shop/models/m${index % 7}/model_${index}.sql`);
        await Promise.all(names.map((name) => store.put(key(name), pieces(name))));
        expect((await store.list(1001, 1)).map(({ path }) => path)).toEqual([...names].sort());
      }));
  });
}
