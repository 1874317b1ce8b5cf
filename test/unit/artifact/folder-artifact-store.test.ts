import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { FolderArtifactStore } from '../../../src/artifact/folder-artifact-store.js';
import { type ArtifactKey, parseArtifactPath } from '../../../src/storage/artifacts.js';
import { artifactStoreContract } from '../../contract/artifact-store.contract.js';

async function inFolder(body: (folder: string, store: FolderArtifactStore) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'run-bridge-artifacts-'));
  try {
    await body(folder, new FolderArtifactStore(join(folder, 'artifacts')));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

artifactStoreContract((body) => inFolder((_folder, store) => body(store)));

function key(path: string): ArtifactKey {
  const parsed = parseArtifactPath(path);
  if (parsed === undefined) throw new Error(`${path} is no path`);
  return { runId: 1, stepIndex: 1, path: parsed };
}
const bytes = (content: string) => Readable.from([Buffer.from(content)]);

describe('artifacts in a folder', () => {
  it('are not looked for behind symbolic links, whether these are files, folders or on the way', () =>
    inFolder(async (folder, store) => {
      await store.put(key('manifest.json'), bytes('mine'));
      const step = join(folder, 'artifacts', '1', '1');
      mkdirSync(join(folder, 'elsewhere'));
      writeFileSync(join(folder, 'elsewhere', 'secret.json'), 'secret');
      symlinkSync(join(folder, 'elsewhere', 'secret.json'), join(step, 'link.json'));
      symlinkSync(join(folder, 'elsewhere'), join(step, 'linked'));
      for (const path of ['link.json', 'linked/secret.json', 'linked']) {
        expect(await store.stat(key(path))).toBeUndefined();
        expect(await store.open(key(path))).toBeUndefined();
        expect(await store.remove(key(path))).toBe(false);
      }
      await expect(store.put(key('linked/new.json'), bytes('x'))).rejects.toThrow(/is a symbolic link/);
      expect(readdirSync(join(folder, 'elsewhere'))).toEqual(['secret.json']);
      expect((await store.list(1, 1)).map(({ path }) => path)).toEqual(['manifest.json']);
      expect(await store.listFolder(1, 1, key('linked').path)).toEqual({ folders: [], files: [] });
    }));

  it('have no folder left once the last of them is removed', () =>
    inFolder(async (folder, store) => {
      await store.put(key('run/shop/a.sql'), bytes('a'));
      await store.remove(key('run/shop/a.sql'));
      expect(readdirSync(join(folder, 'artifacts'))).toEqual(['incoming']);
      expect(readdirSync(join(folder, 'artifacts', 'incoming'))).toEqual([]);
    }));

  it('cannot have a name that is a folder of others', () =>
    inFolder(async (_folder, store) => {
      await store.put(key('run/a.sql'), bytes('a'));
      await expect(store.put(key('run'), bytes('x'))).rejects.toMatchObject({ code: 'conflict' });
      await expect(store.put(key('run/a.sql/b'), bytes('x'))).rejects.toMatchObject({ code: 'conflict' });
      expect(await store.stat(key('run'))).toBeUndefined();
    }));

  it('can be read to their end after they were replaced', () =>
    inFolder(async (_folder, store) => {
      await store.put(key('manifest.json'), bytes('first'));
      const opened = await store.open(key('manifest.json'));
      await store.put(key('manifest.json'), bytes('other'));
      expect(opened && (await text(opened.content))).toBe('first');
    }));

  it('that were not finished by an earlier process are cleared away', () =>
    inFolder(async (folder, store) => {
      const incoming = join(folder, 'artifacts', 'incoming');
      mkdirSync(incoming, { recursive: true });
      writeFileSync(join(incoming, 'half'), 'ha');
      await store.removeUnfinished();
      expect(existsSync(incoming)).toBe(false);
    }));

  it('that cannot be kept say where and why', () =>
    inFolder(async (folder, _store) => {
      writeFileSync(join(folder, 'file'), '');
      const store = new FolderArtifactStore(join(folder, 'file', 'artifacts'));
      await expect(store.put(key('a.json'), bytes('x'))).rejects.toMatchObject({ name: 'ArtifactError' });
    }));
});
