import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseTraceId } from '../../../src/record/telemetry-record.js';
import { takeDataFolder } from '../../../src/storage/data-folder-lock.js';
import { openSqliteState } from '../../../src/storage/sqlite-state.js';
import { stepStart } from '../../contract/step-registry.contract.js';
import { runInProcess } from '../../fake/run-in-process.js';

const TRACE = 'a'.repeat(32);
let dir: string;
let data: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-backup-'));
  data = join(dir, 'data');
  mkdirSync(join(data, 'runs', TRACE), { recursive: true });
  writeFileSync(join(data, 'runs', TRACE, 'telemetry.jsonl'), '{"one":1}\n{"two":2}\n');
  writeFileSync(join(data, 'runs', TRACE, 'run.json'), '{}');
});
afterEach(() => rmSync(dir, { recursive: true }));

const backUp = (target: string) => runInProcess(['backup', target, '--data-dir', data], dir);

describe('run-bridge backup', () => {
  it('copies the state and the runs while a server has the folder, and says what it wrote', async () => {
    const lock = takeDataFolder(data, 1, 0);
    const state = await openSqliteState(join(data, 'state.db'));
    const { runId } = await state.executions.register(stepStart('a', { runKey: 'night' }), 'local');
    appendFileSync(join(data, 'runs', TRACE, 'telemetry.jsonl'), '{"being wri');
    const target = join(dir, 'copies', 'first');
    const { exitCode, stderr } = await backUp(join('copies', 'first'));
    expect([exitCode, stderr]).toEqual([0, `wrote ${target}: state.db, 1 run in 2 files, 0.0 MB\n`]);
    await state.close();
    lock.release();

    expect(readdirSync(target).sort()).toEqual(['runs', 'state.db']);
    expect(readFileSync(join(target, 'runs', TRACE, 'telemetry.jsonl'), 'utf8')).toBe('{"one":1}\n{"two":2}\n');
    const copy = await openSqliteState(join(target, 'state.db'));
    expect((await copy.executions.findStep('a'))?.run.runId).toBe(runId);
    await copy.close();
  });

  it('leaves out what is made anew, and says what is kept elsewhere, but no artifact of such a name', async () => {
    for (const folder of ['journal', 'pull', join('artifacts', '1001', '1', 'pull')]) {
      mkdirSync(join(data, folder), { recursive: true });
      writeFileSync(join(data, folder, 'file'), 'x');
    }
    rmSync(join(data, 'runs'), { recursive: true });
    const { exitCode, stderr } = await backUp('copy');
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining('run pg_dump, then copy the bucket')]);
    expect(readdirSync(join(dir, 'copy'))).toEqual(['artifacts']);
    expect(readFileSync(join(dir, 'copy', 'artifacts', '1001', '1', 'pull', 'file'), 'utf8')).toBe('x');
  });

  it('overwrites nothing', async () => {
    mkdirSync(join(dir, 'copy'));
    const { exitCode, stderr } = await backUp('copy');
    expect([exitCode, stderr]).toEqual([
      1,
      `run-bridge: ${join(dir, 'copy')}: already exists, and a backup never overwrites; name a new folder\n`,
    ]);
  });

  it('is not written into the data folder, nor of one that is not there', async () => {
    expect((await backUp(join(data, 'copy'))).stderr).toContain('is inside the data folder');
    rmSync(data, { recursive: true });
    expect((await backUp('copy')).stderr).toContain('the data folder to back up does not exist');
    expect(existsSync(data)).toBe(false);
  });

  it('leaves nothing where it fails', async () => {
    writeFileSync(join(data, 'state.db'), 'no database, whatever it is called');
    const { exitCode, stderr } = await backUp('copy');
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/could not be written; its files were removed: .*damaged/);
    expect(readdirSync(dir)).toEqual(['data']);
  });
});

