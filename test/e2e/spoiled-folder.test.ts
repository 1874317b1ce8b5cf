import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { BridgeProcess } from '../tool/bridge-process.js';
import { SentRun } from '../tool/sent-run.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

const ANOTHER_USER = 65_534;
const isRoot = process.getuid?.() === 0;
const runs = z.object({ data: z.array(z.object({ id: z.number(), is_complete: z.boolean() })) });

/** One with a run, of which each test gets a copy. */
let whole: string;
let folder: string;
let token: string;
const folders: string[] = [];
beforeAll(async () => {
  const bridge = await BridgeProcess.start();
  whole = bridge.dataFolder;
  folders.push(whole);
  const run = new SentRun();
  await run.send(bridge.otlpUrl);
  await bridge.finished(run.traceId);
  expect(await bridge.stop()).toBe(0);
  token = readFileSync(join(whole, 'admin-token'), 'utf8');
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-spoiled-'));
  folders.push(folder);
  cpSync(whole, folder, { recursive: true });
});
afterAll(() => {
  for (const one of folders) rmSync(one, { recursive: true, force: true });
});

const state = () => join(folder, 'state.db');
const start = () => runBridge(['serve', ...PORTS, '--data-dir', folder], { cwd: folder });
const PORTS = ['http', 'grpc', 'web'].flatMap((name) => [`--${name}`, '127.0.0.1:0']);

async function runsAt(bridge: BridgeProcess) {
  const headers = { authorization: `Token ${token.trim()}` };
  const response = await fetch(`${bridge.webUrl}/api/v2/accounts/10001/runs/`, { headers });
  expect(response.status).toBe(200);
  return runs.parse(await response.json()).data;
}

async function runIdsAt(bridge: BridgeProcess): Promise<readonly number[]> {
  return (await runsAt(bridge)).map(({ id }) => id);
}

