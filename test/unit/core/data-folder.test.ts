import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DataFolderOnDisk } from '../../../src/core/data-folder.js';
import { probeFolder } from '../../../src/core/folders.js';

const NEVER = new AbortController().signal;

let dir: string;
let path: string;
let folder: DataFolderOnDisk;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-folder-'));
  path = join(dir, 'data');
  mkdirSync(path);
  writeFileSync(join(path, 'state.db'), 'state');
  folder = new DataFolderOnDisk(path, 'state.db');
});
afterEach(() => rmSync(dir, { recursive: true }));

describe('a data folder', () => {
  test('says how much room its file system has', async () => {
    const { totalBytes, freeBytes } = await folder.readSpace();
    expect(totalBytes).toBeGreaterThan(freeBytes);
    expect(freeBytes).toBeGreaterThan(0);
  });

  test('holds what all files below it hold', async () => {
    mkdirSync(join(path, 'runs', 'a'), { recursive: true });
    writeFileSync(join(path, 'runs', 'a', 'telemetry.jsonl'), Buffer.alloc(1_000));
    expect(await folder.readSize(NEVER)).toBe(1_005);
  });

  test('that was moved away is gone, and is the same when it is moved back', async () => {
    await folder.readSpace();
    renameSync(path, `${path}-away`);
    await expect(folder.readSpace()).rejects.toThrow('it is gone: removed, renamed, or its volume is not mounted');
    expect(await folder.readSize(NEVER)).toBe(0);
    renameSync(`${path}-away`, path);
    await folder.readSpace();
  });

  test('with a file in its place is no folder', async () => {
    renameSync(path, `${path}-away`);
    writeFileSync(path, '');
    await expect(folder.readSpace()).rejects.toThrow(/removed or replaced|a file is in the place of a folder/);
  });

  test('that another one took the place of is another one', async () => {
    await folder.readSpace();
    renameSync(path, `${path}-away`);
    mkdirSync(path);
    await expect(folder.readSpace()).rejects.toThrow('state.db was removed or replaced');
    writeFileSync(join(path, 'state.db'), 'state');
    await expect(folder.readSpace()).rejects.toThrow('state.db was removed or replaced');
  });
});

describe('a probe', () => {
  test('leaves nothing behind in a folder that can be written', async () => {
    await probeFolder(join(path, 'runs'));
    expect(readdirSync(join(path, 'runs'))).toEqual([]);
  });

  test('fails where a file is in the place of the folder, and where the folder above is missing', async () => {
    writeFileSync(join(path, 'runs'), '');
    await expect(probeFolder(join(path, 'runs'))).rejects.toThrow('ENOTDIR');
    await expect(probeFolder(join(dir, 'other', 'runs'))).rejects.toThrow('ENOENT');
    expect(readdirSync(dir)).toEqual(['data']);
  });
});