describe('run-bridge restore', () => {
  const restore = (backup: string, to = 'restored') =>
    runInProcess(['restore', backup, '--data-dir', join(dir, to)], dir);
  const restored = () => join(dir, 'restored');
  /** A backup of a run, whose log the state knows the length of. */
  async function backedUp(): Promise<void> {
    const state = await openSqliteState(join(data, 'state.db'));
    const times = { firstSeenUnixMs: 1, lastSeenUnixMs: 2 };
    await state.runs.save([
      {
        traceId: parseTraceId(TRACE) ?? fail(),
        ...times,
        state: 'open',
        logBytes: 20,
        summary: '{}',
        parquetBytes: null,
      },
    ]);
    await state.executions.register(stepStart('a', { runKey: 'night' }), 'local');
    await state.close();
    writeFileSync(join(data, 'webhook-key'), 'key');
    expect(await backUp('copy')).toMatchObject({ exitCode: 0 });
  }
  function fail(): never {
    throw new Error('no trace id');
  }

  it('gives back what was backed up, to its owner alone, and leaves the backup as it is', async () => {
    await backedUp();
    const before = readFileSync(join(dir, 'copy', 'state.db'));
    const { exitCode, stderr } = await restore('copy');
    expect([exitCode, stderr]).toEqual([0, `restored ${restored()}: state.db, 1 run in 3 files, 0.0 MB\n`]);
    expect(readdirSync(restored()).sort()).toEqual(['lock.db', 'runs', 'state.db', 'webhook-key']);
    expect(readFileSync(join(restored(), 'runs', TRACE, 'telemetry.jsonl'), 'utf8')).toBe('{"one":1}\n{"two":2}\n');
    for (const name of ['state.db', 'webhook-key']) expect(statSync(join(restored(), name)).mode & 0o777).toBe(0o600);
    const state = await openSqliteState(join(restored(), 'state.db'));
    expect((await state.executions.findStep('a'))?.run.runKey).toBe('night');
    await state.close();
    expect(readdirSync(join(dir, 'copy')).sort()).toEqual(['runs', 'state.db', 'webhook-key']);
    expect(readFileSync(join(dir, 'copy', 'state.db')).equals(before)).toBe(true);
  });

  it('fills a folder that is there and empty, also after one that was cut off', async () => {
    await backedUp();
    mkdirSync(join(restored(), 'restore.partial', 'runs'), { recursive: true });
    mkdirSync(join(restored(), 'lost+found'));
    expect(await restore('copy')).toMatchObject({ exitCode: 0 });
    expect(readdirSync(restored()).sort()).toEqual(['lock.db', 'lost+found', 'runs', 'state.db', 'webhook-key']);
  });

  it('overwrites nothing, and touches no folder that a server has', async () => {
    await backedUp();
    expect(await restore('copy', 'data')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(
        /data: is not empty \(runs, state\.db, .*\), and restore overwrites nothing; move it away, or name a new folder with --data-dir\n$/,
      ),
    });
    const lock = takeDataFolder(data, 1, 0);
    expect(await restore('copy', 'data')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('is in use by process 1'),
    });
    lock.release();
    const source = takeDataFolder(join(dir, 'copy'), 1, 0);
    expect(await restore('copy')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('copy is in use by process 1'),
    });
    source.release();
  });

  it.each([
    ['nothing', 'this folder is not a backup', () => undefined],
    ['empty', 'this is no backup', () => mkdirSync(join(dir, 'empty'))],
    ['copy.partial', 'this backup is incomplete', () => renameSync(join(dir, 'copy'), join(dir, 'copy.partial'))],
    [
      'copy',
      'its state.db is damaged',
      () => writeFileSync(join(dir, 'copy', 'state.db'), 'no database, whatever it is called'),
    ],
    ['copy', 'its state was in PostgreSQL', () => rmSync(join(dir, 'copy', 'state.db'))],
    ['.', 'lie in one another', () => undefined],
  ])('refuses %s where %s, and leaves nothing', async (backup, why, spoil) => {
    await backedUp();
    spoil();
    mkdirSync(join(dir, 'runs'));
    expect(await restore(backup)).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(why) });
    expect(existsSync(restored())).toBe(false);
  });

  it('finds damage within the state', async () => {
    await backedUp();
    const file = readFileSync(join(dir, 'copy', 'state.db'));
    writeFileSync(join(dir, 'copy', 'state.db'), file.fill(0xff, 8192, 16384));
    expect(await restore('copy')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('its state.db is damaged'),
    });
  });

  it('says which runs have lost records', async () => {
    await backedUp();
    writeFileSync(join(dir, 'copy', 'runs', TRACE, 'telemetry.jsonl'), '{"one":1}\n');
    expect(await restore('copy')).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining(`the backup lacks records of 1 run that its state knows: ${TRACE}\n`),
    });
  });
});
