import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openSqliteState } from '../../../src/store/open-sqlite-state.js';
import { takeDataFolder } from '../../../src/store/take-data-folder.js';
import { stepStart } from '../../contract/execution-book.contract.js';
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
    const { runId } = await state.executions.begin(stepStart('a', { runKey: 'night' }), 'local');
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
    for (const folder of ['cluster', 'pull', join('artifacts', '1001', '1', 'pull')]) {
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
      `run-bridge: ${join(dir, 'copy')}: is there already, and a backup overwrites nothing; name a new folder\n`,
    ]);
  });

  it('is not written into the data folder, nor of one that is not there', async () => {
    expect((await backUp(join(data, 'copy'))).stderr).toContain('lies in the data folder itself');
    rmSync(data, { recursive: true });
    expect((await backUp('copy')).stderr).toContain('there is no data folder to back up');
    expect(existsSync(data)).toBe(false);
  });

  it('leaves nothing where it fails', async () => {
    writeFileSync(join(data, 'state.db'), 'no database, whatever it is called');
    const { exitCode, stderr } = await backUp('copy');
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/could not be written, and nothing of it is left: .*damaged/);
    expect(readdirSync(dir)).toEqual(['data']);
  });
});
