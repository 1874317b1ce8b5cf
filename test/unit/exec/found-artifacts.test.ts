import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { findArtifacts } from '../../../src/exec/found-artifacts.js';

const LIMITS = { maxCount: 100, maxFileBytes: 1_000, maxTotalBytes: 10_000 };
/** When the command began; files are written at another time where the test says so. */
const BEGAN_UNIX_MS = 1_700_000_000_123;

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-target-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

function write(name: string, { content = '{}', atUnixMs = BEGAN_UNIX_MS + 500 } = {}): void {
  const path = join(dir, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  utimesSync(path, atUnixMs / 1_000, atUnixMs / 1_000);
}

const find = (limits = LIMITS) => findArtifacts(dir, BEGAN_UNIX_MS, limits);
const pathsOf = async (limits = LIMITS) => (await find(limits)).artifacts.map(({ path }) => path);

it('finds the documents and the SQL that the engine writes, documents first', async () => {
  for (const name of ['compiled/shop/models/a.sql', 'run/shop/models/a.sql', 'run_results.json', 'manifest.json']) {
    write(name);
  }
  expect(await pathsOf()).toEqual([
    'manifest.json',
    'run_results.json',
    'run/shop/models/a.sql',
    'compiled/shop/models/a.sql',
  ]);
});

it('leaves alone what is none of it', async () => {
  const names = [
    '.rustc_info.json',
    'partial_parse.msgpack',
    'data/shop/main/raw/output.parquet',
    'generic_tests/a.sql',
  ];
  for (const name of [...names, 'compiled/shop/a.macro_spans.json', 'classes/app.json']) write(name);
  expect(await find()).toEqual({ artifacts: [], leftOut: null });
});

it('takes what was written during the command, and not what was there before', async () => {
  write('catalog.json', { atUnixMs: BEGAN_UNIX_MS - 5_000 });
  write('manifest.json', { atUnixMs: BEGAN_UNIX_MS });
  expect(await pathsOf()).toEqual(['manifest.json']);
});

it('takes what was written in the second of the beginning where the file system knows whole seconds alone', async () => {
  write('manifest.json', { atUnixMs: Math.floor(BEGAN_UNIX_MS / 1_000) * 1_000 });
  expect(await pathsOf()).toEqual(['manifest.json']);
});

it('does not follow symbolic links out of the folder', async () => {
  const elsewhere = mkdtempSync(join(tmpdir(), 'run-bridge-elsewhere-'));
  try {
    writeFileSync(join(elsewhere, 'secret.json'), 'x');
    writeFileSync(join(elsewhere, 'secret.sql'), 'x');
    symlinkSync(join(elsewhere, 'secret.json'), join(dir, 'manifest.json'));
    symlinkSync(elsewhere, join(dir, 'run'));
    mkdirSync(join(dir, 'compiled'));
    symlinkSync(elsewhere, join(dir, 'compiled', 'shop'));
    expect(await pathsOf()).toEqual([]);
  } finally {
    rmSync(elsewhere, { recursive: true });
  }
});

it('says what it leaves out', async () => {
  write('manifest.json', { content: 'x'.repeat(1_001) });
  for (const name of ['a', 'b', 'c']) write(`run/${name}.sql`, { content: 'x'.repeat(900) });
  expect(await find({ ...LIMITS, maxCount: 2 })).toMatchObject({
    artifacts: [{ path: 'run/a.sql' }, { path: 'run/b.sql' }],
    leftOut: 'manifest.json: too large; 1 files: more than a step may have',
  });
  expect((await find({ ...LIMITS, maxTotalBytes: 1_800 })).artifacts).toHaveLength(2);
});

it('has nothing where there is no such folder', async () => {
  expect(await findArtifacts(join(dir, 'nowhere'), 0, LIMITS)).toEqual({ artifacts: [], leftOut: null });
});
