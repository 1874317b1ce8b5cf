import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DataFolderInUseError } from '../../../src/storage/data-folder.js';
import { DataFolderLock } from '../../../src/storage/data-folder-lock.js';
import { StoreError } from '../../../src/storage/store-error.js';

const HOLDER = { pid: 1234, since: '2026-01-02T03:04:05.000Z', address: null };

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'run-bridge-lock-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe('the lock of a data folder', () => {
  it('is refused to a second holder with the name of the first', () => {
    const lock = DataFolderLock.acquire(folder, HOLDER);
    expect(() => DataFolderLock.acquire(folder, { ...HOLDER, pid: 5678 })).toThrow(
      new DataFolderInUseError(folder, HOLDER),
    );
    lock.announce('http://127.0.0.1:4318');
    expect(() => DataFolderLock.acquire(folder, HOLDER)).toThrow(
      `${folder} is in use by process 1234 since 2026-01-02T03:04:05.000Z (listening on http://127.0.0.1:4318); stop it or pass another --data-dir`,
    );
    lock.release();
  });

  it('can be taken again once it is released, and leaves no name behind', () => {
    DataFolderLock.acquire(folder, HOLDER).release();
    expect(existsSync(join(folder, 'lock.json'))).toBe(false);
    DataFolderLock.acquire(folder, HOLDER).release();
  });

  it('is refused without a name when the holder has not written it whole', () => {
    const lock = DataFolderLock.acquire(folder, HOLDER);
    writeFileSync(join(folder, 'lock.json'), '{"pid":12');
    expect(() => DataFolderLock.acquire(folder, HOLDER)).toThrow('is in use by another process; stop it');
    lock.release();
  });

  it('is free at once after its holder was killed', async () => {
    const script = `
      import Database from 'libsql';
      const database = new Database(process.argv[1]);
      database.exec('BEGIN EXCLUSIVE');
      process.stdout.write('held');
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script, join(folder, 'lock.db')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    expect(() => DataFolderLock.acquire(folder, HOLDER)).toThrow(DataFolderInUseError);
    child.kill('SIGKILL');
    await once(child, 'exit');
    DataFolderLock.acquire(folder, HOLDER).release();
  });

  it('says that the folder is missing', () => {
    expect(() => DataFolderLock.acquire(join(folder, 'missing'), HOLDER)).toThrow(StoreError);
  });
});
