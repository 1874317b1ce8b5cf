import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BridgeProcess } from '../tool/bridge-process.js';
import { sampleCommand } from '../tool/sample-command.js';
import { runBridge } from './run-bridge.js';

let folder: string;
let number = 0;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-artifact-'));
  writeFileSync(join(folder, 'dbt_project.yml'), 'name: shop\n');
  await exec('nightly', 'build-clean', {
    'manifest.json': 'good, of the first run',
    'sources.json': 'of the first run',
  });
  await exec('nightly', 'build-clean', { 'manifest.json': 'good, of the second run' });
  await exec('nightly', 'build-mixed-fusion', { 'manifest.json': 'of a failed run' });
  await exec('nightly', 'build-clean', {});
  await exec('hourly', 'build-mixed-fusion', { 'manifest.json': 'of another job' });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a command that leaves these files in the target folder. */
async function exec(job: string, sample: string, files: Readonly<Record<string, string>>): Promise<void> {
  number += 1;
  rmSync(join(folder, 'target'), { recursive: true, force: true });
  const writes = Object.entries(files).map(([name, text]) => `echo '${text}' > target/${name};`);
  const script = `mkdir target; ${writes.join(' ')} exec "$@"`;
  const command = ['sh', '-c', script, 'dbt', ...sampleCommand(sample, number)];
  const ended = await runBridge(['exec', '--data-dir', 'data', '--job', job, '--', ...command], { cwd: folder });
  expect(ended).toEqual({ exitCode: 0, stdout: '', stderr: '' });
}

const NIGHTLY = ['--job', 'nightly', '--last-good'];

describe.each(['of the data folder', 'of a bridge elsewhere'])('an artifact %s', (where) => {
  const isElsewhere = where === 'of a bridge elsewhere';
  let bridge: BridgeProcess | undefined;
  let env: Readonly<Record<string, string>> = {};
  beforeAll(async () => {
    if (!isElsewhere) return;
    bridge = await BridgeProcess.start({ dataFolder: join(folder, 'data') });
    env = { RUN_BRIDGE_TOKEN: readFileSync(join(folder, 'data', 'admin-token'), 'utf8').trim() };
  });
  afterAll(() => bridge?.stop());

  const get = (...args: readonly string[]) => {
    const source = bridge === undefined ? ['--data-dir', 'data'] : ['--to', bridge.otlpUrl];
    return runBridge(['artifact', 'get', ...args, ...source], { cwd: folder, env });
  };

  it('is that of the newest run of the job that ended with success and has it', async () => {
    expect(await get(...NIGHTLY, 'manifest.json')).toEqual({
      exitCode: 0,
      stdout: 'good, of the second run\n',
      stderr: 'run-bridge: that of run 1002\n',
    });
    expect(await get(...NIGHTLY, 'sources.json')).toMatchObject({ stdout: 'of the first run\n' });
  });

  it('is that of the newest run however it ended, where no other is asked for', async () => {
    expect(await get('--job', 'nightly', 'manifest.json')).toMatchObject({ stdout: 'of a failed run\n' });
    if (bridge === undefined) return;
    const named = { cwd: folder, env: { ...env, RUN_BRIDGE_TO: bridge.otlpUrl, RUN_BRIDGE_DATA_DIR: 'none' } };
    const byVariable = await runBridge(['artifact', 'get', '--job', 'nightly', 'manifest.json'], named);
    expect(byVariable).toMatchObject({ exitCode: 0, stdout: 'of a failed run\n' });
  });

  it('goes to a file whose folder is made, and leaves nothing else there', async () => {
    const state = join(folder, where, 'state');
    const { exitCode } = await get(...NIGHTLY, 'manifest.json', '--output', join(state, 'manifest.json'));
    expect(exitCode).toBe(0);
    expect(readdirSync(state)).toEqual(['manifest.json']);
    expect(readFileSync(join(state, 'manifest.json'), 'utf8')).toBe('good, of the second run\n');
  });

  it('may be the telemetry of the run', async () => {
    const file = join(folder, where, 'before.parquet');
    await get(...NIGHTLY, 'metadata/telemetry-1-otel.parquet', '--output', file);
    const { stdout } = await runBridge(['report', file], { cwd: folder });
    expect(stdout).toContain('\nbuild: success after ');
  });

  it.each([
    [
      'there is no good run',
      ['--job', 'hourly', '--last-good', 'manifest.json'],
      'job "hourly" that ended with success',
    ],
    [
      'no run of the job has it',
      ['--job', 'nightly', 'catalog.json'],
      'job "nightly" that ended has the artifact catalog',
    ],
    ['there is no such job', ['--job', 'nightli', 'manifest.json'], 'job "nightli" that ended has the artifact'],
    [
      'no run is of that project',
      ['--job', 'nightly', '--project', 'x', 'manifest.json'],
      'job "nightly" in project "x" that ended has',
    ],
  ])('is refused in words where %s, and no file is made', async (_name, args, message) => {
    const file = join(folder, where, 'none', 'x');
    const { exitCode, stdout, stderr } = await get(...args, '--output', file);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(new RegExp(`^run-bridge: none of the last 50 runs of ${message}.*\n$`, 'i'));
    expect(existsSync(file)).toBe(false);
  });
});

it('names what is missing or wrong on the command line, and who cannot be asked', async () => {
  const get = async (...args: readonly string[]) => await runBridge(['artifact', ...args], { cwd: folder });
  expect(await get('get', 'manifest.json')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--job') });
  expect(await get('put', 'x')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('"put" is no action') });
  expect(await get('get', '../x', '--job', 'a')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('no path'),
  });
  expect(await get('get', 'x', '--job', 'a', '--data-dir', 'no')).toMatchObject({ exitCode: 1 });
  expect(existsSync(join(folder, 'no'))).toBe(false);
  const nobody = await get('get', 'x', '--job', 'a', '--to', 'http://127.0.0.1:1');
  expect(nobody).toMatchObject({ exitCode: 1, stderr: 'run-bridge: no run-bridge answers at http://127.0.0.1:1\n' });
});