describe('a data folder', () => {
  it.each([
    ['empty', () => truncateSync(state(), 0), 'the file is empty, although the data folder holds runs; '],
    ['cut off', () => truncateSync(state(), 5_000), 'the file is damaged or is not an SQLite database; '],
    [
      'no database',
      () => writeFileSync(state(), 'x'.repeat(20_000)),
      'the file is damaged or is not an SQLite database; ',
    ],
  ])(
    'whose state is %s is not begun anew, and rebuild brings its runs and its token back',
    async (_how, spoil, what) => {
      spoil();
      expect(await start()).toEqual({
        exitCode: 2,
        stdout: '',
        stderr: `run-bridge: ${state()}: ${what}run-bridge rebuild creates a new one from the rest of the data folder and keeps this one\n`,
      });
      expect(readFileSync(join(folder, 'admin-token'), 'utf8')).toBe(token);
      expect((await runBridge(['rebuild', '--data-dir', folder], { cwd: folder })).exitCode).toBe(0);
      const bridge = await BridgeProcess.start({ dataFolder: folder });
      expect(readFileSync(join(folder, 'admin-token'), 'utf8')).toBe(token);
      expect(await runIdsAt(bridge)).toEqual([1001]);
      await bridge.stop();
    },
  );

  it('whose state is gone gets it back at the start, with a sentence, its numbers and its token', async () => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(state() + suffix, { force: true });
    const bridge = await BridgeProcess.start({ dataFolder: folder });
    expect(bridge.stderr).toContain('state.db was missing and was made anew from the rest of the data folder');
    expect(readFileSync(join(folder, 'admin-token'), 'utf8')).toBe(token);
    expect(await runsAt(bridge)).toMatchObject([{ id: 1001, is_complete: true }]);
    expect(await bridge.stop()).toBe(0);
    expect(readdirSync(join(folder, 'rows'))).toEqual(['1001.json']);
    expect(readdirSync(folder).filter((name) => /partial|before/.test(name))).toEqual([]);
  });

  it('whose state was made anew by a command says so, and gives no number twice', async () => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(state() + suffix, { force: true });
    expect((await runBridge(['retain', '--data-dir', folder], { cwd: folder })).exitCode).toBe(0);
    const bridge = await BridgeProcess.start({ dataFolder: folder });
    expect(bridge.stderr).toContain('the state is new, but the data folder holds runs');
    expect(bridge.stderr).toContain('run-bridge rebuild');
    expect(readFileSync(join(folder, 'admin-token'), 'utf8')).toBe(token);
    expect(await runIdsAt(bridge)).toEqual([1002]);
    // Whether it is over is known once its log was read.
    await until('the run is over', async () => (await runsAt(bridge)).every((run) => run.is_complete));
    expect(await bridge.stop()).toBe(0);
    expect(readdirSync(join(folder, 'rows')).sort()).toEqual(['1001.json', '1002.json']);
  });

  it('keeps a token of another state beside it, and what is no token', async () => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(state() + suffix, { force: true });
    writeFileSync(join(folder, 'admin-token'), 'what somebody else keeps here\n');
    const bridge = await BridgeProcess.start({ dataFolder: folder });
    expect(bridge.stderr).toContain('contains no token and was not changed');
    expect(readFileSync(join(folder, 'admin-token'), 'utf8')).toBe('what somebody else keeps here\n');
    await bridge.stop();
  });

  it('forgets the first token with its file once that is revoked', async () => {
    const revoked = await runBridge(['token', 'revoke', '1001', '--data-dir', folder], { cwd: folder });
    expect(revoked.stderr).toContain(`removed ${join(folder, 'admin-token')}, which contained it`);
    expect(readdirSync(folder)).not.toContain('admin-token');
  });

  it.skipIf(!isRoot).each([
    ['as a whole', () => chmodSync(folder, 0o755)],
    ['but for its lock', () => chownSync(join(folder, 'lock.db'), ANOTHER_USER, ANOTHER_USER)],
    [
      'where the runs are',
      () => {
        for (const name of readdirSync(folder)) chownSync(join(folder, name), ANOTHER_USER, ANOTHER_USER);
        chownSync(folder, ANOTHER_USER, ANOTHER_USER);
        chownSync(join(folder, 'runs'), 0, 0);
        chmodSync(join(folder, 'runs'), 0o755);
      },
    ],
  ])('that can only be read %s is reported in a sentence, and exit code 2', (_where, spoil) => {
    chmodSync(folder, 0o755);
    spoil();
    const { status, stderr } = spawnSync(process.execPath, ['dist/main.js', 'serve', ...PORTS, '--data-dir', folder], {
      env: { PATH: process.env.PATH ?? '', HOME: '/nonexistent' },
      encoding: 'utf8',
      ...{ uid: ANOTHER_USER, gid: ANOTHER_USER },
    });
    expect(stderr).toMatch(new RegExp(`^run-bridge: ${folder}[^\\n]*write[^\\n]*\\n$`));
    expect(status).toBe(2);
  });

  it.each([20, 40, 100])('is not opened where %i files may be open: a sentence, and exit code 2', (count) => {
    const command = `ulimit -n ${count}; exec "${process.execPath}" dist/main.js serve ${PORTS.join(' ')} --data-dir "${folder}"`;
    const { status, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8' });
    expect(stderr).toBe(
      `run-bridge: this process may open ${count} files and needs 128; raise the limit, for example with ulimit -n 4096, or LimitNOFILE= of systemd\n`,
    );
    expect(status).toBe(2);
  });

  it('is its user’s alone, with all that is in it, whatever the mask; commands keep theirs', async () => {
    const target = join(folder, '..', `${folder.split('/').at(-1)}-copy`);
    folders.push(target);
    const made = join(folder, 'made-by-command');
    const write = `require('fs').writeFileSync(${JSON.stringify(made)}, '')`;
    const script = `umask 022
      "$0" dist/main.js exec --data-dir "$1" -- "$0" -e "$3" && "$0" dist/main.js backup "$2" --data-dir "$1"`;
    const args = ['-c', script, process.execPath, join(folder, 'new'), target, write];
    const { status, stderr } = spawnSync('sh', args, { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, expect.stringContaining('wrote')]);
    expect(statSync(made).mode & 0o777).toBe(0o644);
    rmSync(made);
    expect(openToOthers(folder)).toEqual([]);
    expect(openToOthers(target)).toEqual([]);
  });
});

/** What others may read, write or enter. */
function openToOthers(path: string): readonly string[] {
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' }).map((name) => join(path, name));
  return [path, ...names].filter((name) => (statSync(name).mode & 0o077) !== 0);
}
